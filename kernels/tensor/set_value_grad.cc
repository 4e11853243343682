// set_value_grad: Input@GRAD = Out@GRAD with 0 in the part that was written; ValueTensor@GRAD =
// what Out@GRAD has there, summed over the places that an element of the value was copied to.
#include "core/op_def.h"
#include "kernels/tensor/set_value_part.h"
#include "kernels/util/copy.h"
#include "kernels/util/fill_zero.h"
#include "kernels/util/gradient_rows.h"

namespace interp {
namespace {

using set_value::Part;
using set_value::PartAttrs;
using set_value::Ranges;

constexpr int kOutGrad = 0;
constexpr int kValueTensor = 1;
constexpr set_value::PartSlots kPartSlots = {.starts = 2, .ends = 3, .steps = 4};
constexpr int kInputGrad = 0;
constexpr int kValueGrad = 1;

absl::Status InferSetValueGrad(InferContext& ctx) {
  if (ctx.input(kOutGrad).shape.rank() == 0) return InvalidArgument("'Out@GRAD' has rank 0");
  ctx.SetShape(kInputGrad, ctx.input(kOutGrad).shape);
  if (!ctx.has_output(kValueGrad)) return absl::OkStatus();
  if (!ctx.has_input(kValueTensor)) {
    return InvalidArgument("'ValueTensor@GRAD' is wanted, but there is no 'ValueTensor'");
  }
  ctx.ShareShape(kValueTensor, kValueGrad);
  return absl::OkStatus();
}

// Adds the elements of the part from dimension `d` on to those of the value.
template <typename T>
void AddPart(const CopyDims& dims, size_t d, const T* part, T* value) {
  if (d == dims.size()) {
    *value += *part;
    return;
  }
  const CopyDim& dim = dims[d];
  for (int64_t i = 0; i < dim.size; ++i) {
    AddPart(dims, d + 1, part + i * dim.dst_stride, value + i * dim.src_stride);
  }
}

template <typename T>
absl::Status ValueGrad(KernelContext& ctx, const Ranges& ranges, Tensor& value_grad) {
  const Tensor& out_grad = ctx.input(kOutGrad);
  FillZero(ctx.num_threads(), value_grad);
  if (set_value::IsEmpty(ranges) || value_grad.numel() == 0) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(
      const Part part,
      set_value::LayOut(ctx.attrs<PartAttrs>(), ranges, StridesOf(out_grad), value_grad.shape));
  AddPart(part.dims, 0, out_grad.data<T>() + part.start,
          value_grad.mutable_data<T>() + part.value_start);
  return absl::OkStatus();
}

// A zero is broadcast to the part.
template <typename T>
absl::Status InputGrad(KernelContext& ctx, const Ranges& ranges, Tensor& input_grad) {
  CopyUnlessShared(ctx.input(kOutGrad), input_grad);
  if (set_value::IsEmpty(ranges)) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(const Part part, set_value::LayOut(ctx.attrs<PartAttrs>(), ranges,
                                                             StridesOf(input_grad), Shape{1}));
  const T zero = 0;
  CopyStrided(ctx.num_threads(), sizeof(T), part.dims, &zero,
              input_grad.mutable_data<T>() + part.start);
  return absl::OkStatus();
}

template <typename T>
absl::Status SetValueGrad(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(
      const Ranges ranges,
      set_value::ResolveRanges(ctx, kPartSlots, ctx.attrs<PartAttrs>(), ctx.input(kOutGrad).shape));
  if (Tensor* const value_grad = ctx.optional_output(kValueGrad)) {
    INTERP_RETURN_IF_ERROR(ValueGrad<T>(ctx, ranges, *value_grad));
  }
  Tensor* const input_grad = ctx.optional_output(kInputGrad);
  return input_grad == nullptr ? absl::OkStatus() : InputGrad<T>(ctx, ranges, *input_grad);
}

constexpr int kBounds = kOptional | kVariadic | kAnyDType | kHostInput;

INTERP_REGISTER_OP(OpDef{
    .type = "set_value_grad",
    .inputs = {{"Out@GRAD"},
               {"ValueTensor", kOptional | kNoNeedBuffer | kAnyDType | kAnyLayout},
               {"StartsTensorList", kBounds},
               {"EndsTensorList", kBounds},
               {"StepsTensorList", kBounds}},
    .outputs = {{"Input@GRAD", kOptional}, {"ValueTensor@GRAD", kOptional}},
    .parse = ParseAttrs<PartAttrs, set_value::ReadPartAttrs>,
    .infer = InferSetValueGrad,
    .kernels = GradientRows([]<typename T>() -> KernelFn { return SetValueGrad<T>; }),
    .inplace = {{kOutGrad, kInputGrad}},
});

}  // namespace
}  // namespace interp
