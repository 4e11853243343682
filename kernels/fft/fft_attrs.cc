#include "kernels/fft/fft_attrs.h"

#include <algorithm>
#include <cmath>

#include "kernels/fft/transform.h"
#include "kernels/util/read_choice.h"

namespace interp::fft {

FftAttrs ReadFftAttrs(AttrReader& reader) {
  FftAttrs attrs;
  attrs.axes = ReadIntListAttr(reader, "axes");
  attrs.forward = reader.Bool("forward", true);
  attrs.onesided = reader.Bool("onesided", true);
  attrs.last_dim_size = reader.Long("last_dim_size", 0);
  const Scaling there = attrs.forward ? Scaling::kNone : Scaling::kCount;
  const Scaling back = attrs.forward ? Scaling::kCount : Scaling::kNone;
  attrs.scaling = ReadChoice<Scaling>(
      reader, "normalization",
      {{"backward", there}, {"forward", back}, {"ortho", Scaling::kRoot}, {"", there}});
  return attrs;
}

absl::StatusOr<std::vector<int>> AxesOf(const FftAttrs& attrs, const Shape& shape) {
  if (attrs.axes.empty()) return InvalidArgument("attribute 'axes' is empty");
  std::vector<int> axes;
  for (const int64_t given : attrs.axes) {
    INTERP_ASSIGN_OR_RETURN(const int axis, ResolveAxis(given, shape.rank(), "axes"));
    if (std::find(axes.begin(), axes.end(), axis) != axes.end()) {
      return InvalidArgument("attribute 'axes' lists axis ", axis, " twice");
    }
    if (shape[axis] < 1 || shape[axis] > kMaxLength) {
      return InvalidArgument("dimension ", axis, " of ", ToString(shape),
                             " is transformed; expected a length of 1 to ", kMaxLength);
    }
    axes.push_back(axis);
  }
  return axes;
}

double FactorOf(Scaling scaling, int64_t numel) {
  const double n = static_cast<double>(numel);
  if (scaling == Scaling::kNone) return 1;
  return scaling == Scaling::kRoot ? 1 / std::sqrt(n) : 1 / n;
}

int64_t SignalSize(const Shape& shape, const std::vector<int>& axes) {
  int64_t size = 1;
  for (const int axis : axes) size *= shape[axis];
  return size;
}

}  // namespace interp::fft
