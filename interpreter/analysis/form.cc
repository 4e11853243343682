#include "interpreter/analysis/form.h"

#include <iterator>

#include "absl/algorithm/container.h"

namespace interp {

bool IsWhole(DType dtype) {
  constexpr DType kWhole[] = {DType::kBool,  DType::kUInt8, DType::kInt8,
                              DType::kInt16, DType::kInt32, DType::kInt64};
  return absl::c_linear_search(kWhole, dtype);
}

absl::Status CheckKeeps(const PlanVar& var, DType made, DType kept) {
  if (!IsFloating(made) || !IsWhole(kept) || var.persistable) return absl::OkStatus();
  return Unimplemented("variable '", var.name, "' is ", Name(kept), " and is written as ",
                       Name(made),
                       ", which a block sees or writes, too: a variable that is of one type here "
                       "and of another there is not supported; cast its values to one type");
}

}  // namespace interp
