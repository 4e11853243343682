// im2sequence_grad: every pixel of X@GRAD is the sum of Out@GRAD over the windows that hold it.
#include <algorithm>

#include "core/op_def.h"
#include "kernels/tensor/image_windows.h"
#include "kernels/util/fill_zero.h"
#include "kernels/util/parallel_for.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kOutGrad = 0;
constexpr int kX = 1;
constexpr int kY = 2;
constexpr int kXGrad = 0;

absl::Status InferIm2SequenceGrad(InferContext& ctx) {
  const Im2SequenceAttrs& attrs = ctx.attrs<Im2SequenceAttrs>();
  const Shape& x = ctx.input(kX).shape;
  const Shape& given = ctx.input(kOutGrad).shape;
  INTERP_RETURN_IF_ERROR(CheckImages(x));
  INTERP_ASSIGN_OR_RETURN(const std::vector<Grid> grids, Grids(attrs, x, ctx.optional_input(kY)));
  int64_t windows = 0;
  for (const Grid& grid : grids) {
    INTERP_ASSIGN_OR_RETURN(const int64_t more, CheckedProduct(grid.rows, grid.columns));
    INTERP_ASSIGN_OR_RETURN(windows, CheckedSum(windows, more));
  }
  INTERP_ASSIGN_OR_RETURN(const int64_t columns,
                          CheckedProduct(x[1], attrs.kernel[0] * attrs.kernel[1]));
  if (!(given == Shape{windows, columns})) {
    return InvalidArgument("'Out@GRAD' has shape ", ToString(given), ", expected [", windows, ",",
                           columns, "]");
  }
  ctx.SetShape(kXGrad, ctx.input(kX).shape);
  return absl::OkStatus();
}

// Adds the gradient of one window, which starts at (top, left) and may stick out of the image.
template <typename T>
void AddWindow(const Im2SequenceAttrs& attrs, const Shape& x, int64_t top, int64_t left,
               const T* window, T* image) {
  for (int64_t c = 0; c < x[1]; ++c) {
    for (int64_t h = top; h < top + attrs.kernel[0]; ++h, window += attrs.kernel[1]) {
      if (h < 0 || h >= x[2]) continue;
      T* const row = image + (c * x[2] + h) * x[3];
      const int64_t begin = std::max<int64_t>(left, 0);
      const int64_t end = std::min(left + attrs.kernel[1], x[3]);
      for (int64_t w = begin; w < end; ++w) row[w] += window[w - left];
    }
  }
}

template <typename T>
void AddImage(const Im2SequenceAttrs& attrs, const Shape& x, const Grid& grid, const T* windows,
              T* image) {
  const int64_t size = x[1] * attrs.kernel[0] * attrs.kernel[1];
  for (int64_t h = 0; h < grid.rows; ++h) {
    for (int64_t w = 0; w < grid.columns; ++w, windows += size) {
      AddWindow(attrs, x, h * attrs.stride[0] - attrs.pad_before[0],
                w * attrs.stride[1] - attrs.pad_before[1], windows, image);
    }
  }
}

template <typename T>
absl::Status Im2SequenceGrad(KernelContext& ctx) {
  const Im2SequenceAttrs& attrs = ctx.attrs<Im2SequenceAttrs>();
  Tensor& x_grad = ctx.output(kXGrad);
  const Shape& x = x_grad.shape;
  INTERP_ASSIGN_OR_RETURN(const std::vector<Grid> grids, Grids(attrs, x, ctx.optional_input(kY)));
  FillZero(ctx.num_threads(), x_grad);
  const int64_t size = x[1] * attrs.kernel[0] * attrs.kernel[1];
  std::vector<int64_t> starts = {0};
  for (const Grid& grid : grids) starts.push_back(starts.back() + grid.rows * grid.columns * size);
  const T* const out_grad = ctx.input(kOutGrad).data<T>();
  T* const images = x_grad.mutable_data<T>();
  ParallelFor(ctx.num_threads(), x[0], GrainForShare(starts.back(), x[0]),
              [&](int64_t begin, int64_t end) {
                for (int64_t n = begin; n < end; ++n) {
                  AddImage(attrs, x, grids[n], out_grad + starts[n], images + n * x.numel(1, 4));
                }
              });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "im2sequence_grad",
    .inputs = {{"Out@GRAD"},
               {"X", kNoNeedBuffer | kAnyDType | kAnyLayout},
               {"Y", kOptional | kAnyDType | kValueInInfer}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<Im2SequenceAttrs, ReadIm2SequenceAttrs>,
    .infer = InferIm2SequenceGrad,
    .kernels = {{DType::kFloat32, Im2SequenceGrad<float>},
                {DType::kFloat64, Im2SequenceGrad<double>}},
});

}  // namespace
}  // namespace interp
