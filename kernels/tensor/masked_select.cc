// masked_select: Y = the elements of X where Mask is true, as a vector. Both are broadcast to one
// shape first.
#include <algorithm>

#include "core/op_def.h"
#include "kernels/tensor/mask_shape.h"
#include "kernels/util/indices.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kMask = 1;
constexpr int kY = 0;

using masked_select::Broadcast;
using masked_select::CommonShape;

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
    .gradient = {.inputs = {"X", "Mask", "Y@GRAD"}, .outputs = {"X@GRAD"}},
});

}  // namespace
}  // namespace interp
