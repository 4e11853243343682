// spp_grad: an average passes its gradient on in equal shares, a maximum to the first pixel of its
// bin that has it.
#include <algorithm>

#include "core/op_def.h"
#include "kernels/pool/spp.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/parallel_for.h"

namespace interp::nn {
namespace {

constexpr int kX = 0;
constexpr int kOut = 1;
constexpr int kOutGrad = 2;
constexpr int kXGrad = 0;

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape out, ResolveSpp(ctx.attrs<SppAttrs>(), ctx.input(kX).shape));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOut, "Out", out));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", out));
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

// A rectangle of pixels of a plane of rows of `width`.
struct Rectangle {
  int64_t width, top, bottom, left, right;
};

template <typename T>
void SpreadMax(const Rectangle& r, const T* x, T out, T grad, T* x_grad) {
  for (int64_t y = r.top; y < r.bottom; ++y) {
    for (int64_t i = y * r.width + r.left; i < y * r.width + r.right; ++i) {
      if (x[i] != out) continue;
      x_grad[i] += grad;
      return;
    }
  }
}

template <typename T>
void SpreadAverage(const Rectangle& r, T grad, T* x_grad) {
  const T share = grad / static_cast<T>((r.bottom - r.top) * (r.right - r.left));
  for (int64_t y = r.top; y < r.bottom; ++y) {
    for (int64_t i = y * r.width + r.left; i < y * r.width + r.right; ++i) x_grad[i] += share;
  }
}

template <typename T>
absl::Status SppGrad(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<SppAttrs>();
  const Shape& shape = ctx.input(kX).shape;
  const int64_t channels = shape[1], plane = shape[2] * shape[3];
  const T* const x = ctx.input(kX).data<T>();
  const T* const out = ctx.input(kOut).data<T>();
  const T* const grad = ctx.input(kOutGrad).data<T>();
  T* const x_grad = ctx.output(kXGrad).mutable_data<T>();
  const int64_t grain = GrainFor(plane * attrs.levels);
  ParallelFor(ctx.num_threads(), shape[0] * channels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T* const to = x_grad + i * plane;
      std::fill_n(to, plane, T{0});
      const int64_t row = i / channels * channels * SppBins(attrs.levels);
      for (int64_t level = 0; level < attrs.levels; ++level) {
        const int64_t bins = int64_t{1} << (2 * level);
        const int64_t at = row + channels * SppBins(level) + i % channels * bins;
        ForEachSppBin(level, shape,
                      [&](int64_t bin, int64_t y0, int64_t y1, int64_t x0, int64_t x1) {
                        const Rectangle r = {shape[3], y0, y1, x0, x1};
                        if (attrs.max) {
                          SpreadMax(r, x + i * plane, out[at + bin], grad[at + bin], to);
                        } else {
                          SpreadAverage(r, grad[at + bin], to);
                        }
                      });
      }
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "spp_grad",
    .inputs = {{"X"}, {"Out"}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<SppAttrs, ReadSppAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, SppGrad<float>}, {DType::kFloat64, SppGrad<double>}},
});

}  // namespace
}  // namespace interp::nn
