#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "core/program_parse.h"
#include "interpreter/train/trainer.h"
#include "tests/testing/matchers.h"
#include "tests/testing/rank_team.h"

namespace interp::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

absl::StatusOr<std::vector<Tensor>> Coalesce(const std::string& attrs) {
  INTERP_ASSIGN_OR_RETURN(
      Program program,
      ParseProgram("block 0\n"
                   "  var a float32[2]\n"
                   "  var b float32[1,1]\n"
                   "  coalesce_tensor(Input=[a, b]) -> (Output=[c, d], FusedOutput=f) {" +
                   attrs + "}\n"));
  INTERP_ASSIGN_OR_RETURN(const auto core, InterpreterCore::Create(std::move(program), {"a", "b"},
                                                                   {"c", "d", "f"}, nullptr));
  return core->Run({Tensor::Of<float>({2}, {1, 2}), Tensor::Of<float>({1, 1}, {3})});
}

TEST(CoalesceTensorTest, JoinsWhatItCopies) {
  const auto out = Coalesce("use_align=true, align_size=8, copy_data=true");
  ASSERT_THAT(out, IsOk());
  EXPECT_THAT(Values<float>((*out)[0]), ElementsAre(1, 2));
  EXPECT_THAT(Values<float>((*out)[1]), ElementsAre(3));
  EXPECT_THAT(Values<float>((*out)[2]), ElementsAre(1, 2, 3, 0));
}

TEST(CoalesceTensorTest, SetsAConstant) {
  const auto out = Coalesce("use_align=false, set_constant=true, constant=0.5");
  ASSERT_THAT(out, IsOk());
  EXPECT_THAT(Values<float>((*out)[2]), ElementsAre(0.5F, 0.5F, 0.5F));
}

// 2 elements count 4 bytes here, one counts 2: each takes one alignment of 8, which is 4 elements.
TEST(CoalesceTensorTest, PadsByTheSizeOfElementsThatItIsTold) {
  const auto out =
      Coalesce("use_align=true, align_size=8, user_defined_size_of_dtype=2, copy_data=true");
  ASSERT_THAT(out, IsOk());
  EXPECT_THAT(Values<float>((*out)[2]), ElementsAre(1, 2, 0, 0, 3, 0, 0, 0));
  EXPECT_THAT(Coalesce("user_defined_size_of_dtype=17"),
              FailsWith(absl::StatusCode::kInvalidArgument, "at most 16 bytes"));
}

TEST(CoalesceTensorTest, CopiesOrSets) {
  EXPECT_THAT(Coalesce("copy_data=true, set_constant=true"),
              FailsWith(absl::StatusCode::kInvalidArgument, "exclude each other"));
}

// Runs `ops` on x = [1, 2] and z = [3, 4, 5].
absl::StatusOr<std::vector<Tensor>> RunOnTwo(const std::string& ops,
                                             const std::vector<std::string>& fetches) {
  INTERP_ASSIGN_OR_RETURN(Program program, ParseProgram("block 0\n"
                                                        "  var x float32[2]\n"
                                                        "  var z float32[3]\n" +
                                                        ops));
  INTERP_ASSIGN_OR_RETURN(
      const auto core, InterpreterCore::Create(std::move(program), {"x", "z"}, fetches, nullptr));
  return core->Run({Tensor::Of<float>({2}, {1, 2}), Tensor::Of<float>({3}, {3, 4, 5})});
}

TEST(CoalesceTensorTest, PartsThatAreNoneAreRefused) {
  for (const std::string op :
       {"coalesce_tensor(Input=[x, @EMPTY@]) -> (Output=[a, b], FusedOutput=f)",
        "coalesce_tensor(Input=[x, z]) -> (Output=[a, @EMPTY@], FusedOutput=f)",
        "join_coalesced(X=[x, @EMPTY@]) -> (Out=f)",
        "split_coalesced(X=x, Like=[x, @EMPTY@]) -> (Out=[f, a]) {use_align=false}",
        "split_coalesced(X=x, Like=[x, z]) -> (Out=[f, @EMPTY@]) {use_align=false}"}) {
    EXPECT_THAT(RunOnTwo(absl::StrCat("  ", op, "\n"), {"f"}),
                FailsWith(absl::StatusCode::kInvalidArgument, "is @EMPTY@"))
        << op;
  }
}

