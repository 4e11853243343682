#include "kernels/util/view_shapes.h"

#include <array>

#include "kernels/util/shape_args.h"

namespace interp {

absl::StatusOr<Shape> Squeezed(const Shape& x, absl::Span<const int64_t> axes) {
  if (x.rank() == 0) return x;
  std::array<bool, kMaxRank> listed = {};
  for (const int64_t entry : axes) {
    INTERP_ASSIGN_OR_RETURN(const int axis, ResolveAxis(entry, x.rank(), "axes"));
    listed[axis] = true;
  }
  Shape shape;
  for (int i = 0; i < x.rank(); ++i) {
    const bool drop = x[i] == 1 && (axes.empty() || listed[i]);
    if (!drop) shape.push_back(x[i]);
  }
  return shape;
}

absl::StatusOr<Shape> Unsqueezed(const Shape& x, absl::Span<const int64_t> axes) {
  if (axes.size() > static_cast<size_t>(kMaxRank - x.rank())) {
    return InvalidArgument("'axes' adds ", axes.size(), " dims to rank ", x.rank(),
                           ", expected at most ", kMaxRank, " in all");
  }
  Shape shape = x;
  for (const int64_t entry : axes) {
    INTERP_ASSIGN_OR_RETURN(const int axis, ResolveAxis(entry, shape.rank() + 1, "axes"));
    shape.push_back(1);
    for (int i = shape.rank() - 1; i > axis; --i) shape[i] = shape[i - 1];
    shape[axis] = 1;
  }
  return shape;
}

absl::StatusOr<Shape> Reshaped(const Shape& x, absl::Span<const int64_t> dims) {
  if (dims.size() > kMaxRank) {
    return InvalidArgument("shape has ", dims.size(), " dims, expected at most ", kMaxRank);
  }
  Shape shape(dims);
  int unknown = -1;
  int64_t known = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] == 0 && i < x.rank()) shape[i] = x[i];
    if (shape[i] == -1 && unknown < 0) {
      unknown = i;
    } else if (shape[i] < 0) {
      return InvalidArgument("shape is ", ToString(Shape(dims)),
                             ", expected dims of at least 0 and one -1 at most");
    } else {
      INTERP_ASSIGN_OR_RETURN(known, CheckedProduct(known, shape[i]));
    }
  }
  const int64_t count = x.numel();
  if (unknown >= 0) shape[unknown] = known == 0 ? 0 : count / known;
  if (shape.CheckedNumel() != count) {
    return InvalidArgument("'X' of shape ", ToString(x), " has ", count,
                           " elements, which do not fill shape ", ToString(Shape(dims)));
  }
  return shape;
}

}  // namespace interp
