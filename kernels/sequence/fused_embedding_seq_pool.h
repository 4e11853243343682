// fused_embedding_seq_pool: attributes and shapes of both directions.
#pragma once

#include "core/op_def.h"
#include "kernels/sequence/lod.h"
#include "kernels/util/read_choice.h"
#include "kernels/util/shape_args.h"

namespace interp {

struct EmbeddingPoolAttrs {
  int64_t padding_idx = -1;  // -1: none
};

inline EmbeddingPoolAttrs ReadEmbeddingPoolAttrs(AttrReader& reader) {
  ReadChoiceIndex(reader, "combiner", {"sum"});
  return {reader.Long("padding_idx", -1)};
}

// The first inputs of the op and of its gradient: W [V,D], Ids [T,...,1] with a LoD of one level.
inline constexpr int kPoolW = 0;
inline constexpr int kPoolIds = 1;

// Checks them; the shape of Out, [sequences, ids of a row * D].
inline absl::StatusOr<Shape> ResolveEmbeddingPool(const OpContext& ctx) {
  const Shape& w = ctx.input(kPoolW).shape;
  const Tensor& ids = ctx.input(kPoolIds);
  if (w.rank() != 2) {
    return InvalidArgument("input 'W' has shape ", ToString(w), ", expected a matrix");
  }
  if (ids.dtype != DType::kInt64 || ids.shape.rank() < 2 || ids.shape.back() != 1) {
    return InvalidArgument("input 'Ids' is ", DescribeType(ids), ", expected int64[T,...,1]");
  }
  INTERP_ASSIGN_OR_RETURN(const Offsets offsets, OnlyLevelOffsets(ids, "Ids"));
  INTERP_ASSIGN_OR_RETURN(const int64_t width, CheckedProduct(RowSize(ids), w[1]));
  return Shape{SequenceCount(offsets), width};
}

// Calls body(id, position in Out of the row that it is added to) for each id but those of
// padding_idx. Error: an id that W has no row for.
template <typename Body>
absl::Status ForEachPooledId(const OpContext& ctx, const Body& body) {
  const Tensor& ids = ctx.input(kPoolIds);
  const Shape& w = ctx.input(kPoolW).shape;
  const int64_t padding = ctx.attrs<EmbeddingPoolAttrs>().padding_idx;
  const int64_t per_row = RowSize(ids);
  const int64_t* const values = ids.data<int64_t>();
  const Lod::value_type& offsets = ids.lod.back();
  for (size_t n = 0; n + 1 < offsets.size(); ++n) {
    for (int64_t i = offsets[n] * per_row; i < offsets[n + 1] * per_row; ++i) {
      if (values[i] == padding && padding != -1) continue;
      if (values[i] < 0 || values[i] >= w[0]) {
        return InvalidArgument("'Ids' has the value ", values[i], " at position ", i,
                               ", expected 0 to ", w[0] - 1);
      }
      body(values[i], (static_cast<int64_t>(n) * per_row + i % per_row) * w[1]);
    }
  }
  return absl::OkStatus();
}

}  // namespace interp