TEST(CoalesceTensorTest, APartThatIsJoinedAnewLeavesTheOlderWholeItsValues) {
  for (const std::string copy : {"true", "false"}) {
    const std::string attrs = "{use_align=false, copy_data=" + copy + "}\n";
    const auto out = RunOnTwo(
        absl::StrCat("  coalesce_tensor(Input=[x, z]) -> (Output=[a, b], FusedOutput=f) ", attrs,
                     "  scale(X=x) -> (Out=a) {scale=10.0}\n"
                     "  scale(X=z) -> (Out=b) {scale=10.0}\n"
                     "  coalesce_tensor(Input=[x, z]) -> (Output=[a, c], FusedOutput=g) ",
                     attrs,
                     "  scale(X=x) -> (Out=a) {scale=7.0}\n"
                     "  scale(X=z) -> (Out=c) {scale=7.0}\n"
                     "  scale(X=g) -> (Out=g) {scale=2.0}\n"
                     "  scale(X=f) -> (Out=yf)\n"
                     "  scale(X=a) -> (Out=ya)\n"
                     "  scale(X=b) -> (Out=yb)\n"),
        {"yf", "ya", "yb"});
    ASSERT_THAT(out, IsOk()) << copy;
    EXPECT_THAT(Values<float>((*out)[0]), ElementsAre(10, 20, 30, 40, 50)) << copy;
    EXPECT_THAT(Values<float>((*out)[1]), ElementsAre(14, 28)) << copy;
    EXPECT_THAT(Values<float>((*out)[2]), ElementsAre(30, 40, 50)) << copy;
  }
}

TEST(CoalesceTensorTest, AWholeThatIsMadeAnewWhileItsOlderPartsAreInUseIsRefused) {
  EXPECT_THAT(
      RunOnTwo("  coalesce_tensor(Input=[x, z]) -> (Output=[a, b], FusedOutput=f) {copy_data=true}"
               "\n  coalesce_tensor(Input=[x, z]) -> (Output=[c, d], FusedOutput=f) "
               "{copy_data=true}\n  scale(X=a) -> (Out=ya)\n",
               {"ya"}),
      FailsWith(absl::StatusCode::kUnimplemented, "FusedOutput 'f' shares its memory"));
}

TEST(CoalesceTensorTest, AShapeThatIsReadBeforeTheValuesIsThere) {
  const auto out = RunOnTwo(
      "  coalesce_tensor(Input=[x, z]) -> (Output=[a, b], FusedOutput=f) {use_align=false}\n"
      "  fill_any_like(X=f) -> (Out=t) {value=5.0}\n"
      "  relu(X=x) -> (Out=a)\n"
      "  relu(X=z) -> (Out=b)\n"
      "  scale(X=f) -> (Out=y)\n"
      "  scale(X=t) -> (Out=yt)\n",
      {"y", "yt"});
  ASSERT_THAT(out, IsOk());
  EXPECT_THAT(Values<float>((*out)[0]), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(Values<float>((*out)[1]), ElementsAre(5, 5, 5, 5, 5));
}

// A line through points, as fleet writes its training for several trainers: `fuse` is what makes
// the gradients one tensor, and `sum` what adds that up over the ranks.
std::string LineProgram(const std::string& fuse, const std::string& sum, float loss_gradient) {
  return absl::StrCat(R"(block 0
  var w float32[2,1] param
  var b float32[1] param
  var lr float32[1] persistable
  var x float32[-1,2] check_feed
  var y float32[-1,1] check_feed
  var q float32[-1,1]
  var loss float32[]
  var b@GRAD float32[1]
  var w@GRAD float32[2,1]
  mul(X=x, Y=w) -> (Out=m)
  elementwise_add(X=m, Y=b) -> (Out=p) {axis=1}
  elementwise_sub(X=p, Y=y) -> (Out=d)
  square(X=d) -> (Out=q)
  reduce_mean(X=q) -> (Out=loss) {reduce_all=true, op_role=256}
)",
                      fuse, "  fill_constant() -> (Out=loss@GRAD) {dtype=5, value=", loss_gradient,
                      R"(, op_role=257}
  reduce_mean_grad(X=q, Out@GRAD=loss@GRAD) -> (X@GRAD=q@GRAD) {reduce_all=true, op_role=1}
  square_grad(X=d, Out@GRAD=q@GRAD) -> (X@GRAD=d@GRAD) {op_role=1}
  elementwise_sub_grad(X=p, Y=y, Out@GRAD=d@GRAD) -> (X@GRAD=p@GRAD) {op_role=1}
  elementwise_add_grad(X=m, Y=b, Out@GRAD=p@GRAD) -> (X@GRAD=m@GRAD, Y@GRAD=b@GRAD) {axis=1, op_role=1}
  mul_grad(X=x, Y=w, Out@GRAD=m@GRAD) -> (Y@GRAD=w@GRAD) {op_role=1}
)",
                      sum,
                      R"(  sgd(Param=w, Grad=w@GRAD, LearningRate=lr) -> (ParamOut=w) {op_role=2}
  sgd(Param=b, Grad=b@GRAD, LearningRate=lr) -> (ParamOut=b) {op_role=2}
)");
}

