// Form: where a variable's tensor lies, as what and how.
#pragma once

#include "core/place.h"
#include "core/status.h"
#include "interpreter/plan/plan.h"

namespace interp {

struct Form {
  Place place;
  DType dtype = DType::kUndefined;
  Layout layout = Layout::kPlain;
  bool operator==(const Form&) const = default;
};

inline Form FormOf(const PlanVar& var) { return {var.place, var.dtype, var.layout}; }

// Whether it may lie channels-last.
inline bool IsImage(const PlanVar& var) {
  return var.kind == VarKind::kLodTensor && (var.rank == 4 || var.rank == 5);
}

// Of integers and truth values.
bool IsWhole(DType dtype);

// Whether a value of `made` may be kept in the variable as `kept`. A value that one block makes of
// floats and another of integers has one type here, which is no reason to cut off fractions:
// Unimplemented. Parameters keep their type whatever is written.
absl::Status CheckKeeps(const PlanVar& var, DType made, DType kept);

}  // namespace interp
