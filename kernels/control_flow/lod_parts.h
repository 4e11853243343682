// Parts of a LoD and the rows that belong to them: what the ops share that split tensors into
// sequences or time steps and join them again.
//
// A LoD in a tensor need not fit its rows (an op may hand on any), and indices come from other
// tensors. Every step is therefore checked here.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/op_context.h"
#include "core/status.h"
#include "core/tensor.h"

namespace interp {

// Rows [begin, end) of a tensor.
struct RowRange {
  const Tensor* tensor = nullptr;
  int64_t begin = 0;
  int64_t end = 0;
};

// The rows of the parts [begin, end) of `level`. With `lod`, the lengths of these parts and of what
// they consist of, on this level and all below, are appended to `lod`, which belongs to a tensor
// that is being joined. At a level below the last, parts are rows.
// InvalidArgument when `tensor` has not got those parts, or `lod` another number of levels.
absl::StatusOr<RowRange> AppendParts(const Tensor& tensor, int64_t level, int64_t begin,
                                     int64_t end, Lod* lod);

// How many parts `level` has; rows at the level below the last.
int64_t CountParts(const Tensor& tensor, int64_t level);

// `out`, whose LoD is there, becomes the ranges one after the other, in memory of its own.
// InvalidArgument unless the LoD fits and all are of tensors of one dtype and, but for the rows,
// one shape, those of `like`. REQUIRES: `like` has a rank of at least 1.
absl::Status JoinRows(const KernelContext& ctx, absl::Span<const RowRange> ranges,
                      const Tensor& like, Tensor& out);

// InvalidArgument unless `x`, an input X, has rows.
absl::Status CheckHasRows(const Tensor& x);

// The table that a RankTable input holds, or InvalidArgument.
absl::StatusOr<const RankTable*> RankTableOf(const KernelContext& ctx, int slot);

// The value of an index tensor of one element, int32 or int64. InvalidArgument when it is negative
// or something else.
absl::StatusOr<int64_t> IndexOf(const Tensor& index, absl::string_view slot);

// For ops whose outputs are arrays or rank tables, which have no shape.
absl::Status InferNothing(InferContext& ctx);

}  // namespace interp
