#include "interpreter/analysis/form.h"

#include <algorithm>
#include <iterator>

namespace interp {

absl::Status CheckKeeps(const PlanVar& var, DType made, DType kept) {
  constexpr DType kWhole[] = {DType::kBool,  DType::kUInt8, DType::kInt8,
                              DType::kInt16, DType::kInt32, DType::kInt64};
  const bool whole = std::find(std::begin(kWhole), std::end(kWhole), kept) != std::end(kWhole);
  if (!IsFloating(made) || !whole || var.persistable) return absl::OkStatus();
  return Unimplemented("variable '", var.name, "' is ", Name(kept), " and is written as ",
                       Name(made),
                       ", which a block sees or writes, too: a variable that is of one type here "
                       "and of another there is not supported; cast its values to one type");
}

}  // namespace interp
