// Gradients that steps of `recurrent` hand on where Paddle declares or makes none.
#include "core/program_parse.h"
#include "interpreter/interpreter_core.h"
#include "tests/kernels/op_runs.h"

namespace interp::testing {
namespace {

using ::testing::ElementsAre;

// h = m w + x in each step, and outputs o = h and q = 2 h, of which only o is of use. `state` is
// what the gradient's block does with that of the state s.
std::string TextOf(const std::string& state) {
  return absl::StrCat(R"(block 0
  var x float32[2,1]
  var h0 float32[1]
  var w float32[1] persistable param
  var o float32[2,1]
  var q float32[2,1]
  var scopes step_scopes
  var o@GRAD float32[2,1]
  var q@GRAD float32[2,1]
  var w@GRAD float32[1]
  recurrent(inputs=x, initial_states=h0, parameters=w) -> (outputs=[o, q], step_scopes=scopes) {sub_block=block:1, ex_states=["m"], states=["s"], has_states=true, is_train=true, reverse=false}
  fill_any_like(X=o) -> (Out=o@GRAD) {value=1.0, dtype=5}
  recurrent_grad(inputs=x, initial_states=h0, parameters=w, outputs=[o, q], outputs@GRAD=[o@GRAD, q@GRAD], step_scopes=scopes) -> (inputs@GRAD=@EMPTY@, initial_states@GRAD=@EMPTY@, parameters@GRAD=w@GRAD) {sub_block=block:2, ex_states=["m"], states=["s"], has_states=true, is_train=true, reverse=false}
block 1 parent=0
  var x float32[1]
  var m float32[1]
  var p float32[1]
  var h float32[1]
  var s float32[1]
  var o float32[1]
  var q float32[1]
  elementwise_mul(X=m, Y=w) -> (Out=p)
  elementwise_add(X=p, Y=x) -> (Out=h)
  assign(X=h) -> (Out=s)
  assign(X=h) -> (Out=o)
  scale(X=h) -> (Out=q) {scale=2.0}
block 2 parent=0 forward=1
  var o@GRAD float32[1]
  var h@GRAD float32[1]
  var h@GRAD@0 float32[1]
  var p@GRAD float32[1]
  var m@GRAD float32[1]
  var w@GRAD float32[1]
)",
                      state, R"(  elementwise_add_grad(X=p, Y=x, Out@GRAD=h@GRAD) -> (X@GRAD=p@GRAD)
  elementwise_mul_grad(X=m, Y=w, Out@GRAD=p@GRAD) -> (X@GRAD=m@GRAD, Y@GRAD=w@GRAD)
)");
}

// The gradient by w = 3 of the sum of o, from h0 = 2 and x = 5, 7: o is 11 and 40.
std::vector<float> Gradient(const std::string& state) {
  const absl::StatusOr<Program> program = ParseProgram(TextOf(state));
  EXPECT_THAT(program, IsOk());
  if (!program.ok()) return {};
  auto scope = std::make_shared<Scope>();
  scope->FindOrCreate("w")->tensor = Tensor::Of<float>({1}, {3.0F});
  const auto core = InterpreterCore::Create(*program, {"x", "h0"}, {"w@GRAD"}, scope);
  EXPECT_THAT(core, IsOk());
  if (!core.ok()) return {};
  const auto results =
      (*core)->Run({Tensor::Of<float>({2, 1}, {5.0F, 7.0F}), Tensor::Of<float>({1}, {2.0F})});
  EXPECT_THAT(results, IsOk());
  return results.ok() ? Values<float>((*results)[0]) : std::vector<float>();
}

// Of releases up to 2.5.
TEST(StepGradientsTest, AStateIsReadThoughNobodyDeclaresIt) {
  const std::vector<float> gradient = Gradient(
      "  rnn_memory_helper_grad(X=h, Out=s, Out@GRAD=s@GRAD) -> (X@GRAD=h@GRAD@0)\n"
      "  sum(X=[h@GRAD@0, o@GRAD]) -> (Out=h@GRAD)\n");
  EXPECT_THAT(gradient, ElementsAre(2 + 11 + 3 * 2));
}

// Of 2.6, which drops what would read it.
TEST(StepGradientsTest, AStateNeedsNone) {
  EXPECT_THAT(Gradient("  sum(X=[o@GRAD]) -> (Out=h@GRAD)\n"), ElementsAre(2 + 11));
}

}  // namespace
}  // namespace interp::testing
