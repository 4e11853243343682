// Programs of floats of 16 bits: ops without such a kernel compute in float32, beside others that
// have one, in loops, and where a parameter of 16 bits is written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/program_parse.h"
#include "interpreter/interpreter_core.h"
#include "tests/kernels/op_runs.h"
#include "tests/testing/matchers.h"

namespace interp::testing::half_programs_test {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

// conv, activation, pooling, softmax in `dtype`, fed and fetched in float32.
std::string NetOf(const std::string& dtype, int number) {
  std::string text =
      "block 0\n  var x float32[1,2,4,4]\n  var w float32[3,2,3,3]\n"
      "  var out float32[1,3]\n";
  for (const char* var : {"xh", "c", "r", "p", "wh"}) {
    absl::StrAppend(&text, "  var ", var, " ", dtype, "[-1,-1,-1,-1]\n");
  }
  return absl::StrCat(text, "  var y ", dtype, "[-1,3]\n  var f ", dtype, "[-1,3]\n",
                      "  cast(X=x) -> (Out=xh) {in_dtype=5, out_dtype=", number, "}\n",
                      "  cast(X=w) -> (Out=wh) {in_dtype=5, out_dtype=", number, "}\n",
                      "  conv2d(Input=xh, Filter=wh) -> (Output=c)"
                      " {strides=[1, 1], paddings=[1, 1], dilations=[1, 1]}\n"
                      "  tanh(X=c) -> (Out=r)\n"
                      "  pool2d(X=r) -> (Out=p) {pooling_type=\"avg\", ksize=[4, 4],"
                      " global_pooling=true}\n"
                      "  reshape(X=p) -> (Out=f) {shape=[1, 3]}\n"
                      "  softmax(X=f) -> (Out=y) {axis=-1}\n"
                      "  cast(X=y) -> (Out=out) {in_dtype=",
                      number, ", out_dtype=5}\n");
}

std::vector<float> ResultOf(const std::string& text, const CoreOptions& options) {
  const absl::StatusOr<Program> program = ParseProgram(text);
  EXPECT_THAT(program, IsOk());
  const auto core = InterpreterCore::Create(*program, {"x", "w"}, {"out"}, nullptr, options);
  EXPECT_THAT(core, IsOk());
  if (!core.ok()) return {};
  const auto out = (*core)->Run({Numbers({1, 2, 4, 4}, 1), Numbers({3, 2, 3, 3}, 2)});
  EXPECT_THAT(out, IsOk());
  return out.ok() ? Values<float>((*out)[0]) : std::vector<float>();
}

TEST(HalfProgramTest, OpsWithoutAKernelComputeInFloat32) {
  CoreOptions on_device;
  on_device.plan.place = {PlaceKind::kSim, 0};
  const std::vector<float> expected = ResultOf(NetOf("float32", 5), {});
  for (const CoreOptions& options : {CoreOptions(), on_device}) {
    EXPECT_THAT(ResultOf(NetOf("float16", 4), options), Pointwise(FloatNear(2e-3f), expected));
    EXPECT_THAT(ResultOf(NetOf("bfloat16", 22), options), Pointwise(FloatNear(1e-2f), expected));
  }
}

TEST(HalfProgramTest, AFetchIsWhatTheProgramDeclares) {
  absl::StatusOr<Program> program = ParseProgram(
      "block 0\n  var x float16[2,3]\n  var y float16[2,3]\n  var z float32[2,3]\n"
      "  softmax(X=x) -> (Out=y) {axis=-1}\n  cast(X=y) -> (Out=z) {in_dtype=4, out_dtype=5}\n");
  ASSERT_THAT(program, IsOk());
  const auto core = InterpreterCore::Create(*program, {"x"}, {"y", "z"}, nullptr);
  ASSERT_THAT(core, IsOk());
  const auto out = (*core)->Run({Tensor::Of<float16>({2, 3}, std::vector<float16>(6))});
  ASSERT_THAT(out, IsOk());
  EXPECT_EQ((*out)[0].dtype, DType::kFloat16);
  EXPECT_EQ((*out)[1].dtype, DType::kFloat32);
  EXPECT_NEAR(static_cast<float>((*out)[0].data<float16>()[0]), 1.0f / 3, 1e-3);
}

// h = softmax(h), n times; h is carried as float16.
TEST(HalfProgramTest, LoopsCarryWhatTheyDeclare) {
  const auto text = [](const std::string& dtype, int number) {
    return absl::StrCat(
        "block 0\n  var x float32[1,3]\n  var w float32[1]\n  var out float32[1,3]\n  var h ",
        dtype,
        "[1,3]\n  var i int64[1]\n  var n int64[1]\n  var go bool[1]\n"
        "  var steps step_scopes\n  cast(X=x) -> (Out=h) {in_dtype=5, out_dtype=",
        number,
        "}\n  fill_constant() -> (Out=i) {shape=[1], dtype=3, value=0.0}\n"
        "  fill_constant() -> (Out=n) {shape=[1], dtype=3, value=3.0}\n"
        "  less_than(X=i, Y=n) -> (Out=go)\n"
        "  while(X=[i, n, h], Condition=go) -> (Out=[i, h, go], StepScopes=steps)"
        " {sub_block=block:1}\n  cast(X=h) -> (Out=out) {in_dtype=",
        number, ", out_dtype=5}\nblock 1 parent=0\n  var s ", dtype,
        "[1,3]\n  softmax(X=h) -> (Out=s) {axis=-1}\n  scale(X=s) -> (Out=h) {scale=2.0}\n"
        "  increment(X=i) -> (Out=i) {step=1.0}\n  less_than(X=i, Y=n) -> (Out=go)\n");
  };
  const auto run = [](const std::string& program_text) {
    const absl::StatusOr<Program> program = ParseProgram(program_text);
    EXPECT_THAT(program, IsOk());
    const auto core = InterpreterCore::Create(*program, {"x"}, {"out"}, nullptr);
    EXPECT_THAT(core, IsOk());
    if (!core.ok()) return std::vector<float>();
    const auto out = (*core)->Run({Numbers({1, 3}, 1)});
    EXPECT_THAT(out, IsOk());
    return out.ok() ? Values<float>((*out)[0]) : std::vector<float>();
  };
  EXPECT_THAT(run(text("float16", 4)), Pointwise(FloatNear(2e-3f), run(text("float32", 5))));
}

// The state of a layer is written in its own dtype.
TEST(HalfProgramTest, ParametersKeepTheirDType) {
  const absl::StatusOr<Program> program = ParseProgram(
      "block 0\n  var x float16[2,3]\n  var s float16[2,3] persistable\n"
      "  softmax(X=x) -> (Out=s) {axis=-1}\n");
  ASSERT_THAT(program, IsOk());
  auto scope = std::make_shared<Scope>();
  const auto core = InterpreterCore::Create(*program, {"x"}, {"s"}, scope);
  ASSERT_THAT(core, IsOk());
  const Tensor x = Tensor::Of<float16>({2, 3}, std::vector<float16>(6, float16(1.0f)));
  const auto out = (*core)->Run({x});
  ASSERT_THAT(out, IsOk());
  EXPECT_EQ(scope->Find("s")->tensor.dtype, DType::kFloat16);
  EXPECT_NEAR(static_cast<float>(scope->Find("s")->tensor.data<float16>()[0]), 1.0f / 3, 1e-3f);
}

}  // namespace
}  // namespace interp::testing::half_programs_test
