// Runs of cores between operations on arrays.
#include "interpreter/array_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <vector>

#include "core/program_parse.h"
#include "tests/testing/arrays.h"

namespace interp {
namespace {

using testing::ArrayOf;
using ::testing::ElementsAre;
using testing::FailsWith;
using testing::FloatsOf;
using testing::Got;
using testing::IsOk;
using testing::MakeRuntime;

// Out = X once `may_end` says so; an error after a while, so that nothing hangs.
std::atomic<bool> may_end{true};
absl::Status AwaitAndCopy(KernelContext& ctx) {
  const auto late = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!may_end) {
    if (std::chrono::steady_clock::now() > late) return absl::AbortedError("nobody came");
  }
  ctx.output(0).mutable_data<float>()[0] = ctx.input(0).data<float>()[0];
  return absl::OkStatus();
}
INTERP_REGISTER_OP(OpDef{.type = "test_await",
                         .inputs = {{"X"}},
                         .outputs = {{"Out"}},
                         .infer =
                             [](InferContext& ctx) {
                               ctx.ShareShape(0, 0);
                               return absl::OkStatus();
                             },
                         .kernels = {{DType::kFloat32, AwaitAndCopy}}});

class ArrayRun : public ::testing::Test {
 protected:
  // out = x + 1, after `may_end`.
  std::unique_ptr<InterpreterCore> MakeCore() {
    absl::StatusOr<Program> program = ParseProgram(R"(block 0
  var x float32[1]
  var y float32[1]
  var out float32[1]
  test_await(X=x) -> (Out=y)
  scale(X=y) -> (Out=out) {bias=1.0}
)");
    EXPECT_THAT(program, IsOk());
    auto core = InterpreterCore::Create(*std::move(program), {"x"}, {"out"}, nullptr);
    EXPECT_THAT(core, IsOk());
    return *std::move(core);
  }
  Array Double(const Array& x) {
    return Got(Invoke(*runtime_, "scale", {{"X", {x}}}, {{"scale", 2.0F}}));
  }
  std::unique_ptr<ArrayRuntime> runtime_ = MakeRuntime({.engine = {.workers = 2}});
};

TEST_F(ArrayRun, MixesWithOperationsOnArrays) {
  const auto core = MakeCore();
  CoreOnArrays run(*runtime_, *core);
  Array x = ArrayOf(*runtime_, {1}, {1});
  float expected = 1;
  for (int i = 0; i < 20; ++i) {
    const Array out = *runtime_->New({1}, DType::kFloat32);
    ASSERT_THAT(run.Run({x}, {out}), IsOk());
    x = Double(out);
    expected = (expected + 1) * 2;
  }
  EXPECT_THAT(FloatsOf(x), ElementsAre(expected));
}

// The run ends only after an operation that was pushed after it: both were under way at once.
TEST_F(ArrayRun, OverlapsWithOperationsOnOtherArrays) {
  const auto core = MakeCore();
  CoreOnArrays run(*runtime_, *core);
  const Array x = ArrayOf(*runtime_, {1}, {1});
  const Array out = *runtime_->New({1}, DType::kFloat32);
  may_end = false;
  ASSERT_THAT(run.Run({x}, {out}), IsOk());
  EXPECT_THAT(FloatsOf(Double(x)), ElementsAre(2));
  // What comes after the run waits for it, and so does a write of what it reads.
  const Array after = Double(out);
  EXPECT_THAT(x.CopyFrom(ArrayOf(*runtime_, {1}, {7})), IsOk());
  EXPECT_THAT(runtime_->engine().WaitForVar(x.variable(), std::chrono::milliseconds(5)),
              FailsWith(absl::StatusCode::kDeadlineExceeded, ""));
  may_end = true;
  EXPECT_THAT(FloatsOf(after), ElementsAre(4));
  EXPECT_THAT(FloatsOf(x), ElementsAre(7));
}

TEST_F(ArrayRun, ErrorsArriveAtTheFetch) {
  const auto core = MakeCore();
  CoreOnArrays run(*runtime_, *core);
  const Array x = ArrayOf(*runtime_, {1}, {1});
  const Array out = *runtime_->New({1}, DType::kFloat32);
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(run.Run({}, {out}), FailsWith(invalid, "a run has 0 feeds, expected 1"));
  EXPECT_THAT(run.Run({x}, {Array()}), FailsWith(invalid, "number 0 of the fetches is no array"));
  const Array pair = ArrayOf(*runtime_, {2}, {1, 2});
  EXPECT_THAT(run.Run({x}, {*pair.Slice(0, 1)}), FailsWith(invalid, "a view of a part"));
  ASSERT_THAT(run.Run({x}, {pair}), IsOk());
  EXPECT_THAT(pair.Read(),
              FailsWith(invalid, "fetch 0 is float32[1], but its array is float32[2]"));
  ASSERT_THAT(run.Run({pair}, {out}), IsOk());
  EXPECT_THAT(Double(out).Read(), FailsWith(invalid, "operation 'run'"));
  ASSERT_THAT(run.Run({x}, {out}), IsOk());
  EXPECT_THAT(FloatsOf(out), ElementsAre(2));
}

}  // namespace
}  // namespace interp
