#include "core/check_var.h"

#include <algorithm>

#include "core/shape.h"

namespace interp {

absl::Status CheckVar(const Var& var) {
  constexpr int32_t kMaxLodLevel = 16;  // Paddle's programs have 0 to 2
  if (var.lod_level < 0 || var.lod_level > kMaxLodLevel) {
    return InvalidArgument("LoD level is ", var.lod_level, ", expected 0 to ", kMaxLodLevel);
  }
  if (var.dims.size() > kMaxRank) {
    return InvalidArgument("has ", var.dims.size(), " dims, the most is ", kMaxRank);
  }
  Shape known(var.dims);
  for (int i = 0; i < known.rank(); ++i) known[i] = known[i] < 0 ? 1 : known[i];
  if (!known.CheckedNumel().has_value()) {
    return InvalidArgument("dims ", ToString(Shape(var.dims)), " are too large for memory");
  }
  return absl::OkStatus();
}

}  // namespace interp
