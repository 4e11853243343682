// masked_select_grad: X@GRAD = 0, plus the elements of Y@GRAD added where Mask chose theirs.
#include "core/op_def.h"
#include "kernels/tensor/mask_shape.h"
#include "kernels/util/fill_zero.h"
#include "kernels/util/gradient_rows.h"

namespace interp {
namespace {

constexpr int kYGrad = 0;
constexpr int kX = 1;
constexpr int kMask = 2;
constexpr int kXGrad = 0;

absl::Status InferMaskedSelectGrad(InferContext& ctx) {
  if (ctx.input(kMask).dtype != DType::kBool) {
    return InvalidArgument("'Mask' is ", DescribeType(ctx.input(kMask)), ", expected bool");
  }
  INTERP_RETURN_IF_ERROR(
      masked_select::CommonShape(ctx.input(kX).shape, ctx.input(kMask).shape).status());
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

// A walk over the common shape, in order; X lies in it with strides of 0 where it is broadcast.
template <typename T>
struct Walk {
  const Shape& shape;
  const Strides& strides;  // of X
  const uint8_t* chosen;   // the next position of Mask
  const T* gradient;       // the next element of Y@GRAD
  T* x_grad;

  void Add(int d, int64_t base) {
    if (d == shape.rank()) {
      if (*chosen++ != 0) x_grad[base] += *gradient++;
      return;
    }
    for (int64_t i = 0; i < shape[d]; ++i) Add(d + 1, base + i * strides[d]);
  }
};

template <typename T>
absl::Status MaskedSelectGrad(KernelContext& ctx) {
  Tensor& x_grad = ctx.output(kXGrad);
  INTERP_ASSIGN_OR_RETURN(const Shape shape,
                          masked_select::CommonShape(x_grad.shape, ctx.input(kMask).shape));
  Tensor scratch;
  INTERP_ASSIGN_OR_RETURN(const Tensor* mask,
                          masked_select::Broadcast(ctx, ctx.input(kMask), shape, scratch));
  const uint8_t* const chosen = static_cast<const uint8_t*>(mask->raw_data());
  const int64_t count = shape.numel() - std::count(chosen, chosen + shape.numel(), uint8_t{0});
  if (ctx.input(kYGrad).numel() != count) {
    return InvalidArgument("'Y@GRAD' has ", ctx.input(kYGrad).numel(), " elements, 'Mask' chooses ",
                           count);
  }
  FillZero(ctx.num_threads(), x_grad);
  const Strides own = StridesOf(x_grad);
  const int added = shape.rank() - x_grad.shape.rank();
  Strides strides = {};
  for (int i = added; i < shape.rank(); ++i) {
    strides[i] = x_grad.shape[i - added] == 1 ? 0 : own[i - added];
  }
  Walk<T> walk = {shape, strides, chosen, ctx.input(kYGrad).data<T>(), x_grad.mutable_data<T>()};
  if (shape.numel() > 0) walk.Add(0, 0);
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "masked_select_grad",
    .inputs = {{"Y@GRAD"}, {"X", kNoNeedBuffer | kAnyDType | kAnyLayout}, {"Mask", kAnyDType}},
    .outputs = {{"X@GRAD"}},
    .infer = InferMaskedSelectGrad,
    .kernels = GradientRows([]<typename T>() -> KernelFn { return MaskedSelectGrad<T>; }),
});

}  // namespace
}  // namespace interp
