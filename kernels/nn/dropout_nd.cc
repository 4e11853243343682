// dropout_nd: dropout of whole slices. Mask has one number for each index of the dimensions in
// `axis` and 1 in place of the others; tests leave it empty. dropout_nd_grad: X@GRAD = Out@GRAD
// Mask, divided as dropout_nd has divided.
#include "kernels/nn/dropout_kernel.h"
#include "kernels/util/broadcast.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/shape_args.h"

namespace interp::nn::dropout_nd {
namespace {

constexpr int kX = 0;
constexpr int kSeed = 1;
constexpr int kOut = 0;
constexpr int kMask = 1;

// Of the gradient.
constexpr int kMaskIn = 0;
constexpr int kOutGrad = 1;
constexpr int kXGrad = 0;

struct Attrs {
  DropoutAttrs dropout;
  IntList axes;
};

Attrs ReadAttrs(AttrReader& reader) {
  return {ReadDropout(reader), ReadIntListAttr(reader, "axis")};
}

absl::StatusOr<Shape> MaskShape(const Shape& x, const IntList& axes) {
  Shape mask = x;
  for (int i = 0; i < x.rank(); ++i) mask[i] = 1;
  for (const int64_t listed : axes) {
    INTERP_ASSIGN_OR_RETURN(const int axis, ResolveAxis(listed, x.rank()));
    mask[axis] = x[axis];
  }
  return mask;
}

absl::Status Infer(InferContext& ctx) {
  const Attrs& attrs = ctx.attrs<Attrs>();
  INTERP_RETURN_IF_ERROR(CheckSeed(ctx, kSeed));
  ctx.ShareShape(kX, kOut);
  INTERP_ASSIGN_OR_RETURN(const Shape mask, MaskShape(ctx.input(kX).shape, attrs.axes));
  ctx.SetShape(kMask, attrs.dropout.test ? Shape{0} : mask);
  return absl::OkStatus();
}

absl::Status FillMask(KernelContext& ctx) {
  const DropoutAttrs& attrs = ctx.attrs<Attrs>().dropout;
  INTERP_ASSIGN_OR_RETURN(const int32_t seed, SeedOf(ctx, kSeed, attrs.seed));
  auto* const mask = ctx.output(kMask).mutable_data<uint8_t>();
  ForEachKept(ctx, seed, attrs.probability, ctx.output(kMask).numel(),
              [=](int64_t i, bool keep) { mask[i] = keep ? 1 : 0; });
  return absl::OkStatus();
}

// to = from where the mask has 1, divided as training does, and 0 elsewhere.
template <typename T>
void Mask(const KernelContext& ctx, const Tensor& mask, const Tensor& from, Tensor& to) {
  const DropoutAttrs& attrs = ctx.attrs<Attrs>().dropout;
  const bool divides = attrs.upscale_in_train && attrs.probability < 1;
  const T divisor = divides ? static_cast<T>(1.0F - attrs.probability) : T{1};
  const T* const values = from.data<T>();
  T* const results = to.mutable_data<T>();
  const BroadcastPlan plan = PlanBroadcast(from, mask, to, kTrailingAxis);
  ForEachPiece(plan, ctx.num_threads(), mask.data<uint8_t>(),
               [=](int64_t begin, int64_t n, const uint8_t* kept) {
                 for (int64_t i = 0; i < n; ++i) {
                   results[begin + i] = kept[i] != 0 ? values[begin + i] / divisor : T{0};
                 }
               });
}

template <typename T>
absl::Status Dropout(KernelContext& ctx) {
  if (ctx.attrs<Attrs>().dropout.test) {
    ScaleInTests<T>(ctx, ctx.attrs<Attrs>().dropout, ctx.input(kX), ctx.output(kOut));
    return absl::OkStatus();
  }
  INTERP_RETURN_IF_ERROR(FillMask(ctx));
  Mask<T>(ctx, ctx.output(kMask), ctx.input(kX), ctx.output(kOut));
  return absl::OkStatus();
}

absl::Status InferGrad(InferContext& ctx) {
  const Attrs& attrs = ctx.attrs<Attrs>();
  const Shape& grad = ctx.input(kOutGrad).shape;
  ctx.ShareShape(kOutGrad, kXGrad);
  if (attrs.dropout.test) return absl::OkStatus();
  const Tensor* const mask = ctx.optional_input(kMaskIn);
  INTERP_ASSIGN_OR_RETURN(const Shape expected, MaskShape(grad, attrs.axes));
  if (mask != nullptr && mask->dtype == DType::kUInt8 && mask->shape == expected) {
    return absl::OkStatus();
  }
  return InvalidArgument("input 'Mask' is ", mask == nullptr ? "absent" : DescribeType(*mask),
                         ", expected uint8", ToString(expected));
}

template <typename T>
absl::Status DropoutGrad(KernelContext& ctx) {
  Tensor* const x_grad = ctx.optional_output(kXGrad);
  if (x_grad == nullptr) return absl::OkStatus();
  if (ctx.attrs<Attrs>().dropout.test) {
    ScaleInTests<T>(ctx, ctx.attrs<Attrs>().dropout, ctx.input(kOutGrad), *x_grad);
  } else {
    Mask<T>(ctx, ctx.input(kMaskIn), ctx.input(kOutGrad), *x_grad);
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "dropout_nd",
    .inputs = {{"X"}, {"Seed", kOptional | kAnyDType}},
    .outputs = {{"Out"}, {"Mask"}},
    .parse = ParseAttrs<Attrs, ReadAttrs>,
    .infer_dtype = [](DTypeContext& ctx) { ctx.Set(kMask, DType::kUInt8); },
    .infer = Infer,
    .kernels = {{DType::kFloat32, Dropout<float>}, {DType::kFloat64, Dropout<double>}},
    .inplace = {{kX, kOut}},
    .random = true,
    .gradient = {.inputs = {"Mask", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

INTERP_REGISTER_OP(OpDef{
    .type = "dropout_nd_grad",
    .inputs = {{"Mask", kOptional | kAnyDType}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD", kOptional}},
    .parse = ParseAttrs<Attrs, ReadAttrs>,
    .kernel_dtype = [](const DTypeContext& ctx) { return ctx.input(kOutGrad); },
    .infer = InferGrad,
    .kernels = {{DType::kFloat32, DropoutGrad<float>}, {DType::kFloat64, DropoutGrad<double>}},
    .inplace = {{kOutGrad, kXGrad}},
});

}  // namespace
}  // namespace interp::nn::dropout_nd
