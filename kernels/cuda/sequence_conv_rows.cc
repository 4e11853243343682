// Rows of sequence_conv and its gradient: windows of some rows at a time in memory, and products of
// them.
#include <algorithm>
#include <utility>

#include "kernels/cuda/elements.h"
#include "kernels/cuda/number_lists.h"
#include "kernels/cuda/pieces.h"
#include "kernels/cuda/row.h"
#include "kernels/cuda/sequence_conv.h"
#include "kernels/sequence/sequence_windows.h"
#include "kernels/util/shape_args.h"

namespace interp::cuda {
namespace {

using sequence_conv::kFilter;
using sequence_conv::kPaddingData;
using sequence_conv::kX;
using sequence_conv::SequenceConvAttrs;

// The shape of windows over X, whose offsets `numbers` has; none of them in memory.
RowWindows WindowsOver(const KernelContext& ctx, const NumberLists& numbers) {
  const auto& attrs = ctx.attrs<SequenceConvAttrs>();
  const Tensor& x = ctx.input(kX);
  return {.sequences = {numbers.list(0), SequenceCount(x.lod.back()), x.shape[0], x.shape[1]},
          .start = attrs.start,
          .length = attrs.length,
          .before = attrs.rows_before(),
          .behind = attrs.rows_behind()};
}

// Memory for some windows at a time, one a row.
struct WindowPieces {
  Workspace memory;
  int64_t rows;  // the most there is memory for
};
absl::StatusOr<WindowPieces> MemoryOfWindows(const KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  INTERP_ASSIGN_OR_RETURN(
      const int64_t bytes,
      CheckedProduct(ctx.input(kFilter).shape[0], static_cast<int64_t>(SizeOf(x.dtype))));
  const int64_t rows = PartsAtOnce(x.shape[0], bytes);
  INTERP_ASSIGN_OR_RETURN(Workspace memory, ctx.workspace(static_cast<size_t>(rows * bytes)));
  return WindowPieces{std::move(memory), rows};
}

// Calls body(shape) for pieces of `all` whose windows there is memory for, in their order.
template <typename Body>
absl::Status ForEachPiece(RowWindows all, int64_t most, const Body& body) {
  for (all.first = 0; all.first < all.sequences.rows; all.first += most) {
    all.count = std::min(most, all.sequences.rows - all.first);
    INTERP_RETURN_IF_ERROR(body(all));
  }
  return absl::OkStatus();
}

absl::Status UnfoldX(const KernelContext& ctx, const RowWindows& shape, void* windows) {
  const Tensor& x = ctx.input(kX);
  const bool padded = ctx.attrs<SequenceConvAttrs>().padded;
  return UnfoldRows(x.dtype, shape, x.raw_data(),
                    padded ? ctx.input(kPaddingData).raw_data() : nullptr, windows, StreamOf(ctx));
}

// X, PaddingData, Filter -> Out.
absl::Status SequenceConv(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<SequenceConvAttrs>();
  const Tensor& x = ctx.input(kX);
  const Tensor& filter = ctx.input(kFilter);
  Tensor& out = ctx.output(/*slot=*/0);
  if (out.numel() == 0) return absl::OkStatus();
  const auto multiply = [&](const void* windows, int64_t first, int64_t rows) {
    return Multiply(ctx, x.dtype, {.m = rows, .n = out.shape[1], .k = filter.shape[0]},
                    ElementsOf(x.dtype, windows), ElementsOf(x.dtype, filter.raw_data()),
                    ElementsOf(x.dtype, out.mutable_raw_data()) + first * out.shape[1]);
  };
  const bool rows_are_windows = attrs.length == 1 && attrs.start == 0;
  if (rows_are_windows || filter.shape[0] == 0) return multiply(x.raw_data(), 0, out.shape[0]);
  INTERP_ASSIGN_OR_RETURN(const auto numbers, NumberLists::Make(ctx, {x.lod.back()}));
  INTERP_ASSIGN_OR_RETURN(const WindowPieces windows, MemoryOfWindows(ctx));
  return ForEachPiece(WindowsOver(ctx, numbers), windows.rows, [&](const RowWindows& piece) {
    INTERP_RETURN_IF_ERROR(UnfoldX(ctx, piece, windows.memory.data()));
    return multiply(windows.memory.data(), piece.first, piece.count);
  });
}

constexpr int kOutGrad = 3;  // of sequence_conv_grad, as those that follow
constexpr int kXGrad = 0;
constexpr int kPaddingDataGrad = 1;
constexpr int kFilterGrad = 2;

// The rows of Out@GRAD that a piece has windows of.
Elements OutGradOf(const KernelContext& ctx, const RowWindows& piece) {
  const Tensor& grad = ctx.input(kOutGrad);
  return ElementsOf(grad.dtype, grad.raw_data()) + piece.first * grad.shape[1];
}

// Adds up what the windows of a piece, whose gradients `windows` becomes, give X and PaddingData.
absl::Status WindowGradients(KernelContext& ctx, const RowWindows& piece, Elements windows) {
  Tensor* const x_grad = ctx.optional_output(kXGrad);
  const bool padded = ctx.attrs<SequenceConvAttrs>().padded;
  Tensor* const padding_grad = padded ? ctx.optional_output(kPaddingDataGrad) : nullptr;
  if (x_grad == nullptr && padding_grad == nullptr) return absl::OkStatus();
  const Tensor& filter = ctx.input(kFilter);
  const DType dtype = filter.dtype;
  INTERP_RETURN_IF_ERROR(Multiply(
      ctx, dtype, {.m = piece.count, .n = filter.shape[0], .k = filter.shape[1], .trans_y = true},
      OutGradOf(ctx, piece), ElementsOf(dtype, filter.raw_data()), windows));
  if (x_grad != nullptr) {
    INTERP_RETURN_IF_ERROR(
        AddRowWindows(dtype, piece, windows.data, x_grad->mutable_raw_data(), StreamOf(ctx)));
  }
  if (padding_grad == nullptr) return absl::OkStatus();
  return AddPaddingWindows(dtype, piece, windows.data, padding_grad->mutable_raw_data(),
                           StreamOf(ctx));
}

// Adds up what the windows of a piece, which `windows` becomes, give Filter.
absl::Status FilterGradient(KernelContext& ctx, const RowWindows& piece, Elements windows) {
  Tensor* const filter_grad = ctx.optional_output(kFilterGrad);
  if (filter_grad == nullptr) return absl::OkStatus();
  INTERP_RETURN_IF_ERROR(UnfoldX(ctx, piece, windows.data));
  const DType dtype = filter_grad->dtype;
  return Multiply(ctx, dtype,
                  {.m = filter_grad->shape[0],
                   .n = filter_grad->shape[1],
                   .k = piece.count,
                   .trans_x = true,
                   .beta = piece.first == 0 ? 0.0 : 1.0},
                  windows, OutGradOf(ctx, piece),
                  ElementsOf(dtype, filter_grad->mutable_raw_data()));
}

// X, PaddingData, Filter, Out@GRAD -> X@GRAD, PaddingData@GRAD, Filter@GRAD.
absl::Status SequenceConvGrad(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const Tensor& filter = ctx.input(kFilter);
  if (x.numel() == 0 || filter.numel() == 0) {
    return ZeroOutputs(ctx, {kXGrad, kPaddingDataGrad, kFilterGrad});
  }
  INTERP_RETURN_IF_ERROR(ZeroOutputs(ctx, {kXGrad, kPaddingDataGrad}));
  INTERP_ASSIGN_OR_RETURN(const auto numbers, NumberLists::Make(ctx, {x.lod.back()}));
  INTERP_ASSIGN_OR_RETURN(const WindowPieces pieces, MemoryOfWindows(ctx));
  const Elements windows = ElementsOf(x.dtype, pieces.memory.data());
  return ForEachPiece(WindowsOver(ctx, numbers), pieces.rows, [&](const RowWindows& piece) {
    INTERP_RETURN_IF_ERROR(FilterGradient(ctx, piece, windows));
    return WindowGradients(ctx, piece, windows);
  });
}

constexpr std::initializer_list<DType> kConvolved = {DType::kFloat32, DType::kFloat64};

INTERP_REGISTER_KERNELS("sequence_conv", RowsFor(kConvolved, SequenceConv));
INTERP_REGISTER_KERNELS("sequence_conv_grad", RowsFor(kConvolved, SequenceConvGrad));

}  // namespace
}  // namespace interp::cuda
