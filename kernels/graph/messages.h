// Messages along the edges of a graph: edge e goes from node src[e] to node dst[e], and nodes are
// rows.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/op_def.h"
#include "kernels/util/broadcast.h"
#include "kernels/util/indices.h"
#include "kernels/util/read_choice.h"
#include "kernels/util/shape_args.h"

namespace interp::graph {

// How the messages that a node gets become one row.
enum class Reduce : int8_t { kSum, kMean, kMax, kMin };

// From attribute `attr`.
inline Reduce ReadReduce(AttrReader& reader, absl::string_view attr) {
  return ReadChoice<Reduce>(reader, attr,
                            {{"SUM", Reduce::kSum},
                             {"MEAN", Reduce::kMean},
                             {"MAX", Reduce::kMax},
                             {"MIN", Reduce::kMin}});
}

// What a row is after one more message; sums for a mean.
template <typename T>
T Joined(Reduce reduce, T a, T b) {
  if (reduce == Reduce::kMax) return std::max(a, b);
  if (reduce == Reduce::kMin) return std::min(a, b);
  return a + b;
}

// Makes sums of `counts[r]` messages means, and gives the counts to `out_counts`, if any.
template <typename T>
void FinishMeans(const int32_t* counts, int64_t rows, int64_t width, T* sums, Tensor* out_counts) {
  for (int64_t r = 0; r < rows; ++r) {
    const T divisor = static_cast<T>(std::max(counts[r], 1));
    for (int64_t c = 0; c < width; ++c) sums[r * width + c] /= divisor;
  }
  if (out_counts != nullptr) std::copy_n(counts, rows, out_counts->mutable_data<int32_t>());
}

// What the gradient of a reduction to rows of shape `grad` reads besides it: `out` for an extreme,
// `count` for a mean; null where they are missing.
inline absl::Status CheckReduced(Reduce reduce, const Shape& grad, const Tensor* out,
                                 const Tensor* count) {
  if (reduce == Reduce::kMean &&
      (count == nullptr || count->dtype != DType::kInt32 || count->shape != Shape{grad[0]})) {
    return InvalidArgument("the gradient of a mean needs 'Dst_count', one int32 for each row");
  }
  if ((reduce == Reduce::kMax || reduce == Reduce::kMin) &&
      (out == nullptr || out->shape != grad)) {
    return InvalidArgument("the gradient of an extreme needs 'Out' of shape ", ToString(grad));
  }
  return absl::OkStatus();
}

// Whether a message is the product of two rows; else it is their sum. Paddle makes differences and
// quotients of these.
inline bool ReadMultiplies(AttrReader& reader) {
  return ReadChoice<bool>(reader, "message_op", {{"ADD", false}, {"MUL", true}});
}

// Slots of both ends of the edges.
struct EdgeSlots {
  int src = 0;
  int dst = 0;
};

// InvalidArgument unless both are vectors of one length and dtype, int32 or int64.
inline absl::Status CheckEdges(const OpContext& ctx, EdgeSlots slots) {
  const Tensor& src = ctx.input(slots.src);
  const Tensor& dst = ctx.input(slots.dst);
  const bool integers = src.dtype == DType::kInt32 || src.dtype == DType::kInt64;
  const bool vector = src.shape.rank() == 1 || (src.shape.rank() == 2 && src.shape[1] == 1);
  if (integers && vector && src.dtype == dst.dtype && src.shape == dst.shape) {
    return absl::OkStatus();
  }
  return InvalidArgument("the indices of edges are ", DescribeType(src), " and ", DescribeType(dst),
                         ", expected two int32 or int64 of one length");
}

// Calls body(src, dst, number of edges) with the indices, which are below the numbers of rows.
template <typename Body>
absl::Status WithEdges(const OpContext& ctx, EdgeSlots slots, int64_t src_rows, int64_t dst_rows,
                       const Body& body) {
  const Tensor& dst = ctx.input(slots.dst);
  const int64_t edges = dst.numel();
  return WithIndices(ctx.input(slots.src), "Src_index", [&](const auto* src) -> absl::Status {
    using Index = std::remove_cv_t<std::remove_pointer_t<decltype(src)>>;
    const Index* const to = dst.data<Index>();
    INTERP_RETURN_IF_ERROR(CheckIndices(src, edges, src_rows, "Src_index"));
    INTERP_RETURN_IF_ERROR(CheckIndices(to, edges, dst_rows, "Dst_index"));
    return body(src, to, edges);
  });
}

// Rows of the result: `Out_size` or the first `out_size`, when above 0, else `rows`.
inline absl::StatusOr<int64_t> OutRows(const OpContext& ctx, int slot, const IntList& attr,
                                       int64_t rows) {
  INTERP_ASSIGN_OR_RETURN(const int64_t size,
                          ReadInteger(ctx, slot, "Out_size", attr.empty() ? 0 : attr[0]));
  return size > 0 ? size : rows;
}

// A row of `shape`; one element for a vector.
inline Shape RowOf(const Shape& shape) {
  Shape row;
  for (int i = 1; i < shape.rank(); ++i) row.push_back(shape[i]);
  if (row.rank() == 0) row.push_back(1);
  return row;
}

// How rows of x and y make one of the result.
struct Rows {
  Shape shape;
  LoopNest loops;
  int64_t x_width = 1;
  int64_t y_width = 1;
  int64_t width = 1;

  // Calls body(element of the result, of the row of x, of the row of y).
  template <typename Body>
  void ForEach(const Body& body) const {
    LoopCursor cursor(loops);
    for (int64_t i = 0; i < width; ++i, cursor.Next()) body(i, cursor.x(), cursor.y());
  }
};

inline absl::StatusOr<Rows> RowsOf(const Shape& x, const Shape& y) {
  if (x.rank() == 0 || y.rank() == 0) {
    return InvalidArgument("the inputs have shapes ", ToString(x), " and ", ToString(y),
                           ", expected rows: rank 1 or more");
  }
  Tensor x_row;
  Tensor y_row;
  x_row.shape = RowOf(x);
  y_row.shape = RowOf(y);
  Rows rows;
  INTERP_ASSIGN_OR_RETURN(rows.shape, BroadcastShapes(x_row.shape, y_row.shape, kTrailingAxis));
  const int rank = rows.shape.rank();
  if (rank == kMaxRank) return InvalidArgument("the result has rank ", kMaxRank + 1);
  const Strides x_steps = BroadcastStrides(x_row, rank, kTrailingAxis);
  const Strides y_steps = BroadcastStrides(y_row, rank, kTrailingAxis);
  for (int i = 0; i < rank; ++i) rows.loops.Add({rows.shape[i], x_steps[i], y_steps[i]});
  rows.x_width = x_row.shape.numel();
  rows.y_width = y_row.shape.numel();
  rows.width = rows.shape.numel();
  return rows;
}

// Elements of a row.
inline int64_t WidthOf(const Shape& shape) { return shape.numel(1, shape.rank()); }

}  // namespace interp::graph
