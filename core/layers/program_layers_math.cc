// Layers of ProgramBuilder without parameters: elementwise, shapes, losses, metrics.
#include <algorithm>
#include <limits>
#include <numeric>

#include "absl/algorithm/container.h"
#include "core/base/near_names.h"
#include "core/layers/layer_helper.h"
#include "core/shape.h"

namespace interp {
namespace {

// --- activations ---

struct ActivationDef {
  absl::string_view type;
  absl::string_view layer;  // what Paddle's function of it names its results after
  std::vector<Attr> attrs = {};
};

// The attributes are the defaults of the ops.
const std::vector<ActivationDef>& Activations() {
  static const auto& table = *new std::vector<ActivationDef>{
      {"abs", "abs"},
      {"elu", "elu", {{"alpha", 1.0F}}},
      {"exp", "exp"},
      {"gelu", "gelu", {{"approximate", false}}},
      {"hard_sigmoid", "hardsigmoid", {{"slope", 0.2F}, {"offset", 0.5F}}},
      {"hard_swish", "hardswish", {{"threshold", 6.0F}, {"scale", 6.0F}, {"offset", 3.0F}}},
      {"leaky_relu", "leaky_relu", {{"alpha", 0.02F}}},
      {"log", "log"},
      {"log_softmax", "log_softmax", {{"axis", -1}}},
      {"mish", "mish", {{"threshold", 20.0F}}},
      {"relu", "relu"},
      {"relu6", "relu6", {{"threshold", 6.0F}}},
      {"selu", "selu", {{"scale", 1.0507010F}, {"alpha", 1.6732632F}}},
      {"sigmoid", "sigmoid"},
      {"silu", "silu"},
      {"softmax", "softmax", {{"axis", -1}}},
      {"softplus", "softplus", {{"beta", 1.0F}, {"threshold", 20.0F}}},
      {"softsign", "softsign"},
      {"sqrt", "sqrt"},
      {"square", "square"},
      {"swish", "swish", {{"beta", 1.0F}}},
      {"tanh", "tanh"},
  };
  return table;
}

const ActivationDef* FindActivation(absl::string_view type) {
  const std::vector<ActivationDef>& table = Activations();
  const auto it = std::find_if(table.begin(), table.end(),
                               [&](const ActivationDef& def) { return def.type == type; });
  return it == table.end() ? nullptr : &*it;
}

std::string UnknownActivation(absl::string_view type) {
  std::vector<absl::string_view> types;
  for (const ActivationDef& def : Activations()) types.push_back(def.type);
  return absl::StrCat("no activation '", type, "'", NearNamesHint(type, types));
}

std::string AxisError(int axis, size_t rank) {
  return absl::StrCat("axis ", axis, " is outside of rank ", rank);
}

// One more of the values that Concat joins. False when it does not fit.
bool JoinDims(Dims& dims, const Dims& more, int along) {
  if (more.size() != dims.size()) return false;
  for (int d = 0; d < std::ssize(dims); ++d) {
    const bool unknown = dims[d] == -1 || more[d] == -1;
    if (d == along && unknown) {
      dims[d] = -1;
    } else if (d == along) {
      if (__builtin_add_overflow(dims[d], more[d], &dims[d])) return false;
    } else if (unknown) {
      dims[d] = std::max(dims[d], more[d]);
    } else if (dims[d] != more[d]) {
      return false;
    }
  }
  return true;
}

constexpr absl::string_view kElementwise[] = {
    "elementwise_add", "elementwise_sub", "elementwise_mul",
    "elementwise_div", "elementwise_max", "elementwise_min",
    "elementwise_pow", "elementwise_mod", "elementwise_floordiv"};

std::string UnequalDtypes(const Var& x, const Var& y) {
  return absl::StrCat("the inputs are of ", Name(x.dtype), " and ", Name(y.dtype));
}

}  // namespace

Value LayerHelper::Activate(Value x, absl::string_view type) {
  if (type.empty() || !ok()) return x;
  const ActivationDef* def = FindActivation(type);
  if (def == nullptr) return Fail(UnknownActivation(type));
  const Var in = net_.Get(x);
  const Value out = Temporary(in.dims, in.dtype);
  net_.AddOp(type, {{"X", {x}}}, {{"Out", {out}}}, def->attrs);
  return out;
}

Value ProgramBuilder::Activation(Value x, absl::string_view type) {
  const ActivationDef* def = FindActivation(type);
  if (def == nullptr) Fail(UnknownActivation(type));
  LayerHelper layer(*this, def == nullptr ? "activation" : def->layer, {x});
  return layer.ok() ? layer.Activate(x, type) : Value{};
}

Value ProgramBuilder::Softmax(Value x, int axis) {
  LayerHelper layer(*this, "softmax", {x});
  const Var in = Get(x);
  if (!layer.Check(NormalizeAxis(axis, static_cast<int>(in.dims.size())).has_value(),
                   AxisError(axis, in.dims.size()))) {
    return {};
  }
  const Value out = layer.Temporary(in.dims, in.dtype);
  AddOp("softmax", {{"X", {x}}}, {{"Out", {out}}}, {{"axis", axis}});
  return out;
}

// --- elementwise ---

Value ProgramBuilder::Elementwise(absl::string_view type, Value x, Value y) {
  LayerHelper layer(*this, type, {x, y});
  if (!layer.Check(absl::c_linear_search(kElementwise, type), "no elementwise op is named so")) {
    return {};
  }
  const Var a = Get(x);
  const Var b = Get(y);
  const absl::StatusOr<Dims> dims = BroadcastDims(a.dims, b.dims);
  if (!layer.Check(a.dtype == b.dtype, UnequalDtypes(a, b)) || !layer.Check(dims.status())) {
    return {};
  }
  const Value out = Declare(layer.name(), *dims, a.dtype);  // so Paddle names it
  AddOp(type, {{"X", {x}}, {"Y", {y}}}, {{"Out", {out}}}, {{"axis", -1}});
  return out;
}

Value ProgramBuilder::Scale(Value x, float scale, float bias) {
  LayerHelper layer(*this, "scale", {x});
  const Var in = Get(x);
  const Value out = layer.Temporary(in.dims, in.dtype);
  AddOp("scale", {{"X", {x}}}, {{"Out", {out}}},
        {{"scale", scale}, {"bias", bias}, {"bias_after_scale", true}});
  return out;
}

// --- shapes and products ---

Value ProgramBuilder::Reshape(Value x, const std::vector<int32_t>& shape) {
  LayerHelper layer(*this, "reshape2", {x});
  const Var in = Get(x);
  const absl::StatusOr<Dims> dims = ReshapeDims(in.dims, shape);
  if (!layer.Check(dims.status())) return {};
  const Value out = layer.Temporary(*dims, in.dtype);
  const Value record = layer.ShapeRecord(in);
  AddOp("reshape2", {{"X", {x}}}, {{"Out", {out}}, {"XShape", {record}}}, {{"shape", shape}});
  return out;
}

Value ProgramBuilder::Flatten(Value x, int start_axis, int stop_axis) {
  LayerHelper layer(*this, "flatten", {x});
  const Var in = Get(x);
  const int rank = static_cast<int>(in.dims.size());
  const std::optional<int> start = NormalizeAxis(start_axis, rank);
  const std::optional<int> stop = NormalizeAxis(stop_axis, rank);
  if (!layer.Check(start.has_value() && stop.has_value() && *start <= *stop,
                   absl::StrCat("axes ", start_axis, " to ", stop_axis, " for rank ", rank))) {
    return {};
  }
  Dims dims(in.dims.begin(), in.dims.begin() + *start);
  dims.push_back(ProductOf(in.dims, *start, *stop + 1));
  dims.insert(dims.end(), in.dims.begin() + *stop + 1, in.dims.end());
  const Value out = layer.Temporary(std::move(dims), in.dtype);
  const Value record = layer.ShapeRecord(in);
  AddOp("flatten_contiguous_range", {{"X", {x}}}, {{"Out", {out}}, {"XShape", {record}}},
        {{"start_axis", *start}, {"stop_axis", *stop}});
  return out;
}

Value ProgramBuilder::Transpose(Value x, const std::vector<int32_t>& order) {
  LayerHelper layer(*this, "transpose", {x});
  const Var in = Get(x);
  std::vector<int32_t> expected(in.dims.size());
  std::iota(expected.begin(), expected.end(), 0);
  if (!layer.Check(
          absl::c_is_permutation(order, expected),
          absl::StrCat("the order does not have each of the ", in.dims.size(), " dims once"))) {
    return {};
  }
  Dims dims;
  for (const int32_t axis : order) dims.push_back(in.dims[axis]);
  const Value out = layer.Temporary(std::move(dims), in.dtype);
  const Value record = layer.ShapeRecord(in);
  AddOp("transpose2", {{"X", {x}}}, {{"Out", {out}}, {"XShape", {record}}}, {{"axis", order}});
  return out;
}

Value ProgramBuilder::Concat(const std::vector<Value>& values, int axis) {
  LayerHelper layer(*this, "concat", values);
  if (!layer.Check(!values.empty(), "there are no inputs")) return {};
  const Var first = Get(values[0]);
  const std::optional<int> along = NormalizeAxis(axis, static_cast<int>(first.dims.size()));
  if (!layer.Check(along.has_value(), AxisError(axis, first.dims.size()))) return {};
  Dims dims = first.dims;
  for (size_t i = 1; i < values.size(); ++i) {
    const Var& var = Get(values[i]);
    if (!layer.Check(var.dtype == first.dtype && JoinDims(dims, var.dims, *along),
                     absl::StrCat("input ", i, " is ", Name(var.dtype), DimsText(var.dims),
                                  ", the first one ", Name(first.dtype), DimsText(first.dims)))) {
      return {};
    }
  }
  const Value out = layer.Temporary(std::move(dims), first.dtype);
  AddOp("concat", {{"X", values}}, {{"Out", {out}}}, {{"axis", axis}});
  return out;
}

Value ProgramBuilder::Select(Value x, int axis, int32_t index) {
  if (!Usable({x})) return {};
  const Var in = Get(x);
  LayerHelper layer(*this, absl::StrCat(NameOf(x), "_slice"), {x});
  const std::optional<int> along = NormalizeAxis(axis, static_cast<int>(in.dims.size()));
  if (!layer.Check(along.has_value(), AxisError(axis, in.dims.size()))) return {};
  const int64_t extent = in.dims[*along];
  if (!layer.Check(extent == -1 || (index >= -extent && index < extent),
                   absl::StrCat("index ", index, " is outside of ", extent))) {
    return {};
  }
  Dims dims = in.dims;
  dims.erase(dims.begin() + *along);
  const Value out = Declare(layer.name(), std::move(dims), in.dtype);  // so Paddle names it
  constexpr int32_t kLast = std::numeric_limits<int32_t>::max();
  const int32_t end = index == -1 || index == kLast ? kLast : index + 1;
  AddOp("slice", {{"Input", {x}}}, {{"Out", {out}}},
        {{"axes", std::vector<int32_t>{*along}},
         {"starts", std::vector<int32_t>{index}},
         {"ends", std::vector<int32_t>{end}},
         {"infer_flags", std::vector<int32_t>{1}},
         {"decrease_axis", std::vector<int32_t>{*along}}});
  return out;
}

Value ProgramBuilder::Matmul(Value x, Value y, bool transpose_x, bool transpose_y) {
  LayerHelper layer(*this, "matmul_v2", {x, y});
  const Var a = Get(x);
  const Var b = Get(y);
  const absl::StatusOr<Dims> dims = MatmulDims(a.dims, b.dims, transpose_x, transpose_y);
  if (!layer.Check(a.dtype == b.dtype, UnequalDtypes(a, b)) || !layer.Check(dims.status())) {
    return {};
  }
  const Value out = layer.Temporary(*dims, a.dtype);
  AddOp("matmul_v2", {{"X", {x}}, {"Y", {y}}}, {{"Out", {out}}},
        {{"trans_x", transpose_x}, {"trans_y", transpose_y}});
  return out;
}

}  // namespace interp
