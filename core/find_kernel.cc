#include "core/find_kernel.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"

namespace interp {
namespace {

// Whether a kernel can serve on a place: devices have rows of their own, and sim runs the host's.
bool Serves(const KernelDef& kernel, PlaceKind place) {
  return kernel.place == place || (place == PlaceKind::kSim && kernel.place == PlaceKind::kCpu);
}

// Whether a kernel computes in `dtype` what the attributes ask for.
bool Serves(const KernelDef& kernel, DType dtype, const void* attrs) {
  return (kernel.dtype == dtype || kernel.dtype == DType::kUndefined) &&
         (kernel.takes == nullptr || kernel.takes(attrs));
}

}  // namespace

absl::StatusOr<int32_t> FindKernel(const OpDef& def, DType dtype, const void* attrs,
                                   PlaceKind place) {
  int32_t best = -1;
  int best_rank = 0;
  for (size_t row = 0; row < def.kernels.size(); ++row) {
    const KernelDef& kernel = def.kernels[row];
    if (!Serves(kernel, place) || !Serves(kernel, dtype, attrs)) continue;
    const int rank = 1 + (kernel.dtype == dtype ? 1 : 0) + (kernel.place == place ? 2 : 0);
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

bool HasKernel(const OpDef& def, DType dtype, const void* attrs) {
  return absl::c_any_of(def.kernels,
                        [&](const KernelDef& kernel) { return Serves(kernel, dtype, attrs); });
}

}  // namespace interp
