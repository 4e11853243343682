// Gradients as values of variables: what the gradients of ops that run blocks take, add up and hand
// on. A gradient is a tensor, an array of tensors or selected rows.
#pragma once

#include "core/op_context.h"
#include "core/status.h"
#include "core/variable.h"

namespace interp::control_flow {

// Argument `i` of a slot; null for @EMPTY@ and where the slot is left out.
inline const Variable* ArgumentOrNull(absl::Span<Variable* const> slot, size_t i) {
  return i < slot.size() ? slot[i] : nullptr;
}

// Whether anything has been put into the variable, or into an element of an array.
bool HasValue(const Variable& variable);
bool HasValue(const Tensor& tensor);

// `to` becomes what `from` is; memory is shared.
void ShareValue(const Variable& from, Variable& to);

// `out` becomes zeros like `like`, of which only shapes are read: a tensor, an array with an
// element for each of its elements, or, where `out` holds selected rows, none of as many rows as
// `like` has. Nothing happens where `like` has no dtype.
absl::Status FillZerosLike(const KernelContext& ctx, const Variable& like, Variable& out);

// Notes in `scopes`, of STEP_SCOPES, the types that tensors have when an op starts to run its
// block.
void NoteTypes(absl::Span<Variable* const> tensors, Variable& scopes);

// FillZerosLike as argument `i` of those was. Where that is not known, as `like` is.
absl::Status FillZerosAsNoted(const KernelContext& ctx, const Variable& scopes, size_t i,
                              const Variable& like, Variable& out);

// A sum over activations, of which the first one added is shared.
class GradientSum {
 public:
  // Adds `value`, which has one. Elements that an array lacks count as zeros, rows are put behind
  // those that are there. InvalidArgument where two values differ in kind, shape or dtype.
  absl::Status Add(const KernelContext& ctx, const Variable& value);
  bool has_value() const { return HasValue(sum_); }
  const Variable& value() const { return sum_; }

 private:
  Variable sum_;
};

}  // namespace interp::control_flow
