// max_pool2d_with_index_grad, max_pool3d_with_index_grad: an element of Out@GRAD goes where Mask
// says that the maximum was; -1 is nowhere.
#include <algorithm>

#include "core/op_def.h"
#include "kernels/pool/max_pool_index.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/parallel_for.h"

namespace interp::nn {
namespace {

constexpr int kX = 0;
constexpr int kMask = 1;
constexpr int kOutGrad = 2;
constexpr int kXGrad = 0;

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const PoolShapes shapes,
                          ResolveIndexPool(ctx.attrs<PoolAttrs>(), ctx.input(kX).shape));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", shapes.out));
  INTERP_RETURN_IF_ERROR(CheckPositionsType(ctx.input(kMask), "Mask", shapes.out));
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

template <typename T, typename Index>
absl::Status AddAtPositions(KernelContext& ctx, const Index* mask) {
  Tensor& x_grad = ctx.output(kXGrad);
  const Tensor& out_grad = ctx.input(kOutGrad);
  const int64_t in = PlaneSize(x_grad.shape), out = PlaneSize(out_grad.shape);
  for (int64_t i = 0; i < out_grad.numel(); ++i) {
    if (mask[i] >= -1 && mask[i] < in) continue;
    return InvalidArgument("input 'Mask' has the value ", mask[i], " at position ", i,
                           ", expected -1 to ", in - 1);
  }
  const T* const grad = out_grad.data<T>();
  T* const to = x_grad.mutable_data<T>();
  const int64_t grain = GrainFor(in);
  ParallelFor(ctx.num_threads(), x_grad.shape.numel(0, 2), grain, [=](int64_t begin, int64_t end) {
    std::fill(to + begin * in, to + end * in, T{0});
    for (int64_t i = begin * out; i < end * out; ++i) {
      if (mask[i] >= 0) to[i / out * in + mask[i]] += grad[i];
    }
  });
  return absl::OkStatus();
}

template <typename T>
absl::Status MaxPoolGrad(KernelContext& ctx) {
  return WithIndices(ctx.input(kMask), "Mask",
                     [&](const auto* mask) { return AddAtPositions<T>(ctx, mask); });
}

OpDef GradDef(absl::string_view type, absl::StatusOr<ParsedAttrs> (*parse)(AttrReader&)) {
  return OpDef{
      .type = type,
      .inputs = {{"X", kNoNeedBuffer}, {"Mask", kAnyDType}, {"Out@GRAD"}},
      .outputs = {{"X@GRAD"}},
      .parse = parse,
      .infer = Infer,
      .kernels = {{DType::kFloat32, MaxPoolGrad<float>}, {DType::kFloat64, MaxPoolGrad<double>}},
  };
}

INTERP_REGISTER_OP(GradDef("max_pool2d_with_index_grad", ParseAttrs<PoolAttrs, ReadPool2d>));
INTERP_REGISTER_OP(GradDef("max_pool3d_with_index_grad", ParseAttrs<PoolAttrs, ReadPool3d>));

}  // namespace
}  // namespace interp::nn
