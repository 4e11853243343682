// unpool_grad, unpool3d_grad: an element of X@GRAD is that of Out@GRAD where Indices put it.
#include <algorithm>

#include "core/op_def.h"
#include "kernels/pool/unpool.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/parallel_for.h"

namespace interp::nn {
namespace {

constexpr int kX = kUnpoolX;
constexpr int kIndices = kUnpoolIndices;
constexpr int kOutGrad = 3;
constexpr IntSlots kSize = {.name = "output_size", .tensor = 4, .list = 5};
constexpr int kXGrad = 0;

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape out, ResolveUnpool(ctx, kSize));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", out));
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

template <typename T, typename Index>
absl::Status Gather(KernelContext& ctx, const Index* indices) {
  Tensor& x_grad = ctx.output(kXGrad);
  const Tensor& out_grad = ctx.input(kOutGrad);
  const int64_t in_plane = PlaneSize(x_grad.shape), out_plane = PlaneSize(out_grad.shape);
  INTERP_RETURN_IF_ERROR(CheckIndices(indices, x_grad.numel(), out_plane, "Indices"));
  const T* const from = out_grad.data<T>();
  T* const to = x_grad.mutable_data<T>();
  ParallelFor(ctx.num_threads(), x_grad.numel(), kElementwiseGrain,
              [=](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  to[i] = from[i / in_plane * out_plane + indices[i]];
                }
              });
  return absl::OkStatus();
}

template <typename T>
absl::Status UnpoolGrad(KernelContext& ctx) {
  return WithIndices(ctx.input(kIndices), "Indices",
                     [&](const auto* indices) { return Gather<T>(ctx, indices); });
}

OpDef GradDef(absl::string_view type, absl::StatusOr<ParsedAttrs> (*parse)(AttrReader&)) {
  constexpr int kSizeFlags = kOptional | kValueInInfer | kAnyDType;
  return OpDef{
      .type = type,
      .inputs = {{"X", kNoNeedBuffer},
                 {"Indices", kAnyDType},
                 {"Out", kOptional | kNoNeedBuffer},
                 {"Out@GRAD"},
                 {"OutputSizeTensor", kSizeFlags},
                 {"OutputSizeTensorList", kSizeFlags | kVariadic}},
      .outputs = {{"X@GRAD"}},
      .parse = parse,
      .infer = Infer,
      .kernels = {{DType::kFloat32, UnpoolGrad<float>}, {DType::kFloat64, UnpoolGrad<double>}},
  };
}

INTERP_REGISTER_OP(GradDef("unpool_grad", ParseAttrs<UnpoolAttrs, ReadUnpool<2>>));
INTERP_REGISTER_OP(GradDef("unpool3d_grad", ParseAttrs<UnpoolAttrs, ReadUnpool<3>>));

}  // namespace
}  // namespace interp::nn
