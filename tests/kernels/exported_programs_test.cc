// What exporters of Paddle write that no op shows by itself: masks of dropout between images, feeds
// that the program overwrites, weights that a pass has padded, rings that only outputs name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <complex>

#include "absl/strings/str_cat.h"
#include "core/program_parse.h"
#include "interpreter/interpreter_core.h"
#include "tests/kernels/op_runs.h"
#include "tests/testing/matchers.h"

namespace interp::testing::exported_programs_test {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

std::unique_ptr<InterpreterCore> CoreOf(absl::string_view text,
                                        const std::vector<std::string>& feeds,
                                        const std::vector<std::string>& fetches,
                                        const CoreOptions& options = {},
                                        std::shared_ptr<Scope> scope = nullptr) {
  absl::StatusOr<Program> program = ParseProgram(text);
  EXPECT_THAT(program, IsOk());
  auto core =
      InterpreterCore::Create(*std::move(program), feeds, fetches, std::move(scope), options);
  EXPECT_THAT(core, IsOk());
  return *std::move(core);
}

std::vector<float> FirstOf(InterpreterCore& core, const std::vector<Tensor>& feeds) {
  const absl::StatusOr<std::vector<Tensor>> fetched = core.Run(feeds);
  EXPECT_THAT(fetched, IsOk());
  return fetched.ok() ? Values<float>((*fetched)[0]) : std::vector<float>();
}

TEST(ExportedProgramsTest, DropoutOfATestMayStandBetweenImages) {
  constexpr const char* kText = R"(block 0
  var x float32[1,2,4,4]
  var w float32[2,2,3,3]
  var c float32[-1,2,-1,-1]
  var d float32[-1,2,-1,-1]
  var mask uint8[-1,2,-1,-1]
  var y float32[-1,2,-1,-1]
  conv2d(Input=x, Filter=w) -> (Output=c) {paddings=[1, 1], strides=[1, 1]}
  dropout(X=c) -> (Out=d, Mask=mask) {dropout_prob=0.5, is_test=true, dropout_implementation="downgrade_in_infer"}
  conv2d(Input=d, Filter=w) -> (Output=y) {paddings=[1, 1], strides=[1, 1]}
)";
  const std::vector<Tensor> feeds = {Numbers({1, 2, 4, 4}, 1), Numbers({2, 2, 3, 3}, 2)};
  CoreOptions plain;
  plain.plan.optimize_layout = false;
  const std::vector<float> want = FirstOf(*CoreOf(kText, {"x", "w"}, {"y"}, plain), feeds);
  EXPECT_THAT(FirstOf(*CoreOf(kText, {"x", "w"}, {"y"}), feeds), Pointwise(FloatNear(1e-5f), want));
}

// As loops that dygraph-to-static makes do: the declaration is that of the later value.
TEST(ExportedProgramsTest, AFeedThatTheProgramOverwritesMayHaveAnotherShape) {
  const auto core = CoreOf(R"(block 0
  var x float32[-1,1]
  reduce_max(X=x) -> (Out=x) {dim=[1], keep_dim=true}
)",
                           {"x"}, {"x"});
  EXPECT_THAT(FirstOf(*core, {Tensor::Of<float>({2, 3}, {1, 5, 2, 4, 3, 0})}), ElementsAre(5, 4));
  EXPECT_EQ(core->plan().feeds[0].shape, Shape({-1, 1}));
}

