// Gradients of a table that blocks look up: selected rows there, and around them what they are
// added to. A table is trained as if its gradients were tensors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/program_parse.h"
#include "interpreter/interpreter_core.h"
#include "passes/train/minimize.h"
#include "tests/testing/matchers.h"

namespace interp::testing::sparse_gradient_blocks_test {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

// `ops` make y of w, ids and the condition c. SPARSE is whether lookups give selected rows.
struct Case {
  std::string name;
  std::string ops;
};

constexpr absl::string_view kBranch =
    "  conditional_block(Cond=c, Input=[w, ids]) -> (Out=t, Scope=scope)"
    " {sub_block=block:1, is_scalar_condition=true}\n";
constexpr absl::string_view kLookupInBranch =
    "block 1 parent=0\n  lookup_table_v2(W=w, Ids=ids) -> (Out=t) {is_sparse=SPARSE}\n";

std::vector<Case> Cases() {
  return {
      {"InABranch",
       absl::StrCat(kBranch, "  scale(X=t) -> (Out=y) {scale=1.0}\n", "LOSS", kLookupInBranch)},
      {"BeforeABranch",
       absl::StrCat("  lookup_table_v2(W=w, Ids=ids) -> (Out=e) {is_sparse=SPARSE}\n", kBranch,
                    "  elementwise_add(X=t, Y=e) -> (Out=y)\n", "LOSS", kLookupInBranch)},
      {"DenseBehindABranch",
       absl::StrCat(kBranch, "  lookup_table_v2(W=w, Ids=ids) -> (Out=e) {is_sparse=false}\n",
                    "  elementwise_add(X=t, Y=e) -> (Out=y)\n", "LOSS", kLookupInBranch)},
      {"InALoop",
       "  fill_constant() -> (Out=i) {shape=[1], value=0.0, dtype=3}\n"
       "  fill_constant() -> (Out=n) {shape=[1], value=3.0, dtype=3}\n"
       "  fill_constant() -> (Out=y) {shape=[2,3], value=0.0, dtype=5}\n"
       "  less_than(X=i, Y=n) -> (Out=go)\n"
       "  while(X=[w, ids, y, i, n], Condition=go) -> (Out=[y, i, go], StepScopes=scope)"
       " {sub_block=block:1, is_test=false}\n"
       "LOSS"
       "block 1 parent=0\n  var z float32[2,3]\n  var row float32[2,3]\n"
       "  lookup_table_v2(W=w, Ids=ids) -> (Out=row) {is_sparse=SPARSE}\n"
       "  elementwise_add(X=y, Y=row) -> (Out=z)\n  assign(X=z) -> (Out=y)\n"
       "  increment(X=i) -> (Out=i) {step=1.0}\n  less_than(X=i, Y=n) -> (Out=go)\n"},
  };
}

std::string TextOf(const Case& test, bool is_sparse) {
  return absl::StrCat(
      "block 0\n  var c bool[1] stop_gradient\n  var ids int64[2] stop_gradient\n"
      "  var i int64[1] stop_gradient\n  var n int64[1] stop_gradient\n"
      "  var go bool[1] stop_gradient\n  var w float32[5,3] persistable param\n"
      "  var y float32[2,3]\n  var e float32[2,3]\n  var t float32[2,3]\n"
      "  var scope step_scopes\n  var loss float32[]\n",
      absl::StrReplaceAll(test.ops, {{"SPARSE", is_sparse ? "true" : "false"},
                                     {"LOSS", "  mean(X=y) -> (Out=loss)\n"}}));
}

// The table after a step in which the same row is looked up twice.
absl::StatusOr<std::vector<float>> Trained(const std::string& text, const std::string& optimizer) {
  INTERP_ASSIGN_OR_RETURN(const Program forward, ParseProgram(text));
  INTERP_ASSIGN_OR_RETURN(const OptimizerSpec spec, ParseOptimizerSpec(optimizer));
  Program empty;
  empty.blocks.emplace_back();
  INTERP_ASSIGN_OR_RETURN(
      TrainingPrograms programs,
      Minimize(forward, empty, {.backward = {.loss = "loss"}, .optimizer = spec},
               OpRegistry::Global()));
  auto scope = std::make_shared<Scope>();
  INTERP_ASSIGN_OR_RETURN(const auto startup,
                          InterpreterCore::Create(std::move(programs.startup), {}, {}, scope));
  INTERP_RETURN_IF_ERROR(startup->Run({}).status());
  std::vector<float> start(15);
  for (size_t i = 0; i < start.size(); ++i) start[i] = static_cast<float>(i);
  scope->FindOrCreate("w")->tensor = Tensor::Of<float>({5, 3}, start);
  INTERP_ASSIGN_OR_RETURN(const auto core,
                          InterpreterCore::Create(std::move(programs.main), {"c", "ids"}, {"loss"},
                                                  scope, {.check_feed_shapes = false}));
  INTERP_RETURN_IF_ERROR(
      core->Run({Tensor::Of<bool>({1}, {true}), Tensor::Of<int64_t>({2}, {2, 2})}).status());
  const Tensor& w = scope->FindOrCreate("w")->tensor;
  return std::vector<float>(w.data<float>(), w.data<float>() + w.numel());
}

class SparseGradientBlocks : public ::testing::TestWithParam<Case> {};

TEST_P(SparseGradientBlocks, TrainAsTensorsDo) {
  for (const std::string more :
       {"", ",grad_clip_global_norm=0.1", ",weight_decay=0.1", ",grad_clip_norm=0.1"}) {
    SCOPED_TRACE(more);
    const std::string optimizer = absl::StrCat("sgd:learning_rate=1", more);
    const auto sparse = Trained(TextOf(GetParam(), true), optimizer);
    const auto dense = Trained(TextOf(GetParam(), false), optimizer);
    ASSERT_THAT(sparse, IsOk());
    ASSERT_THAT(dense, IsOk());
    EXPECT_NE((*dense)[6], 6);
    EXPECT_THAT(*sparse, Pointwise(FloatNear(1e-5), *dense));
  }
}
INSTANTIATE_TEST_SUITE_P(Cases, SparseGradientBlocks, ::testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace interp::testing::sparse_gradient_blocks_test
