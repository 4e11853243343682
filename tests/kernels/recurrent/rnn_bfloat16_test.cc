// rnn and rnn_grad in bfloat16 beside float32, on the same values: all kinds of cells, in layers
// and both directions, of whole and odd sizes, with sequences that end early.
#include <cmath>

#include "absl/strings/str_join.h"
#include "core/program_parse.h"
#include "interpreter/interpreter_core.h"
#include "tests/kernels/op_runs.h"

namespace interp::testing::rnn_bfloat16_test {
namespace {

struct Net {
  std::string mode;
  int64_t gates;
  int64_t input = 6;
  int64_t hidden = 8;
  int64_t layers = 1;
  bool bidirectional = false;
  bool lengths = false;

  int64_t directions() const { return bidirectional ? 2 : 1; }
  bool lstm() const { return mode == "LSTM"; }
};

constexpr int64_t kTime = 5;
constexpr int64_t kBatch = 14;  // more than are stepped together

// A program under construction: variables of `dtype`, and values for them.
struct Draft {
  std::string dtype;
  std::string vars = {};
  std::vector<std::string> feeds = {};
  std::vector<Tensor> values = {};
  std::vector<std::string> fetches = {};

  std::string Feed(const std::string& name, const Shape& shape) {
    const auto seed = static_cast<uint32_t>(values.size()) + 1;
    Tensor wide = Numbers(shape, seed);
    for (int64_t i = 0; i < wide.numel(); ++i) {
      wide.mutable_data<float>()[i] = bfloat16(wide.data<float>()[i] / 2);
    }
    if (dtype == "bfloat16") {
      std::vector<bfloat16> narrow(wide.data<float>(), wide.data<float>() + wide.numel());
      wide = Tensor::Of<bfloat16>(shape, narrow);
    }
    absl::StrAppend(&vars, "  var ", name, " ", dtype, ToString(shape), "\n");
    feeds.push_back(name);
    values.push_back(wide);
    return name;
  }
  std::string Fetch(const std::string& name) {
    fetches.push_back(name);
    return name;
  }
};

std::string List(const std::vector<std::string>& names) {
  return absl::StrCat("[", absl::StrJoin(names, ","), "]");
}

struct Result {
  std::vector<std::string> names;
  std::vector<Tensor> values;
};

// Outputs and gradients of `net`.
Result RunNet(const Net& net, const std::string& dtype, int threads = 1) {
  Draft draft{.dtype = dtype};
  const int64_t states = net.layers * net.directions();
  const std::string input = draft.Feed("input", {kTime, kBatch, net.input});
  std::vector<std::string> before, after, before_grads, weights, weight_grads;
  for (int i = 0; i < (net.lstm() ? 2 : 1); ++i) {
    before.push_back(draft.Feed(absl::StrCat("before", i), {states, kBatch, net.hidden}));
    after.push_back(draft.Fetch(absl::StrCat("after", i)));
    before_grads.push_back(draft.Fetch(absl::StrCat("before_grad", i)));
  }
  for (int64_t i = 0; i < 4 * states; ++i) {
    const bool bias = i >= 2 * states;
    const bool of_input = i % 2 == 0;
    const bool first_layer = i < 2 * net.directions();
    const int64_t features = first_layer ? net.input : net.directions() * net.hidden;
    const int64_t rows = net.gates * net.hidden;
    const Shape shape = bias ? Shape{rows} : Shape{rows, of_input ? features : net.hidden};
    weights.push_back(draft.Feed(absl::StrCat("weight", i), shape));
    weight_grads.push_back(draft.Fetch(absl::StrCat("weight_grad", i)));
  }
  draft.Feed("out_grad", {kTime, kBatch, net.directions() * net.hidden});
  draft.Fetch("out");
  draft.Fetch("input_grad");
  if (net.lengths) {
    draft.feeds.push_back("lengths");
    draft.values.push_back(
        Tensor::Of<int32_t>({kBatch}, {5, 1, 3, 5, 2, 4, 5, 1, 1, 3, 2, 5, 4, 5}));
  }
  const std::string lengths = net.lengths ? ", SequenceLength=lengths" : "";
  const std::string attrs = absl::StrCat(
      "{mode=\"", net.mode, "\", hidden_size=", net.hidden, ", input_size=", net.input,
      ", num_layers=", net.layers, ", is_bidirec=", net.bidirectional ? "true" : "false", "}\n");
  const std::string text =
      absl::StrCat("block 0\n  var lengths int32[14]\n", draft.vars, "  rnn(Input=", input,
                   ", PreState=", List(before), ", WeightList=", List(weights), lengths,
                   ") -> (Out=out, DropoutState=mask, Reserve=reserve, State=", List(after), ") ",
                   attrs, "  rnn_grad(Input=", input, ", PreState=", List(before),
                   ", WeightList=", List(weights), lengths,
                   ", Out=out, DropoutState=mask, Reserve=reserve, Out@GRAD=out_grad) -> "
                   "(Input@GRAD=input_grad, PreState@GRAD=",
                   List(before_grads), ", WeightList@GRAD=", List(weight_grads), ") ", attrs);
  auto core = InterpreterCore::Create(*ParseProgram(text), draft.feeds, draft.fetches, nullptr,
                                      {.num_threads = threads});
  EXPECT_THAT(core, IsOk()) << text;
  if (!core.ok()) return {};
  const auto fetched = (*core)->Run(draft.values);
  EXPECT_THAT(fetched, IsOk()) << text;
  return {draft.fetches, fetched.ok() ? *fetched : std::vector<Tensor>()};
}

// The largest difference over the largest element.
double RelativeError(const Tensor& got, const Tensor& want) {
  double most = 0;
  double error = 0;
  for (int64_t i = 0; i < want.numel(); ++i) {
    const float right = want.data<float>()[i];
    most = std::max<double>(most, std::abs(right));
    error = std::max<double>(error, std::abs(got.data<bfloat16>()[i] - right));
  }
  return error / most;
}

const std::vector<Net>& Nets() {
  static const auto* nets = new std::vector<Net>{
      {.mode = "LSTM", .gates = 4},
      {.mode = "LSTM", .gates = 4, .input = 7, .hidden = 9, .layers = 2, .bidirectional = true},
      {.mode = "LSTM", .gates = 4, .layers = 3, .lengths = true},
      {.mode = "GRU", .gates = 3, .input = 5, .hidden = 33, .bidirectional = true, .lengths = true},
      {.mode = "RNN_TANH", .gates = 1, .layers = 2},
      {.mode = "RNN_RELU", .gates = 1, .input = 3, .hidden = 5}};
  return *nets;
}

TEST(RnnBfloat16Test, GivesWhatFloat32DoesButForRounding) {
  for (const Net& net : Nets()) {
    const Result want = RunNet(net, "float32");
    const Result got = RunNet(net, "bfloat16");
    ASSERT_EQ(got.values.size(), want.values.size());
    for (size_t i = 0; i < want.values.size(); ++i) {
      EXPECT_EQ(got.values[i].dtype, DType::kBFloat16);
      EXPECT_LT(RelativeError(got.values[i], want.values[i]), 0.03) << net.mode << want.names[i];
    }
  }
}

TEST(RnnBfloat16Test, GivesTheSameBitsOnThreeThreads) {
  for (const Net& net : Nets()) {
    EXPECT_TRUE(SameBits(RunNet(net, "bfloat16", 3).values, RunNet(net, "bfloat16", 1).values))
        << net.mode;
  }
}

}  // namespace
}  // namespace interp::testing::rnn_bfloat16_test
