#include "kernels/sparse/parts.h"

#include <string>

#include "absl/strings/str_join.h"
#include "core/element_types.h"
#include "core/op_context.h"

namespace interp::sparse {
namespace {

constexpr absl::string_view kValues = "VALUES";
constexpr absl::string_view kIndices = "INDICES";
constexpr absl::string_view kShape = "SHAPE";

absl::Status CheckParts(const Tensor& values, const Tensor& indices, const Points& points) {
  const bool fits = indices.shape.rank() == 2 && points.sparse_dims > 0 &&
                    points.sparse_dims <= points.shape.rank() &&
                    values.shape.rank() == points.shape.rank() - points.sparse_dims + 1 &&
                    values.shape[0] == indices.shape[1];
  bool rows_fit = fits;
  for (int d = 1; fits && d < values.shape.rank(); ++d) {
    rows_fit &= values.shape[d] == points.shape[points.sparse_dims + d - 1];
  }
  if (rows_fit) return absl::OkStatus();
  return InvalidArgument("a sparse tensor of shape ", ToString(points.shape),
                         " has indices of shape ", ToString(indices.shape), " and values of shape ",
                         ToString(values.shape));
}

}  // namespace

Parts InputParts(const Expansion& ops, absl::string_view slot) {
  return {ops.InputPart(slot, kValues), ops.InputPart(slot, kIndices), ops.InputPart(slot, kShape)};
}

void SetParts(Expansion& ops, absl::string_view slot, const Parts& parts) {
  ops.SetPart(slot, kValues, parts.values);
  ops.SetPart(slot, kIndices, parts.indices);
  ops.SetPart(slot, kShape, parts.shape);
}

absl::StatusOr<Shape> ReadShape(const Tensor& shape) {
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, InferContext::Integers(shape));
  if (dims.size() <= kMaxRank) {
    const Shape read(dims);
    if (read.CheckedNumel().has_value()) return read;
  }
  return InvalidArgument("a sparse tensor has the shape [", absl::StrJoin(dims, ","),
                         "], expected up to ", kMaxRank, " dimensions of known size");
}

absl::StatusOr<Points> ReadPoints(const Tensor& values, const Tensor& indices,
                                  const Tensor& shape) {
  Points points;
  INTERP_ASSIGN_OR_RETURN(points.shape, ReadShape(shape));
  points.sparse_dims = indices.shape.rank() == 2 ? static_cast<int>(indices.shape[0]) : 0;
  INTERP_RETURN_IF_ERROR(CheckParts(values, indices, points));
  if (indices.dtype != DType::kInt32 && indices.dtype != DType::kInt64) {
    return InvalidArgument("input 'Indices' is ", DescribeType(indices), ", expected integers");
  }
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> coordinates, InferContext::Integers(indices));
  const int64_t count = indices.shape[1];
  points.keys.assign(static_cast<size_t>(count), 0);
  for (int d = 0; d < points.sparse_dims; ++d) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = coordinates[d * count + i];
      if (at < 0 || at >= points.shape[d]) {
        return InvalidArgument("point ", i, " of a sparse tensor of shape ", ToString(points.shape),
                               " has the coordinate ", at, " in dimension ", d);
      }
      points.keys[i] = points.keys[i] * points.shape[d] + at;
    }
  }
  return points;
}

void WriteIndices(const std::vector<int64_t>& keys, const Shape& shape, Tensor& indices) {
  const auto count = static_cast<int64_t>(keys.size());
  WithOneOf<int32_t, int64_t>(indices.dtype, [&]<typename T>() {
    T* const out = indices.mutable_data<T>();
    for (int64_t i = 0; i < count; ++i) {
      int64_t rest = keys[i];
      for (int d = static_cast<int>(indices.shape[0]) - 1; d >= 0; --d) {
        out[d * count + i] = static_cast<T>(rest % shape[d]);
        rest /= shape[d];
      }
    }
  });
}

}  // namespace interp::sparse
