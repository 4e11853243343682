// sequence_conv_grad: with the windows of sequence_conv.cc,
//
//   Filter@GRAD = windows^T Out@GRAD, the gradient of the windows = Out@GRAD Filter^T
//
// of which each row of X and of PaddingData gets the sum over the windows that it is in.
#include <optional>

#include "kernels/nn/product.h"
#include "kernels/sequence/sequence_windows.h"
#include "kernels/util/flops.h"

namespace interp::sequence_conv {
namespace {

constexpr int kOutGrad = 3;
constexpr int kXGrad = 0;
constexpr int kPaddingDataGrad = 1;
constexpr int kFilterGrad = 2;

absl::Status InferSequenceConvGrad(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckInputs(ctx));
  const Shape expected = {ctx.input(kX).shape[0], ctx.input(kFilter).shape[1]};
  if (!(ctx.input(kOutGrad).shape == expected)) {
    return InvalidArgument("input 'Out@GRAD' has shape ", ToString(ctx.input(kOutGrad).shape),
                           ", expected ", ToString(expected));
  }
  ctx.ShareShape(kX, kXGrad);
  ctx.ShareShape(kFilter, kFilterGrad);
  if (ctx.has_input(kPaddingData)) ctx.ShareShape(kPaddingData, kPaddingDataGrad);
  return absl::OkStatus();
}

template <typename T>
absl::Status FilterGradient(KernelContext& ctx, Tensor& out) {
  INTERP_ASSIGN_OR_RETURN(const Workspace windows, UnfoldRows<T>(ctx));
  nn::Product product;
  product.m = out.shape[0];
  product.n = out.shape[1];
  product.k = ctx.input(kX).shape[0];
  product.trans_x = true;
  return nn::RunProduct<T>(ctx, product, windows.data<T>(), ctx.input(kOutGrad).data<T>(),
                           /*y_constant=*/false, /*bias=*/nullptr, out.mutable_data<T>());
}

template <typename T>
absl::StatusOr<Workspace> WindowGradients(KernelContext& ctx) {
  const Shape& filter = ctx.input(kFilter).shape;
  INTERP_ASSIGN_OR_RETURN(Workspace windows, WindowMemory<T>(ctx));
  nn::Product product;
  product.m = ctx.input(kX).shape[0];
  product.n = filter[0];
  product.k = filter[1];
  product.trans_y = true;
  INTERP_RETURN_IF_ERROR(nn::RunProduct<T>(ctx, product, ctx.input(kOutGrad).data<T>(),
                                           ctx.input(kFilter).data<T>(), /*y_constant=*/false,
                                           /*bias=*/nullptr, windows.data<T>()));
  return windows;
}

template <typename T>
void AddRows(const T* x, int64_t size, T* sum) {
  for (int64_t j = 0; j < size; ++j) sum[j] += x[j];
}

// Row r of X is row l of the window of row r - start - l.
template <typename T>
void SumWindows(const KernelContext& ctx, const T* windows, T* x_grad) {
  const auto& attrs = ctx.attrs<SequenceConvAttrs>();
  const Tensor& x = ctx.input(kX);
  const int64_t width = x.shape[1];
  const int64_t depth = attrs.length * width;
  ParallelFor(ctx.num_threads(), x.shape[0], kElementwiseGrain / (depth + 1) + 1,
              [&](int64_t from, int64_t to) {
                std::fill(x_grad + from * width, x_grad + to * width, T{0});
                ForEachRow(x.lod.back(), from, to, [&](int64_t r, int64_t begin, int64_t end) {
                  const int64_t first = std::max<int64_t>(0, r - attrs.start - (end - 1));
                  const int64_t last = std::min(attrs.length - 1, r - attrs.start - begin);
                  for (int64_t l = first; l <= last; ++l) {
                    const int64_t window = r - attrs.start - l;
                    AddRows(windows + window * depth + l * width, width, x_grad + r * width);
                  }
                });
              });
}

template <typename T>
void SumPadding(const KernelContext& ctx, const T* windows, Tensor& out) {
  const auto& attrs = ctx.attrs<SequenceConvAttrs>();
  const Tensor& x = ctx.input(kX);
  const int64_t width = x.shape[1];
  T* const grad = out.mutable_data<T>();
  std::fill_n(grad, out.numel(), T{0});
  if (!attrs.padded) return;
  ForEachRow(x.lod.back(), 0, x.shape[0], [&](int64_t row, int64_t begin, int64_t end) {
    const WindowRows rows(attrs, row + attrs.start, begin, end);
    const T* const window = windows + row * attrs.length * width;
    AddRows(window, rows.before * width, grad + rows.first_before * width);
    AddRows(window + (rows.before + rows.inside) * width, rows.behind * width,
            grad + rows.first_behind * width);
  });
}

template <typename T>
absl::Status SequenceConvGrad(KernelContext& ctx) {
  if (Tensor* out = ctx.optional_output(kFilterGrad)) {
    INTERP_RETURN_IF_ERROR(FilterGradient<T>(ctx, *out));
  }
  Tensor* const x_grad = ctx.optional_output(kXGrad);
  Tensor* const padding_grad = ctx.optional_output(kPaddingDataGrad);
  if (x_grad == nullptr && padding_grad == nullptr) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(const Workspace windows, WindowGradients<T>(ctx));
  if (x_grad != nullptr) SumWindows(ctx, windows.data<T>(), x_grad->mutable_data<T>());
  if (padding_grad != nullptr) SumPadding(ctx, windows.data<T>(), *padding_grad);
  return absl::OkStatus();
}

int64_t Flops(const OpContext& ctx) {
  const Shape& filter = ctx.input(kFilter).shape;
  return ToFlops(4.0 * static_cast<double>(ctx.input(kX).shape[0]) *
                 static_cast<double>(filter.numel()));
}

INTERP_REGISTER_OP(OpDef{
    .type = "sequence_conv_grad",
    .inputs = {{"X"}, {"PaddingData", kOptional}, {"Filter"}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD", kOptional}, {"PaddingData@GRAD", kOptional}, {"Filter@GRAD", kOptional}},
    .parse = ParseAttrs<SequenceConvAttrs, ReadSequenceConvAttrs>,
    .infer = InferSequenceConvGrad,
    .kernels = {{DType::kFloat32, SequenceConvGrad<float>},
                {DType::kFloat64, SequenceConvGrad<double>}},
    .flops = Flops,
});

}  // namespace
}  // namespace interp::sequence_conv
