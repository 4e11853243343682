#include "kernels/sequence/row_windows.h"

namespace interp {

absl::Status CheckRowsInTime(const Tensor& x) {
  if (!x.lod.empty()) INTERP_RETURN_IF_ERROR(OnlyLevelOffsets(x, "X").status());
  if (x.shape.rank() == (x.lod.empty() ? 3 : 2)) return absl::OkStatus();
  return InvalidArgument("input 'X' has shape ", ToString(x.shape), ", expected ",
                         x.lod.empty() ? "a batch [B,T,D], as it has no LoD" : "[T,D] with LoD");
}

absl::Status CheckRowConv(const Tensor& x, const Shape& filter) {
  INTERP_RETURN_IF_ERROR(CheckRowsInTime(x));
  if (filter.rank() == 2 && filter[1] == x.shape.back()) return absl::OkStatus();
  return InvalidArgument("input 'Filter' has shape ", ToString(filter), ", expected [K,",
                         x.shape.back(), "], the width of 'X'");
}

}  // namespace interp
