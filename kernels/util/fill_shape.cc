#include "kernels/util/fill_shape.h"

namespace interp {

absl::Status SetFillShape(InferContext& ctx, int output_slot, const IntList& dims) {
  if (dims.size() > kMaxRank) {
    return InvalidArgument("shape has ", dims.size(), " dims, expected at most ", kMaxRank);
  }
  const Shape shape(dims);
  for (const int64_t dim : shape) {
    if (dim < 0) return InvalidArgument("shape is ", ToString(shape), ", expected no negative dim");
  }
  ctx.SetShape(output_slot, shape);
  return absl::OkStatus();
}

BatchSizeLike ReadBatchSizeLike(AttrReader& reader) {
  return {.shape = ReadIntListAttr(reader, "shape"),
          .input_dim = reader.Long("input_dim_idx", 0),
          .output_dim = reader.Long("output_dim_idx", 0)};
}

absl::Status SetBatchSizeLikeShape(InferContext& ctx, int input_slot, int output_slot,
                                   const BatchSizeLike& attrs, bool by_sequence) {
  const Tensor& input = ctx.input(input_slot);
  IntList dims = attrs.shape;
  INTERP_ASSIGN_OR_RETURN(const int from,
                          ResolveAxis(attrs.input_dim, input.shape.rank(), "input_dim_idx"));
  INTERP_ASSIGN_OR_RETURN(
      const int to, ResolveAxis(attrs.output_dim, static_cast<int>(dims.size()), "output_dim_idx"));
  const bool sequences =
      by_sequence && from == 0 && !input.lod.empty() && !input.lod.back().empty();
  dims[to] = sequences ? static_cast<int64_t>(input.lod.back().size()) - 1 : input.shape[from];
  return SetFillShape(ctx, output_slot, dims);
}

}  // namespace interp
