// maxout_grad: an element of Out@GRAD goes to the first channel of its group that has the maximum.

#include "core/op_def.h"
#include "kernels/pool/maxout.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/parallel_for.h"

namespace interp::nn {
namespace {

constexpr int kX = 0;
constexpr int kOut = 1;
constexpr int kOutGrad = 2;
constexpr int kXGrad = 0;

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const MaxoutBlocks blocks,
                          ResolveMaxout(ctx.attrs<MaxoutAttrs>(), ctx.input(kX).shape));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOut, "Out", blocks.out));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", blocks.out));
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

template <typename T>
absl::Status MaxoutGrad(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const MaxoutBlocks blocks,
                          ResolveMaxout(ctx.attrs<MaxoutAttrs>(), ctx.input(kX).shape));
  const int64_t inner = blocks.inner, groups = blocks.groups;
  const T* const x = ctx.input(kX).data<T>();
  const T* const out = ctx.input(kOut).data<T>();
  const T* const grad = ctx.input(kOutGrad).data<T>();
  T* const x_grad = ctx.output(kXGrad).mutable_data<T>();
  const int64_t grain = GrainFor(inner * groups);
  ParallelFor(ctx.num_threads(), blocks.rows, grain, [=](int64_t begin, int64_t end) {
    for (int64_t at = begin * inner; at < end * inner; ++at) {
      const int64_t first = at / inner * groups * inner + at % inner;
      T left = grad[at];
      for (int64_t g = 0; g < groups; ++g) {
        const bool hit = x[first + g * inner] == out[at];
        x_grad[first + g * inner] = hit ? left : T{0};
        if (hit) left = 0;
      }
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "maxout_grad",
    .inputs = {{"X"}, {"Out"}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<MaxoutAttrs, ReadMaxoutAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, MaxoutGrad<float>}, {DType::kFloat64, MaxoutGrad<double>}},
});

}  // namespace
}  // namespace interp::nn
