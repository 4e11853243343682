// Programs of quantisation-aware training by Paddle (tests/goldens/make_int8_programs.py), in
// float32 and in int8, beside what Paddle computes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "core/io/npy.h"
#include "core/program_parse.h"
#include "interpreter/interpreter_core.h"
#include "interpreter/load_model.h"
#include "passes/quant/int8.h"
#include "tests/testing/matchers.h"

namespace interp {
namespace {

using testing::FailsWith;
using testing::IsOk;

struct Ran {
  Tensor output;
  int64_t int8_ops = 0;  // convolutions and products
  int64_t fake_ops = 0;  // ops of training that are left
  int64_t pairs = 0;     // of ops of which one is to be made
};

Tensor ReadArray(const std::string& path) {
  absl::StatusOr<Tensor> array = ReadNpy(path);
  EXPECT_THAT(array, IsOk());
  return array.ok() ? *std::move(array) : Tensor();
}

absl::StatusOr<Ran> RunProgram(const std::string& folder, bool int8) {
  INTERP_ASSIGN_OR_RETURN(Model model, LoadModel(folder + "/model.pdmodel", std::nullopt));
  CoreOptions options;
  if (int8) options.passes.enable = {"int8"};
  INTERP_ASSIGN_OR_RETURN(
      auto core, InterpreterCore::Create(std::move(model.program), {}, {}, model.scope, options));
  INTERP_ASSIGN_OR_RETURN(std::vector<Tensor> outputs,
                          core->Run({ReadArray(folder + "/in_x.npy")}));
  Ran ran;
  ran.output = outputs[0];
  for (const Instruction& instruction : core->plan().instructions) {
    const std::string type(instruction.op_type);
    const bool fake = absl::StartsWith(type, "fake_") || absl::EndsWith(type, "quantize_linear");
    ran.fake_ops += fake ? 1 : 0;
    ran.pairs += type == "quantize_linear" ? 1 : 0;
    ran.int8_ops += absl::StartsWith(type, "int8_") ? 1 : 0;
  }
  return ran;
}

class Int8ProgramTest : public ::testing::TestWithParam<const char*> {};

TEST_P(Int8ProgramTest, ComputesWhatPaddleComputesInFloat) {
  const std::string folder = std::string(INTERP_BINARY_DIR "/goldens/int8/") + GetParam();
  const Tensor expected = ReadArray(folder + "/out_y.npy");
  for (const bool int8 : {false, true}) {
    const absl::StatusOr<Ran> ran = RunProgram(folder, int8);
    ASSERT_THAT(ran, IsOk());
    ASSERT_EQ(ran->output.shape, expected.shape);
    float largest = 0;
    for (int64_t i = 0; i < expected.numel(); ++i) {
      largest = std::max(largest, std::abs(expected.data<float>()[i]));
    }
    for (int64_t i = 0; i < expected.numel(); ++i) {
      // A value that rounding brings to the other side of a tie moves results by some steps of
      // 1/127.
      EXPECT_NEAR(ran->output.data<float>()[i], expected.data<float>()[i], 0.02 * largest)
          << "int8 " << int8 << ", element " << i;
    }
    EXPECT_EQ(ran->int8_ops, int8 ? 7 : 0);
    const bool sums_on_grids = GetParam() == std::string("observed");
    EXPECT_EQ(ran->fake_ops == 0, int8 && !sums_on_grids);
    EXPECT_EQ(ran->pairs, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, Int8ProgramTest,
                         ::testing::Values("fake", "frozen", "stored", "linear", "observed"));

// Whole numbers that nothing brings back as int8 would do it stay in float32.
TEST(Int8ProgramTest, FormsThatMeanOtherValuesAreLeftAlone) {
  const std::string vars =
      "block 0\n  var x float32[1,3,4,4]\n  var s float32[1] persistable\n"
      "  var w float32[2,3,1,1] persistable\n  var ws float32[2] persistable\n"
      "  var b float32[2] persistable\n  var t float32[1]\n  var a float32[1,3,4,4]\n"
      "  var q float32[2,3,1,1]\n  var qs float32[1]\n  var y float32[1,2,4,4]\n"
      "  var z float32[1,2,4,4]\n"
      "  fake_quantize_moving_average_abs_max(X=x, InScale=s) -> (Out=a, OutScale=t) "
      "{is_test=true}\n";
  const std::string back =
      "  fake_dequantize_max_abs(X=y, Scale=s) -> (Out=z) {max_range=16129.0}\n";
  for (const std::string& rest : std::vector<std::string>{
           // a bias in units of the sums
           "  conv2d(Input=a, Filter=w, Bias=b) -> (Output=y)\n" + back,
           // weights that go onto a grid by a scale that nothing takes back
           "  fake_quantize_abs_max(X=w) -> (Out=q, OutScale=qs)\n"
           "  conv2d(Input=a, Filter=q) -> (Output=y)\n" +
               back,
           // and by another than the one that is taken back
           ("  fake_channel_wise_quantize_abs_max(X=w) -> (Out=q, OutScale=qs)\n"
            "  conv2d(Input=a, Filter=q) -> (Output=y)\n"
            "  fake_channel_wise_dequantize_max_abs(X=y, Scales=[ws, s]) -> (Out=z) "
            "{quant_bits=[8,8], x_num_col_dims=1}\n"),
           // a scale that another op writes, too
           "  fill_constant() -> (Out=t) {shape=[1], dtype=5, value=50.0}\n"
           "  conv2d(Input=a, Filter=w) -> (Output=y)\n"
           "  fake_dequantize_max_abs(X=y, Scale=t) -> (Out=z) {max_range=16129.0}\n"}) {
    const absl::StatusOr<Program> program = ParseProgram(vars + rest);
    ASSERT_THAT(program, IsOk());
    EXPECT_THAT(ComputeInInt8(*program, PassContext{.ops = OpRegistry::Global()}),
                FailsWith(absl::StatusCode::kFailedPrecondition, "nothing to compute in int8"))
        << rest;
  }
}

TEST(Int8ProgramTest, AProgramWithoutSuchOpsIsRefusedClearly) {
  const absl::StatusOr<Ran> ran =
      RunProgram(INTERP_BINARY_DIR "/goldens/set_a/programs/infer_cnn", /*int8=*/true);
  EXPECT_THAT(ran.status(),
              FailsWith(absl::StatusCode::kFailedPrecondition, "nothing to compute in int8"));
}

}  // namespace
}  // namespace interp
