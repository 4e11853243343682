// The rows of a tensor [T, ...] as values of T steps; shared by recurrent and its gradient.
#pragma once

#include <cstring>

#include "core/op_context.h"
#include "core/status.h"

namespace interp::control_flow {

// Makes `row` row `index` of `x`, whose memory it shares.
inline void TakeRow(const Tensor& x, int64_t index, Tensor& row) {
  Shape shape;
  for (int d = 1; d < x.shape.rank(); ++d) shape.push_back(x.shape[d]);
  row.shape = shape;
  row.dtype = x.dtype;
  row.layout = Layout::kPlain;
  row.lod.clear();
  row.SetMemory(x.buffer(), static_cast<char*>(const_cast<void*>(x.raw_data())) +
                                static_cast<size_t>(index) * row.size_bytes());
}

// Gives `out` memory for `num_steps` rows like `row`.
inline absl::Status AllocateRows(const KernelContext& ctx, int64_t num_steps, const Tensor& row,
                                 Tensor& out) {
  out.shape = Shape{num_steps};
  if (row.shape.rank() == kMaxRank) {
    return InvalidArgument("a step gives ", DescribeType(row), ", which is of highest rank");
  }
  for (const int64_t dim : row.shape.dims()) out.shape.push_back(dim);
  out.dtype = row.dtype;
  out.layout = Layout::kPlain;
  out.lod.clear();
  return ctx.Allocate(out);
}

// Copies `row` to row `index` of `out`, which has `num_steps` of them.
inline absl::Status PutRow(const Tensor& row, int64_t index, int64_t num_steps, Tensor& out) {
  const size_t row_bytes = out.size_bytes() / static_cast<size_t>(num_steps);
  if (row.size_bytes() != row_bytes || row.dtype != out.dtype ||
      (row_bytes > 0 && !row.has_memory())) {
    return InvalidArgument("step ", index, " gives ", DescribeType(row), ", expected a row of ",
                           DescribeType(out));
  }
  if (row_bytes == 0) return absl::OkStatus();
  std::memcpy(static_cast<char*>(out.mutable_raw_data()) + static_cast<size_t>(index) * row_bytes,
              row.raw_data(), row_bytes);
  return absl::OkStatus();
}

}  // namespace interp::control_flow
