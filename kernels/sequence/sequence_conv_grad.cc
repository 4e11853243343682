// sequence_conv_grad: with the windows of sequence_conv.cc,
//
//   Filter@GRAD = windows^T Out@GRAD, the gradient of the windows = Out@GRAD Filter^T
//
// of which each row of X and of PaddingData gets the sum over the windows that it is in. Windows
// are never in memory all at once.
#include <algorithm>

#include "kernels/product/weight_product.h"
#include "kernels/sequence/sequence_windows.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/flops.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/parallel_for.h"
#include "kernels/util/shape_args.h"

namespace interp::sequence_conv {
namespace {

constexpr int kOutGrad = 3;
constexpr int kXGrad = 0;
constexpr int kPaddingDataGrad = 1;
constexpr int kFilterGrad = 2;

absl::Status InferSequenceConvGrad(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckInputs(ctx));
  const Shape expected = {ctx.input(kX).shape[0], ctx.input(kFilter).shape[1]};
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kOutGrad, "Out@GRAD", expected));
  ctx.ShareShape(kX, kXGrad);
  ctx.ShareShape(kFilter, kFilterGrad);
  INTERP_RETURN_IF_ERROR(ShareOptionalShape(ctx, kPaddingData, "PaddingData", kPaddingDataGrad));
  return absl::OkStatus();
}

template <typename T>
absl::Status FilterGradient(const KernelContext& ctx, T* out) {
  const Shape& filter = ctx.input(kFilter).shape;
  const Windows<T> windows = WindowsOf<T>(ctx);
  const auto gather = [&](int64_t first, int64_t count, T* to) {
    windows.Copy(first, first + count, to);
  };
  return nn::WeightProduct<T, decltype(gather)>({ctx.input(kX).shape[0], filter[0], filter[1]},
                                                gather, ctx.input(kOutGrad).data<T>())
      .Run(ctx, out);
}

// Gives the gradients of some windows at a time.
template <typename T>
struct WindowGradients {
  int64_t depth = 0;  // elements of a window
  int64_t width = 0;  // of Out
  const T* out_grad = nullptr;
  const T* filter = nullptr;  // [width, depth], packed: the transpose

  // Those of the output rows [begin, end).
  void Run(int64_t begin, int64_t end, T* to) const {
    nn::GemmPacked(end - begin, width, depth, out_grad + begin * width, width, filter, to, depth,
                   /*accumulate=*/false);
  }
};

template <typename T>
void AddRows(const T* x, int64_t size, T* sum) {
  for (int64_t j = 0; j < size; ++j) sum[j] += x[j];
}

constexpr int64_t kSlice = 256;  // rows whose windows are in memory at a time

// The gradients of the rows [from, to) of X: row r is row l of the window of row r - start - l.
// `windows` is scratch for those of to - from + length - 1 rows.
template <typename T>
void SumWindows(const KernelContext& ctx, const WindowGradients<T>& gradients, int64_t from,
                int64_t to, T* windows, T* x_grad) {
  const auto& attrs = ctx.attrs<SequenceConvAttrs>();
  const Tensor& x = ctx.input(kX);
  const int64_t width = x.shape[1];
  const int64_t rows = x.shape[0];
  const int64_t lowest = std::clamp<int64_t>(from - attrs.start - attrs.length + 1, 0, rows);
  const int64_t highest = std::clamp<int64_t>(to - attrs.start, lowest, rows);
  gradients.Run(lowest, highest, windows);
  std::fill(x_grad + from * width, x_grad + to * width, T{0});
  ForEachRow(x.lod.back(), from, to, [&](int64_t r, int64_t begin, int64_t end) {
    const int64_t first = std::max<int64_t>(0, r - attrs.start - (end - 1));
    const int64_t last = std::min(attrs.length - 1, r - attrs.start - begin);
    for (int64_t l = first; l <= last; ++l) {
      const int64_t window = r - attrs.start - l - lowest;
      AddRows(windows + window * gradients.depth + l * width, width, x_grad + r * width);
    }
  });
}

