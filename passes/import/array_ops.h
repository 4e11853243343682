#pragma once

#include <vector>

#include "passes/pass.h"

namespace interp {

inline constexpr absl::string_view kArrayOpsPass = "array_ops";

// Gives ops that do something else to a tensor array than to a tensor types of their own, by which
// what follows knows what they take and give. The names are those of Paddle's kernels.
//
//   slice(Input=list) -> (Out=part)   becomes   slice_array(Input=list) -> (Out=part)
//   slice(Input=list) -> (Out=item)   becomes   slice_array_dense(Input=list) -> (Out=item)
//
// where `list` and `part` are arrays and `item` is a tensor; strided_slice, reverse and gradients
// alike. What fill_any_like makes of an array is one, whatever its declaration says. Linear time
// but for such declarations.
absl::StatusOr<Program> NameArrayOps(Program program, const PassContext& context);

// Whether ops of that type may take an array, by the name of another.
bool HasArrayForm(const Op& op);
// By VarId: whether a block declares an array of that name.
std::vector<bool> FindArrays(const Program& program);
// Declares variables, by VarId, as arrays where they are declared as tensors or not at all.
void DeclareArrays(const std::vector<bool>& arrays, Program& program);

}  // namespace interp
