// Layers of ProgramBuilder over sequences: embedding, LSTM, attention.
#include <cmath>

#include "core/layers/layer_helper.h"

namespace interp {
namespace {

bool CheckSequence(LayerHelper& layer, const Var& x) {
  return layer.Check(IsFloating(x.dtype) && x.dims.size() == 3 && x.dims[2] > 0,
                     absl::StrCat("the input is ", Name(x.dtype), DimsText(x.dims),
                                  ", expected floats of three dims, the last one known"));
}

}  // namespace

Value ProgramBuilder::Embedding(Value ids, const EmbeddingOptions& options) {
  LayerHelper layer(*this, "embedding", {ids});
  const Var in = Get(ids);
  const int64_t padding = options.padding_idx.value_or(-1);
  const bool has_padding = options.padding_idx.has_value();
  if (!layer.Check(in.dtype == DType::kInt64 || in.dtype == DType::kInt32,
                   absl::StrCat("the ids are of ", Name(in.dtype), ", expected int64")) ||
      !layer.Check(options.rows > 0 && options.width > 0,
                   absl::StrCat("rows is ", options.rows, " and width is ", options.width)) ||
      !layer.Check(!has_padding || (padding >= -options.rows && padding < options.rows),
                   absl::StrCat("padding_idx is ", padding, " for ", options.rows, " rows"))) {
    return {};
  }
  const Value w = layer.Parameter("w", {options.rows, options.width}, DType::kFloat32,
                                  options.weight, Initializer::XavierUniform());
  Dims dims = in.dims;
  dims.push_back(options.width);
  const Value out = layer.Temporary(std::move(dims), DType::kFloat32);
  const int64_t row = has_padding && padding < 0 ? padding + options.rows : padding;
  AddOp("lookup_table_v2", {{"W", {w}}, {"Ids", {ids}}}, {{"Out", {out}}},
        {{"is_sparse", options.is_sparse}, {"is_distributed", false}, {"padding_idx", row}});
  return out;
}

// --- LSTM ---

namespace {

// The weights of all cells in the order of op `rnn`: first the matrices, then the biases. Each cell
// (a direction of a layer) is a layer of its own to the names, as in Paddle.
std::vector<Value> LstmWeights(ProgramBuilder& net, int64_t width, const LstmOptions& options) {
  const int directions = options.bidirectional ? 2 : 1;
  const int64_t hidden = options.hidden;
  const auto limit = static_cast<float>(1 / std::sqrt(static_cast<double>(hidden)));
  const Initializer uniform = Initializer::Uniform(-limit, limit);
  std::vector<Value> weights;
  std::vector<Value> biases;
  for (int i = 0; i < options.num_layers * directions && net.status().ok(); ++i) {
    LayerHelper cell(net, "lstm_cell", {});
    const int64_t inputs = i < directions ? width : hidden * directions;
    const auto add = [&](std::vector<Value>& to, const char* suffix, Dims dims) {
      to.push_back(cell.Parameter(suffix, std::move(dims), DType::kFloat32, {}, uniform));
    };
    add(weights, "w", {4 * hidden, inputs});
    add(weights, "w", {4 * hidden, hidden});
    add(biases, "b", {4 * hidden});
    add(biases, "b", {4 * hidden});
  }
  weights.insert(weights.end(), biases.begin(), biases.end());
  return weights;
}

bool CheckLstm(LayerHelper& layer, const Var& x, const LstmOptions& options) {
  return layer.ok() && CheckSequence(layer, x) &&
         layer.Check(x.dtype == DType::kFloat32, "op 'rnn' computes in float32 alone") &&
         layer.Check(options.hidden > 0 && options.hidden < (int64_t{1} << 29),
                     absl::StrCat("hidden is ", options.hidden)) &&
         layer.Check(options.num_layers > 0 && options.num_layers <= 1024,
                     absl::StrCat("num_layers is ", options.num_layers)) &&
         layer.Check(options.dropout >= 0 && options.dropout < 1,
                     absl::StrCat("dropout is ", options.dropout)) &&
         layer.Check((options.initial_hidden.id == -1) == (options.initial_cell.id == -1),
                     "of initial_hidden and initial_cell only one is given");
}

// Zeros for the state before the first step, as many as the batch of `x` (time first) has.
Value ZeroState(ProgramBuilder& net, Value x, const Dims& dims) {
  LayerHelper layer(net, "fill_constant_batch_size_like", {x});
  const Value state = layer.Constant(dims, DType::kFloat32);
  net.AddOp("fill_constant_batch_size_like", {{"Input", {x}}}, {{"Out", {state}}},
            {{"shape", std::vector<int32_t>(dims.begin(), dims.end())},
             {"input_dim_idx", 1},
             {"output_dim_idx", 1},
             {"value", 0.0F},
             {"str_value", std::string("0.0")},
             {"dtype", static_cast<int32_t>(DType::kFloat32)},
             {"force_cpu", false}});
  return state;
}

bool CheckState(LayerHelper& layer, const Var& found, const Dims& state) {
  const absl::StatusOr<Dims> both = BroadcastDims(found.dims, state);
  return layer.Check(
      both.ok() && found.dims.size() == 3 && found.dims[0] == state[0] && found.dims[2] == state[2],
      absl::StrCat("a first state is ", DimsText(found.dims), ", expected ", DimsText(state)));
}

std::vector<Attr> LstmAttrs(int64_t width, const LstmOptions& options, bool is_test) {
  return {{"mode", std::string("LSTM")},
          {"input_size", static_cast<int32_t>(width)},
          {"hidden_size", static_cast<int32_t>(options.hidden)},
          {"num_layers", options.num_layers},
          {"is_bidirec", options.bidirectional},
          {"dropout_prob", options.dropout},
          {"is_test", is_test},
          {"seed", 0}};
}

}  // namespace

LstmResult ProgramBuilder::Lstm(Value x, const LstmOptions& options) {
  LayerHelper layer(*this, "lstm", {x});
  const Var in = Get(x);
  if (!CheckLstm(layer, in, options)) return {};
  const int directions = options.bidirectional ? 2 : 1;
  const Dims state = {options.num_layers * directions, in.dims[options.time_major ? 1 : 0],
                      options.hidden};
  const std::vector<Value> weights = LstmWeights(*this, in.dims[2], options);
  const Value steps = options.time_major ? x : Transpose(x, {1, 0, 2});
  const bool given = options.initial_hidden.id != -1;
  const Value hidden = given ? options.initial_hidden : ZeroState(*this, steps, state);
  const Value cell = given ? options.initial_cell : ZeroState(*this, steps, state);
  if (!CheckState(layer, Get(hidden), state) || !CheckState(layer, Get(cell), state)) return {};
  Dims dims = Get(steps).dims;
  dims[2] = options.hidden * directions;
  const Value out = layer.Temporary(std::move(dims), DType::kFloat32);
  const Value last_hidden = layer.Temporary(state, DType::kFloat32);
  const Value last_cell = layer.Temporary(state, DType::kFloat32);
  const Value reserve = layer.Constant({}, DType::kUInt8);
  const Value dropout_state = layer.Constant({}, DType::kUInt8);
  std::vector<Value> lengths;
  if (options.sequence_length.id != -1) lengths.push_back(options.sequence_length);
  AddOp("rnn",
        {{"Input", {steps}},
         {"PreState", {hidden, cell}},
         {"WeightList", weights},
         {"SequenceLength", lengths}},
        {{"Out", {out}},
         {"State", {last_hidden, last_cell}},
         {"Reserve", {reserve}},
         {"DropoutState", {dropout_state}}},
        LstmAttrs(in.dims[2], options, is_test()));
  return {options.time_major ? out : Transpose(out, {1, 0, 2}), last_hidden, last_cell};
}

// --- attention ---

namespace {

// paddle.nn.Linear, whose parameters are named when it is made, and whose results when it is used.
struct Linear {
  Value weight;
  Value bias;
};

Linear MakeLinear(ProgramBuilder& net, int64_t inputs, int64_t outputs, DType dtype) {
  LayerHelper layer(net, "linear", {});
  return {layer.Parameter("w", {inputs, outputs}, dtype, {}, Initializer::XavierUniform()),
          layer.Parameter("b", {outputs}, dtype, {}, Initializer::Constant(0))};
}

Value ApplyLinear(ProgramBuilder& net, Value x, const Linear& linear) {
  LayerHelper layer(net, "linear", {x, linear.weight, linear.bias});
  if (!layer.ok()) return {};
  Dims dims = net.Get(x).dims;
  dims.back() = net.Get(linear.bias).dims[0];
  const DType dtype = net.Get(x).dtype;
  const Value product = layer.Temporary(dims, dtype);
  net.AddOp("matmul_v2", {{"X", {x}}, {"Y", {linear.weight}}}, {{"Out", {product}}},
            {{"trans_x", false}, {"trans_y", false}});
  const Value out = layer.Temporary(dims, dtype);
  net.AddOp("elementwise_add", {{"X", {product}}, {"Y", {linear.bias}}}, {{"Out", {out}}},
            {{"axis", -1}});
  return out;
}

}  // namespace

Value ProgramBuilder::SelfAttention(Value x, const AttentionOptions& options) {
  const Var in = Get(x);
  LayerHelper layer(*this, "multi_head_attention", {x});
  if (!layer.ok() || !CheckSequence(layer, in)) return {};
  const int64_t width = in.dims[2];
  if (!layer.Check(options.heads > 0 && width % options.heads == 0,
                   absl::StrCat(options.heads, " heads do not divide a width of ", width))) {
    return {};
  }
  const auto head = static_cast<int32_t>(width / options.heads);
  Linear linear[4];  // of queries, keys, values and the result
  for (Linear& one : linear) one = MakeLinear(*this, width, width, in.dtype);
  const auto split = [&](Value rows) {
    return Transpose(Reshape(rows, {0, 0, options.heads, head}), {0, 2, 1, 3});
  };
  const Value queries = split(ApplyLinear(*this, x, linear[0]));
  const Value key_rows = ApplyLinear(*this, x, linear[1]);
  const Value value_rows = ApplyLinear(*this, x, linear[2]);
  const Value keys = split(key_rows);
  const Value values = split(value_rows);
  const Value scaled = Scale(queries, 1 / std::sqrt(static_cast<float>(head)));
  Value scores = Matmul(scaled, keys, false, true);
  if (options.mask.id != -1) scores = Add(scores, options.mask);
  Value weights = Softmax(scores);
  if (options.dropout != 0) weights = Dropout(weights, options.dropout);
  const Value mixed = Transpose(Matmul(weights, values), {0, 2, 1, 3});
  const Value joined = Reshape(mixed, {0, 0, static_cast<int32_t>(width)});
  return ApplyLinear(*this, joined, linear[3]);
}

}  // namespace interp
