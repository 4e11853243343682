#include "core/find_kernel.h"

#include "absl/strings/str_join.h"

namespace interp {
namespace {

// Whether a kernel can serve on a place: devices have rows of their own, and sim runs the host's.
bool Serves(const KernelDef& kernel, PlaceKind place) {
  return kernel.place == place || (place == PlaceKind::kSim && kernel.place == PlaceKind::kCpu);
}

}  // namespace

absl::StatusOr<int32_t> FindKernel(const OpDef& def, DType dtype, const void* attrs,
                                   PlaceKind place) {
  int32_t best = -1;
  int best_rank = 0;
  for (size_t row = 0; row < def.kernels.size(); ++row) {
    const KernelDef& kernel = def.kernels[row];
    const bool exact = kernel.dtype == dtype;
    if (!Serves(kernel, place) || (!exact && kernel.dtype != DType::kUndefined)) continue;
    if (kernel.takes != nullptr && !kernel.takes(attrs)) continue;
    const int rank = 1 + (exact ? 1 : 0) + (kernel.place == place ? 2 : 0);
    if (rank <= best_rank) continue;
    best = static_cast<int32_t>(row);
    best_rank = rank;
  }
  if (best >= 0) return best;
  return Unimplemented(
      "has no kernel for ", Name(dtype), " on ", Name(place),
      "; there are: ", absl::StrJoin(def.kernels, " ", [](std::string* out, const KernelDef& k) {
        absl::StrAppend(out, Name(k.dtype), k.place == PlaceKind::kCpu ? "" : " on ",
                        k.place == PlaceKind::kCpu ? "" : Name(k.place));
      }));
}

}  // namespace interp
