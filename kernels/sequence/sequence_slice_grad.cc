// sequence_slice_grad: Out@GRAD where the slices were, 0 elsewhere.
#include <cstring>

#include "core/op_def.h"
#include "kernels/sequence/slices.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/indices.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOffset = 1;
constexpr int kLength = 2;
constexpr int kOutGrad = 3;
constexpr int kXGrad = 0;

absl::Status InferSequenceSliceGrad(InferContext& ctx) {
  const Tensor& x = ctx.input(kX);
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> level,
                          OffsetsOfSlices(x, ctx.input(kOffset), ctx.input(kLength)));
  Shape shape = x.shape;
  shape[0] = level.back();
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kOutGrad, "Out@GRAD", shape));
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

absl::Status SequenceSliceGrad(KernelContext& ctx) {
  Tensor* const x_grad = ctx.optional_output(kXGrad);
  if (x_grad == nullptr || x_grad->numel() == 0) return absl::OkStatus();
  const Tensor& grad = ctx.input(kOutGrad);
  const auto row_bytes = RowSize(*x_grad) * static_cast<int64_t>(SizeOf(x_grad->dtype));
  const Offsets offsets = ctx.input(kX).lod.back();
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> slices,
                          OffsetsOfSlices(ctx.input(kX), ctx.input(kOffset), ctx.input(kLength)));
  char* const out = static_cast<char*>(x_grad->mutable_raw_data());
  std::memset(out, 0, x_grad->size_bytes());
  if (grad.numel() == 0) return absl::OkStatus();
  const char* const in = static_cast<const char*>(grad.raw_data());
  return WithIndices(ctx.input(kOffset), "Offset", [&](const auto* starts) {
    for (int64_t i = 0; i < SequenceCount(offsets); ++i) {
      std::memcpy(out + (offsets[i] + starts[i]) * row_bytes, in + slices[i] * row_bytes,
                  (slices[i + 1] - slices[i]) * row_bytes);
    }
    return absl::OkStatus();
  });
}

INTERP_REGISTER_OP(OpDef{
    .type = "sequence_slice_grad",
    .inputs = {{"X", kNoNeedBuffer},
               {"Offset", kAnyDType | kValueInInfer},
               {"Length", kAnyDType | kValueInInfer},
               {"Out@GRAD"}},
    .outputs = {{"X@GRAD", kOptional}},
    .infer = InferSequenceSliceGrad,
    .kernels = {{DType::kFloat32, SequenceSliceGrad}, {DType::kFloat64, SequenceSliceGrad}},
});

}  // namespace
}  // namespace interp