// fc_fuse_pass of Paddle pads weights whose sizes are multiples of 128.
TEST(ExportedProgramsTest, PaddingOfWeightsCountsForNothing) {
  const Tensor w = Numbers({3, 2}, 1);
  std::vector<float> padded(7 * 6, 1e9f);
  for (int64_t k = 0; k < 3; ++k) {
    for (int64_t n = 0; n < 2; ++n) padded[k * 6 + n] = w.data<float>()[k * 2 + n];
  }
  const auto text = [](absl::string_view weights, absl::string_view attr) {
    return absl::StrCat("block 0\n  var x float32[4,3]\n  var w float32", weights,
                        "\n  var b float32[2]\n  var y float32[4,2]\n  var z float32[4,2]\n",
                        "  fc(Input=x, W=w, Bias=b) -> (Out=y) {in_num_col_dims=1", attr,
                        "}\n  fc(Input=x, W=w) -> (Out=z) {in_num_col_dims=1", attr, "}\n");
  };
  const Tensor x = Numbers({4, 3}, 2);
  const Tensor b = Numbers({2}, 3);
  const std::vector<std::string> fetches = {"y", "z"};
  const auto want = CoreOf(text("[3,2]", ""), {"x", "w", "b"}, fetches)->Run({x, w, b});
  const auto got = CoreOf(text("[7,6]", ", padding_weights=true"), {"x", "w", "b"}, fetches)
                       ->Run({x, Tensor::Of<float>({7, 6}, padded), b});
  ASSERT_THAT(want, IsOk());
  ASSERT_THAT(got, IsOk());
  for (int i : {0, 1}) EXPECT_EQ(Values<float>((*got)[i]), Values<float>((*want)[i]));
}

// The programs that its inference saves say nothing of the padded weights.
TEST(ExportedProgramsTest, PaddedWeightsMayLackADeclaredDType) {
  absl::StatusOr<Program> program = ParseProgram(R"(block 0
  var x float32[1,1]
  var w undefined[] persistable
  var y float32[1,1]
  fc(Input=x, W=w) -> (Out=y) {in_num_col_dims=1, padding_weights=true}
)");
  ASSERT_THAT(program, IsOk());
  std::vector<float> w(25, 1e9f);
  w[0] = 3;
  auto scope = std::make_shared<Scope>();
  scope->FindOrCreate("w")->tensor = Tensor::Of<float>({5, 5}, w);
  const auto core = InterpreterCore::Create(*std::move(program), {"x"}, {"y"}, scope);
  ASSERT_THAT(core, IsOk());
  EXPECT_THAT(FirstOf(**core, {Tensor::Of<float>({1, 1}, {2})}), ElementsAre(6));
}

TEST(ExportedProgramsTest, PaddedWeightsMayChangeBetweenTwoUses) {
  const auto core = CoreOf(R"(block 0
  var x float32[1,1]
  var w float32[5,5]
  var y float32[1,1]
  var z float32[1,1]
  fc(Input=x, W=w) -> (Out=y) {in_num_col_dims=1, padding_weights=true}
  scale(X=w) -> (Out=w) {scale=2.0}
  fc(Input=y, W=w) -> (Out=z) {in_num_col_dims=1, padding_weights=true}
)",
                           {"x", "w"}, {"z"});
  std::vector<float> w(25, 1e9f);
  w[0] = 3;
  EXPECT_THAT(FirstOf(*core, {Tensor::Of<float>({1, 1}, {1}), Tensor::Of<float>({5, 5}, w)}),
              ElementsAre(18));
}

TEST(ExportedProgramsTest, NaNInComplexResultsIsFound) {
  CoreOptions options;
  options.check_nan_inf = true;
  const auto core = CoreOf(R"(block 0
  var x complex64[1]
  var y complex64[1]
  exp(X=x) -> (Out=y)
)",
                           {"x"}, {"y"}, options);
  EXPECT_THAT(core->Run({Tensor::Of<std::complex<float>>({1}, {{0, 1}})}), IsOk());
  EXPECT_THAT(core->Run({Tensor::Of<std::complex<float>>({1}, {{1000, 1}})}),
              FailsWith(absl::StatusCode::kInvalidArgument, "contains a NaN or an infinity"));
}

