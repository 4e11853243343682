// masked_select: Y = the elements of X where Mask is true, as a vector. Both are broadcast to one
// shape first.
#include <algorithm>

#include "core/op_def.h"
#include "kernels/util/indices.h"
#include "kernels/util/strided_copy.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kMask = 1;
constexpr int kY = 0;

absl::StatusOr<Shape> CommonShape(const Shape& a, const Shape& b) {
  Shape shape;
  for (int i = std::max(a.rank(), b.rank()); i > 0; --i) {
    const int64_t da = i <= a.rank() ? a.back(i) : 1;
    const int64_t db = i <= b.rank() ? b.back(i) : 1;
    if (da != db && da != 1 && db != 1) {
      return InvalidArgument("'X' has shape ", ToString(a), " and 'Mask' ", ToString(b),
                             ", which do not broadcast");
    }
    shape.push_back(da == 1 ? db : da);
  }
  return shape;
}

// `in` itself when it has `shape`, else `scratch` filled with `in` broadcast to it.
absl::StatusOr<const Tensor*> Broadcast(KernelContext& ctx, const Tensor& in, const Shape& shape,
                                        Tensor& scratch) {
  if (in.shape == shape) return &in;
  scratch.shape = shape;
  scratch.dtype = in.dtype;
  INTERP_RETURN_IF_ERROR(ctx.Allocate(scratch));
  const Strides from = StridesOf(in);
  const Strides to = StridesOf(scratch);
  const int added = shape.rank() - in.shape.rank();
  CopyDims dims;
  for (int i = 0; i < shape.rank(); ++i) {
    const bool repeats = i < added || in.shape[i - added] == 1;
    dims.push_back({shape[i], repeats ? 0 : from[i - added], to[i]});
  }
  CopyStrided(ctx.num_threads(), SizeOf(in.dtype), dims, in.raw_data(), scratch.mutable_raw_data());
  return &scratch;
}

absl::Status MaskedSelect(KernelContext& ctx) {
  if (ctx.input(kMask).dtype != DType::kBool) {
    return InvalidArgument("'Mask' is ", DescribeType(ctx.input(kMask)), ", expected bool");
  }
  INTERP_ASSIGN_OR_RETURN(const Shape shape,
                          CommonShape(ctx.input(kX).shape, ctx.input(kMask).shape));
  Tensor x_scratch;
  Tensor mask_scratch;
  INTERP_ASSIGN_OR_RETURN(const Tensor* x, Broadcast(ctx, ctx.input(kX), shape, x_scratch));
  INTERP_ASSIGN_OR_RETURN(const Tensor* mask,
                          Broadcast(ctx, ctx.input(kMask), shape, mask_scratch));
  // As bytes: a fed bool may hold any value, and counting and choosing must agree on it.
  const uint8_t* const chosen = static_cast<const uint8_t*>(mask->raw_data());
  const int64_t count = shape.numel();
  Tensor& y = ctx.output(kY);
  y.shape = {count - std::count(chosen, chosen + count, uint8_t{0})};
  y.lod.clear();
  INTERP_RETURN_IF_ERROR(ctx.Allocate(y));
  WithElementSize(x->dtype, [&](auto element) {
    using Element = decltype(element);
    const Element* const in = static_cast<const Element*>(x->raw_data());
    Element* out = static_cast<Element*>(y.mutable_raw_data());
    for (int64_t i = 0; i < count; ++i) {
      if (chosen[i] != 0) *out++ = in[i];
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "masked_select",
    .inputs = {{"X"}, {"Mask", kAnyDType}},
    .outputs = {{"Y"}},
    .kernels = {{DType::kUndefined, MaskedSelect}},
    .dynamic_outputs = true,
});

}  // namespace
}  // namespace interp
