// share_buffer: what shares the memory of another variable until it is written.
#include "tests/kernels/op_runs.h"

namespace interp::testing {
namespace {

using ::testing::ElementsAre;

absl::StatusOr<std::vector<Tensor>> TryOps(const std::string& ops,
                                           const std::vector<std::string>& fetches) {
  INTERP_ASSIGN_OR_RETURN(
      Program program,
      ParseProgram("block 0\n  var x float32[2]\n  var n int64[2]\n  var a float32[2]\n"
                   "  var b float32[2]\n  var c float32[2]\n  var d float32[2]\n" +
                   ops));
  INTERP_ASSIGN_OR_RETURN(auto core,
                          InterpreterCore::Create(std::move(program), {"x"}, fetches, nullptr, {}));
  return core->Run({Tensor::Of<float>({2}, {-1, 2})});
}

std::vector<Tensor> RunOps(const std::string& ops, const std::vector<std::string>& fetches) {
  auto outputs = TryOps(ops, fetches);
  EXPECT_THAT(outputs, IsOk());
  return *std::move(outputs);
}

// As Paddle writes it before an op that works in place.
TEST(ShareBuffer, IsOverWhenTheOutputIsWritten) {
  const std::vector<Tensor> out = RunOps(
      "  relu(X=x) -> (Out=a)\n"
      "  share_buffer(X=a) -> (Out=b, XOut=a) {share_dims_and_dtype=[false]}\n"
      "  scale(X=a) -> (Out=b) {scale=3.0}\n",
      {"b"});
  EXPECT_THAT(Values<float>(out[0]), ElementsAre(0, 6));
}

TEST(ShareBuffer, GivesTheValuesUntilThen) {
  const std::vector<Tensor> out = RunOps(
      "  relu(X=x) -> (Out=a)\n"
      "  scale(X=x) -> (Out=c) {scale=2.0}\n"
      "  share_buffer(X=[a, c]) -> (Out=[b, d], XOut=[a, c])\n"
      "  scale(X=a) -> (Out=a) {scale=5.0}\n",
      {"a", "b", "c", "d"});
  EXPECT_THAT(Values<float>(out[0]), ElementsAre(0, 10));
  EXPECT_THAT(Values<float>(out[1]), ElementsAre(0, 2));
  EXPECT_THAT(Values<float>(out[2]), ElementsAre(-2, 4));
  EXPECT_THAT(Values<float>(out[3]), ElementsAre(-2, 4));
}

TEST(ShareBuffer, RefusesWhatDoesNotPair) {
  const auto fails = [](const char* op, const char* why) {
    EXPECT_THAT(
        TryOps(absl::StrCat("  fill_constant() -> (Out=n) {shape=[2], dtype=3}\n", op), {"b"}),
        FailsWith(absl::StatusCode::kInvalidArgument, why));
  };
  fails("  share_buffer(X=[x, x]) -> (Out=b)\n", "'X' has 2 arguments and 'Out' 1");
  fails("  share_buffer(X=x) -> (Out=b, XOut=[c, d])\n", "'X' has 1 arguments and 'XOut' 2");
  EXPECT_THAT(TryOps("  fill_constant() -> (Out=n) {shape=[2], dtype=3}\n"
                     "  share_buffer(X=[x, n]) -> (Out=[b, c])\n",
                     {"b"}),
              FailsWith(absl::StatusCode::kUnimplemented, "tensors of two dtypes"));
}

// relu(X + Y) whose gradient is told of Out alone: BuildStrategy.fuse_elewise_add_act_ops.
TEST(ComposedActivationGradient, DoesWithoutXWhereOutTells) {
  const std::string attrs = "functor_list=[\"relu_grad\", \"elementwise_add_grad\"], axis=-1";
  const Tensor y = Tensor::Of<float>({2}, {1, -1});
  const Tensor out = Tensor::Of<float>({2, 2}, {3, 0, 0, 4});
  const Tensor grad = Tensor::Of<float>({2, 2}, {1, 10, 100, 1000});
  const std::vector<Tensor> gradients = OutputsOf({"fused_elemwise_add_activation_grad",
                                                   {{"Y", y}, {"Out", out}, {"Out@GRAD", grad}},
                                                   {"X@GRAD", "Y@GRAD"},
                                                   attrs});
  EXPECT_THAT(Values<float>(gradients[0]), ElementsAre(1, 0, 0, 1000));
  EXPECT_THAT(Values<float>(gradients[1]), ElementsAre(1, 1000));
  ExpectRefusals({{{"fused_elemwise_add_activation_grad",
                    {{"Y", y}, {"Out@GRAD", grad}},
                    {"X@GRAD", "Y@GRAD"},
                    attrs},
                   "input 'X' is missing"},
                  {{"fused_elemwise_add_activation_grad",
                    {{"Y", y}, {"Out", out}, {"Out@GRAD", grad}},
                    {"X@GRAD", "Y@GRAD"},
                    "functor_list=[\"tanh_grad\", \"elementwise_add_grad\"], axis=-1"},
                   "input 'X' is missing"}});
}

TEST(HierarchicalSigmoid, TakesLabelsOfOneDimension) {
  const OpRun run = {"hierarchical_sigmoid",
                     {{"X", Numbers({2, 3}, 1)},
                      {"W", Numbers({3, 3}, 2)},
                      {"Label", Tensor::Of<int64_t>({2, 1}, {3, 1})}},
                     {"Out", "PreOut"},
                     "num_classes=4"};
  EXPECT_EQ(Values<float>(OutputsOf(run)[0]),
            Values<float>(OutputsOf(With(run, 2, Tensor::Of<int64_t>({2}, {3, 1})))[0]));
}

TEST(HierarchicalSigmoid, TakesRowsOfSeveralDims) {
  const std::vector<std::pair<std::string, Tensor>> inputs = {
      {"X", Numbers({2, 6}, 1)},
      {"W", Numbers({3, 6}, 2)},
      {"Label", Tensor::Of<int64_t>({2, 1}, {3, 1})}};
  const OpRun forward = {"hierarchical_sigmoid", inputs, {"Out", "PreOut"}, "num_classes=4"};
  OpRun backward = {"hierarchical_sigmoid_grad", inputs, {"X@GRAD", "W@GRAD"}, "num_classes=4"};
  backward.inputs.emplace_back("PreOut", OutputsOf(forward)[1]);
  backward.inputs.emplace_back("Out@GRAD", Numbers({2, 1}, 3));
  for (const Shape& shape : {Shape{2, 1, 6}, Shape{2, 3, 2}, Shape{2, 6, 1}}) {
    Tensor x = inputs[0].second;
    x.shape = shape;
    EXPECT_EQ(Values<float>(OutputsOf(With(forward, 0, x))[0]),
              Values<float>(OutputsOf(forward)[0]));
    const std::vector<Tensor> gradients = OutputsOf(With(backward, 0, x));
    EXPECT_EQ(gradients[0].shape, shape);
    for (int i : {0, 1}) {
      EXPECT_EQ(Values<float>(gradients[i]), Values<float>(OutputsOf(backward)[i]));
    }
  }
}

}  // namespace
}  // namespace interp::testing
