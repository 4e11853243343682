// Scales that a test of quantisation-aware training takes from where training has left them.
#include "core/program_parse.h"
#include "interpreter/interpreter_core.h"
#include "tests/kernels/op_runs.h"

namespace interp::testing {
namespace {

using ::testing::ElementsAre;

constexpr absl::string_view kProgram = R"(block 0
  var x float32[2,2]
  var w float32[2,2] persistable param
  var c float32[2] persistable
  var s float32[1] persistable
  var q float32[2,2]
  var b float32[2,2]
  var y float32[2,2]
  fake_channel_wise_quantize_abs_max(X=w) -> (Out=q, OutScale=c) {bit_length=8, quant_axis=0, is_test=true}
  fake_channel_wise_dequantize_max_abs(X=q, Scales=[c]) -> (Out=b) {quant_bits=[8], quant_axis=0}
  elementwise_mul(X=x, Y=b) -> (Out=y)
  moving_average_abs_max_scale(X=y) -> (OutScale=s) {is_test=true}
)";

// Of weights by the scales 2 and 8, with x = 1; s is 5.
std::vector<float> Weights(const std::vector<std::string>& passes) {
  const absl::StatusOr<Program> program = ParseProgram(kProgram);
  EXPECT_THAT(program, IsOk());
  if (!program.ok()) return {};
  auto scope = std::make_shared<Scope>();
  scope->FindOrCreate("w")->tensor = Tensor::Of<float>({2, 2}, {3.0F, -1.0F, 4.0F, 8.0F});
  scope->FindOrCreate("c")->tensor = Tensor::Of<float>({2}, {2.0F, 8.0F});
  scope->FindOrCreate("s")->tensor = Tensor::Of<float>({1}, {5.0F});
  CoreOptions options;
  options.passes.disable = passes;
  const auto core = InterpreterCore::Create(*program, {"x"}, {"y"}, scope, options);
  EXPECT_THAT(core, IsOk());
  if (!core.ok()) return {};
  const Tensor x = Tensor::Of<float>({2, 2}, {1.0F, 1.0F, 1.0F, 1.0F});
  const auto results = (*core)->Run({x});
  EXPECT_THAT(results, IsOk());
  if (!results.ok()) return {};
  EXPECT_THAT(Values<float>(scope->Find("s")->tensor), ElementsAre(5));
  EXPECT_THAT(Values<float>(scope->Find("c")->tensor), ElementsAre(2, 8));
  return Values<float>((*results)[0]);
}

// 3 is beyond the grid of 2; -1 and 4 are -64 and 64 of its 127 steps.
TEST(KeptScalesTest, WeightsGoOntoTheGridThatTrainingHasLeft) {
  for (const auto& without : {std::vector<std::string>{}, std::vector<std::string>{"prune"}}) {
    EXPECT_THAT(Weights(without),
                ElementsAre(::testing::FloatEq(2), ::testing::FloatEq(2.0F * -64 / 127),
                            ::testing::FloatEq(8.0F * 64 / 127), ::testing::FloatEq(8)));
  }
}

}  // namespace
}  // namespace interp::testing