// Training goes on from what the parameters say of the last scales, which lie in memory that is
// not to be written to. 5 was the largest of three; as it leaves, 3 is.
TEST(ExportedProgramsTest, TheRingOfScalesIsTakenFromTheParameters) {
  constexpr const char* kText = R"(block 0
  var x float32[2]
  var y float32[2]
  var in float32[1] persistable
  var iter int64[1]
  var ring float32[3] persistable
  fake_quantize_range_abs_max(X=x, InScale=in, Iter=iter) -> (Out=y, OutScale=in, OutScales=ring) {window_size=3, bit_length=8, is_test=false}
)";
  for (const bool loaded : {true, false}) {
    auto scope = std::make_shared<Scope>();
    scope->FindOrCreate("in")->tensor = Tensor::Of<float>({1}, {5});
    const std::vector<float> ring = {2, 5, 3};
    if (loaded)
      scope->FindOrCreate("ring")->tensor = Tensor::Borrow(DType::kFloat32, {3}, ring.data());
    const auto core = CoreOf(kText, {"x", "iter"}, {"in"}, {}, scope);
    const Tensor x = Tensor::Of<float>({2}, {1, -1});
    EXPECT_THAT(FirstOf(*core, {x, Tensor::Of<int64_t>({1}, {4})}), ElementsAre(loaded ? 3 : 5));
    EXPECT_THAT(Values<float>(scope->FindOrCreate("ring")->tensor),
                loaded ? ElementsAre(2, 1, 3) : ElementsAre(0, 1, 0));
    EXPECT_THAT(ring, ElementsAre(2, 5, 3));
  }
}

TEST(ExportedProgramsTest, ARingOfAnotherSizeIsAnError) {
  auto scope = std::make_shared<Scope>();
  scope->FindOrCreate("in")->tensor = Tensor::Of<float>({1}, {5});
  scope->FindOrCreate("ring")->tensor = Tensor::Of<float>({2}, {5, 3});
  const auto core = CoreOf(R"(block 0
  var x float32[2]
  var y float32[2]
  var in float32[1] persistable
  var iter int64[1]
  var ring float32[-1] persistable
  fake_quantize_range_abs_max(X=x, InScale=in, Iter=iter) -> (Out=y, OutScale=in, OutScales=ring) {window_size=3, bit_length=8, is_test=false}
)",
                           {"x", "iter"}, {"in"}, {}, scope);
  EXPECT_THAT(core->Run({Tensor::Of<float>({2}, {1, -1}), Tensor::Of<int64_t>({1}, {4})}),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        "goes on from its value would change from 8 bytes"));
}

// The counts of the last batch, as paddle.static.auc without steps makes them: one more than used.
TEST(ExportedProgramsTest, CountsOfAucLoseTheElementsThatItDoesNotUse) {
  auto scope = std::make_shared<Scope>();
  scope->FindOrCreate("positive")->tensor = Tensor::Of<int64_t>({5}, {0, 1, 0, 0, 7});
  scope->FindOrCreate("negative")->tensor = Tensor::Of<int64_t>({5}, {0, 0, 0, 0, 7});
  const auto core = CoreOf(R"(block 0
  var p float32[2,1]
  var label int64[2,1]
  var positive int64[1,4] persistable
  var negative int64[1,4] persistable
  var area float64[]
  auc(Predict=p, Label=label, StatPos=positive, StatNeg=negative) -> (AUC=area, StatPosOut=positive, StatNegOut=negative) {num_thresholds=3, slide_steps=0}
)",
                           {"p", "label"}, {"area"}, {}, scope);
  const std::vector<Tensor> feeds = {Tensor::Of<float>({2, 1}, {1.0f, 0.0f}),
                                     Tensor::Of<int64_t>({2, 1}, {1, 0})};
  for (const int64_t runs : {1, 2}) {
    EXPECT_THAT(core->Run(feeds), IsOk());
    const Tensor& positive = scope->FindOrCreate("positive")->tensor;
    EXPECT_EQ(positive.shape, Shape({1, 4}));
    EXPECT_THAT(Values<int64_t>(positive), ElementsAre(0, 1, 0, runs));
    EXPECT_THAT(Values<int64_t>(scope->FindOrCreate("negative")->tensor),
                ElementsAre(runs, 0, 0, 0));
  }
}