constexpr char kFuse[] =
    "  coalesce_tensor(Input=[b, w]) -> (Output=[b@GRAD, w@GRAD], FusedOutput=f) "
    "{use_align=true, align_size=-1, copy_data=false, dtype=5, op_role=1}\n";
constexpr char kSum[] =
    "  c_allreduce_sum(X=f) -> (Out=f) {ring_id=0, use_calc_stream=false, op_role=1}\n"
    "  depend(X=b@GRAD, Dep=f) -> (Out=b@GRAD)\n"
    "  depend(X=w@GRAD, Dep=f) -> (Out=w@GRAD)\n";

// w and b after five steps on samples [first, last) of eight.
absl::StatusOr<std::vector<float>> TrainLine(const std::string& text, int64_t first, int64_t last,
                                             const std::shared_ptr<Rings>& rings) {
  INTERP_ASSIGN_OR_RETURN(Program program, ParseProgram(text));
  INTERP_ASSIGN_OR_RETURN(
      const auto trainer,
      Trainer::Create(std::move(program), nullptr,
                      {.feeds = {"x", "y"}, .fetches = {"loss"}, .core = {.rings = rings}}));
  Scope& scope = *trainer->scope();
  scope.FindOrCreate("w")->tensor = Tensor::Of<float>({2, 1}, {0.5F, -0.25F});
  scope.FindOrCreate("b")->tensor = Tensor::Of<float>({1}, {0.125F});
  scope.FindOrCreate("lr")->tensor = Tensor::Of<float>({1}, {0.1F});
  std::vector<float> x;
  std::vector<float> y;
  for (int64_t i = first; i < last; ++i) {
    x.insert(x.end(), {static_cast<float>(i % 3), static_cast<float>(i % 4) - 1});
    y.push_back(static_cast<float>(i % 5) * 0.5F);
  }
  for (int step = 0; step < 5; ++step) {
    INTERP_RETURN_IF_ERROR(trainer
                               ->Step({Tensor::Of<float>({last - first, 2}, x),
                                       Tensor::Of<float>({last - first, 1}, y)})
                               .status());
  }
  std::vector<float> result = Values<float>(scope.Find("w")->tensor);
  result.push_back(Values<float>(scope.Find("b")->tensor)[0]);
  return result;
}

TEST(CoalesceTensorTest, GradientsThatFleetFusesAreSummedOverTheRanks) {
  const auto whole = TrainLine(LineProgram("", "", /*loss_gradient=*/1), 0, 8, nullptr);
  ASSERT_THAT(whole, IsOk());
  for (const int size : {1, 2, 4}) {
    const std::string text = LineProgram(kFuse, kSum, 1.0F / static_cast<float>(size));
    const auto statuses =
        OnAllRanks({.size = size}, {.timeout = std::chrono::seconds(60), .check = true},
                   [&](const std::shared_ptr<Rings>& rings, ThreadRanks&) {
                     const int64_t share = 8 / size;
                     const int64_t first = rings->rank() * share;
                     INTERP_ASSIGN_OR_RETURN(const std::vector<float> own,
                                             TrainLine(text, first, first + share, rings));
                     EXPECT_THAT(own, Pointwise(FloatNear(1e-6F), *whole)) << size;
                     return absl::OkStatus();
                   });
    for (const absl::Status& status : statuses) EXPECT_THAT(status, IsOk());
  }
}

TEST(CoalesceTensorTest, PartsThatDoNotFitTheWholeAreAnError) {
  auto program = ParseProgram(
      "block 0\n"
      "  var x float32[3]\n"
      "  var a float32[2]\n"
      "  split_coalesced(X=x, Like=a) -> (Out=y) {use_align=false}\n");
  ASSERT_THAT(program, IsOk());
  const auto core = InterpreterCore::Create(*std::move(program), {"x", "a"}, {"y"}, nullptr);
  ASSERT_THAT(core, IsOk());
  EXPECT_THAT((*core)->Run({Tensor::Of<float>({3}, {1, 2, 3}), Tensor::Of<float>({2}, {1, 2})}),
              FailsWith(absl::StatusCode::kInvalidArgument, "'X' has 3 elements, expected the 2"));
}

}  // namespace
}  // namespace interp::testing