// Threads share the rows of X, each with scratch memory of its own.
template <typename T>
absl::Status XGradient(const KernelContext& ctx, const WindowGradients<T>& gradients, T* x_grad) {
  const int64_t rows = ctx.input(kX).shape[0];
  const int64_t length = ctx.attrs<SequenceConvAttrs>().length;
  const int64_t tasks = std::clamp<int64_t>(rows / kSlice, 1, ctx.num_threads());
  const int64_t most = std::min(rows, std::min(rows, kSlice) + length - 1);
  INTERP_ASSIGN_OR_RETURN(const int64_t elements, CheckedProduct(most, gradients.depth * tasks));
  INTERP_ASSIGN_OR_RETURN(const int64_t bytes, CheckedProduct(elements, sizeof(T)));
  INTERP_ASSIGN_OR_RETURN(const Workspace memory, ctx.workspace(static_cast<size_t>(bytes)));
  ParallelFor(ctx.num_threads(), tasks, /*grain=*/1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      T* const windows = memory.data<T>() + task * most * gradients.depth;
      const int64_t last = rows * (task + 1) / tasks;
      for (int64_t from = rows * task / tasks; from < last; from += kSlice) {
        SumWindows(ctx, gradients, from, std::min(from + kSlice, last), windows, x_grad);
      }
    }
  });
  return absl::OkStatus();
}

// Only windows at the ends of sequences have rows of the padding.
template <typename T>
absl::Status PaddingGradient(const KernelContext& ctx, const WindowGradients<T>& gradients,
                             T* grad) {
  const auto& attrs = ctx.attrs<SequenceConvAttrs>();
  const Tensor& x = ctx.input(kX);
  const int64_t width = x.shape[1];
  INTERP_ASSIGN_OR_RETURN(const Workspace memory,
                          ctx.workspace(static_cast<size_t>(gradients.depth) * sizeof(T)));
  T* const window = memory.data<T>();
  ForEachRow(x.lod.back(), 0, x.shape[0], [&](int64_t row, int64_t begin, int64_t end) {
    const WindowRows rows(attrs, row + attrs.start, begin, end);
    if (rows.before == 0 && rows.behind == 0) return;
    gradients.Run(row, row + 1, window);
    AddRows(window, rows.before * width, grad + rows.first_before * width);
    AddRows(window + (rows.before + rows.inside) * width, rows.behind * width,
            grad + rows.first_behind * width);
  });
  return absl::OkStatus();
}

template <typename T>
absl::Status SequenceConvGrad(KernelContext& ctx) {
  const Tensor& filter = ctx.input(kFilter);
  const auto data = [&](int slot) -> T* {
    Tensor* const out = ctx.optional_output(slot);
    if (out == nullptr) return nullptr;
    std::fill_n(out->mutable_data<T>(), out->numel(), T{0});
    return out->mutable_data<T>();
  };
  T* const x_grad = data(kXGrad);
  T* const padding_grad = data(kPaddingDataGrad);
  T* const filter_grad = data(kFilterGrad);
  if (filter.numel() == 0 || ctx.input(kX).numel() == 0) return absl::OkStatus();
  if (filter_grad != nullptr) INTERP_RETURN_IF_ERROR(FilterGradient(ctx, filter_grad));
  if (x_grad == nullptr && padding_grad == nullptr) return absl::OkStatus();
  const int64_t depth = filter.shape[0];
  const int64_t width = filter.shape[1];
  const auto packed_size = static_cast<size_t>(nn::PackedSize<T>(width, depth));
  INTERP_ASSIGN_OR_RETURN(const Workspace packed, ctx.workspace(packed_size * sizeof(T)));
  nn::PackMatrix(width, depth, filter.data<T>(), int64_t{1}, width, packed.data<T>());
  const WindowGradients<T> gradients = {depth, width, ctx.input(kOutGrad).data<T>(),
                                        packed.data<T>()};
  if (x_grad != nullptr) INTERP_RETURN_IF_ERROR(XGradient(ctx, gradients, x_grad));
  if (padding_grad == nullptr || !ctx.attrs<SequenceConvAttrs>().padded) return absl::OkStatus();
  return PaddingGradient(ctx, gradients, padding_grad);
}

INTERP_REGISTER_OP(OpDef{
    .type = "sequence_conv_grad",
    .inputs = {{"X"}, {"PaddingData", kOptional}, {"Filter"}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD", kOptional}, {"PaddingData@GRAD", kOptional}, {"Filter@GRAD", kOptional}},
    .parse = ParseAttrs<SequenceConvAttrs, ReadSequenceConvAttrs>,
    .infer = InferSequenceConvGrad,
    .kernels = {{DType::kFloat32, SequenceConvGrad<float>},
                {DType::kFloat64, SequenceConvGrad<double>}},
    .flops = ProductFlops<kX, kFilter, 2>,
});

}  // namespace
}  // namespace interp::sequence_conv
