// FoldConstants: instructions that make the same of constants in every run.
#pragma once

#include "core/op_def.h"
#include "core/status.h"
#include "interpreter/analysis/blocks.h"
#include "interpreter/plan/plan.h"

namespace interp {

// Results of an instruction that are larger than this and than kFoldGrowth times its inputs are
// made in every run: an op that fills a large tensor costs less than keeping what it makes.
inline constexpr uint64_t kFoldAnywayBytes = uint64_t{1} << 20;
inline constexpr uint64_t kFoldGrowth = 4;
// Results that are kept of one block, beside as much as its constants take: weights are mostly made
// of one parameter each. While they are made, with what goes at once, they may take twice that;
// else none is.
inline constexpr uint64_t kFoldTotalBytes = uint64_t{16} << 20;

// Moves instructions of the plan of `block` whose inputs are all constants, parameters that nobody
// writes or results of others of these, from `instructions` to `folded`, in program order, and
// marks what they write as constant and PlanVar::folded. A frame runs them before its first
// activation instead of in each (FoldedConstants).
//
//   fill_constant() -> (Out=two)                       folded: fill_constant() -> (Out=two)
//   elementwise_div(X=w, Y=two) -> (Out=half)  becomes         elementwise_div(X=w, Y=two) ->
//   (Out=half) mul(X=x, Y=half) -> (Out=y)                                mul(X=x, Y=half) ->
//   (Out=y)
//
// Such an instruction draws no random numbers, has no effect, runs no block, gives its outputs
// memory by their shapes, and has a kernel of the host; it runs there. Its outputs are tensors of
// this block alone that nothing else writes, nobody reads before, and whose declared shapes are
// known and small enough (above). Casts of parameters are left to InsertTransfers.
//
// No output takes over the memory of a folded variable any more. To kernels it is a constant, of
// which they keep what they compute, packed weights above all: results may round otherwise than
// without folding. Does nothing unless PlanOptions::fold_constants. REQUIRES: SelectKernels; before
// ChooseHomes. Linear.
void FoldConstants(const BlockTree& tree, int32_t block, Plan& plan);

}  // namespace interp