// As of tensors, what has no elements is absent, whatever its shape.
TEST(ExportedProgramsTest, SumsOfArraysLeaveOutEmptyElements) {
  for (const char* order : {"a, b", "b, a"}) {
    const auto core = CoreOf(absl::StrCat(R"(block 0
  var x float32[-1,3]
  var empty float32[-1,4]
  var i int64[1]
  var a lod_tensor_array float32[-1,3]
  var b lod_tensor_array float32[-1,4]
  var sums lod_tensor_array float32[-1,3]
  var y float32[-1,3]
  write_to_array(X=x, I=i) -> (Out=a)
  write_to_array(X=empty, I=i) -> (Out=b)
  sum(X=[)",
                                          order, R"(]) -> (Out=sums)
  read_from_array(X=sums, I=i) -> (Out=y)
)"),
                             {"x", "empty", "i"}, {"y"});
    const std::vector<Tensor> feeds = {Tensor::Of<float>({1, 3}, {1, 2, 3}),
                                       Tensor::Of<float>({0, 4}, {}),
                                       Tensor::Of<int64_t>({1}, {0})};
    EXPECT_THAT(FirstOf(*core, feeds), ElementsAre(1, 2, 3)) << order;
  }
}

TEST(SearchSortedTest, NumbersOfTwoKindsAreComparedAsNumbers) {
  const Tensor sequence = Tensor::Of<int64_t>({4}, {1, 2, 3, 4});
  const Tensor values = Tensor::Of<float>({6}, {0.5f, 1.5f, 2, 2.5f, -0.5f, 3.9f});
  const auto found = [](const Tensor& in, const Tensor& wanted) {
    return Values<int64_t>(
        OutputsOf({"searchsorted", {{"SortedSequence", in}, {"Values", wanted}}, {"Out"}})[0]);
  };
  EXPECT_THAT(found(sequence, values), ElementsAre(0, 1, 1, 2, 0, 3));
  EXPECT_THAT(found(Tensor::Of<int32_t>({2}, {1, 2}),
                    Tensor::Of<int64_t>({2}, {(int64_t{1} << 32) + 1, -(int64_t{1} << 40)})),
              ElementsAre(2, 0));
}

// The example of Paddle's reindex_heter_graph: edges of two kinds.
TEST(GraphReindexTest, CountsGoOverTheNodesForEachKindOfEdge) {
  const std::vector<Tensor> outputs =
      OutputsOf({"graph_reindex",
                 {{"X", Tensor::Of<int64_t>({3}, {0, 1, 2})},
                  {"Neighbors", Tensor::Of<int64_t>({12}, {8, 9, 0, 4, 7, 6, 7, 0, 2, 3, 5, 1})},
                  {"Count", Tensor::Of<int32_t>({6}, {2, 3, 2, 1, 3, 1})}},
                 {"Reindex_Src", "Reindex_Dst", "Out_Nodes"},
                 "flag_buffer_hashtable=false"});
  EXPECT_THAT(Values<int64_t>(outputs[0]), ElementsAre(3, 4, 0, 5, 6, 7, 6, 0, 2, 8, 9, 1));
  EXPECT_THAT(Values<int64_t>(outputs[1]), ElementsAre(0, 0, 1, 1, 1, 2, 2, 0, 1, 1, 1, 2));
  EXPECT_THAT(Values<int64_t>(outputs[2]), ElementsAre(0, 1, 2, 8, 9, 4, 7, 6, 3, 5));
}

TEST(LogitGradTest, IsZeroWhereLogitHasNoValue) {
  const Tensor x = Tensor::Of<float>({3}, {-0.5f, 1.5f, 0.5f});
  const Tensor grad = Tensor::Of<float>({3}, {1, 1, 1});
  EXPECT_THAT(Values<float>(OutputsOf(
                  {"logit_grad", {{"X", x}, {"Out@GRAD", grad}}, {"X@GRAD"}, "eps=0.0"})[0]),
              ElementsAre(0, 0, 4));
}

}  // namespace
}  // namespace interp::testing::exported_programs_test
