// Rows of sequence_conv and its gradient: windows of all rows in memory, and products of them.
#include "kernels/cuda/elements.h"
#include "kernels/cuda/number_lists.h"
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

// The shape of windows over X, whose offsets `numbers` has.
RowWindows WindowsOver(const KernelContext& ctx, const NumberLists& numbers) {
  const auto& attrs = ctx.attrs<SequenceConvAttrs>();
  const Tensor& x = ctx.input(kX);
  return {.sequences = {numbers.list(0), SequenceCount(x.lod.back()), x.shape[0], x.shape[1]},
          .start = attrs.start,
          .length = attrs.length,
          .before = attrs.rows_before(),
          .behind = attrs.rows_behind()};
}

// Memory for all windows, one a row.
absl::StatusOr<Workspace> MemoryOfWindows(const KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  INTERP_ASSIGN_OR_RETURN(const int64_t elements,
                          CheckedProduct(x.shape[0], ctx.input(kFilter).shape[0]));
  INTERP_ASSIGN_OR_RETURN(const int64_t bytes,
                          CheckedProduct(elements, static_cast<int64_t>(SizeOf(x.dtype))));
  return ctx.workspace(static_cast<size_t>(bytes));
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
  const auto multiply = [&](const void* windows) {
    return Multiply(ctx, x.dtype, {.m = out.shape[0], .n = out.shape[1], .k = filter.shape[0]},
                    ElementsOf(x.dtype, windows), ElementsOf(x.dtype, filter.raw_data()),
                    ElementsOf(x.dtype, out.mutable_raw_data()));
  };
  const bool rows_are_windows = attrs.length == 1 && attrs.start == 0;
  if (rows_are_windows || filter.shape[0] == 0) return multiply(x.raw_data());
  INTERP_ASSIGN_OR_RETURN(const auto numbers, NumberLists::Make(ctx, {x.lod.back()}));
  INTERP_ASSIGN_OR_RETURN(Workspace windows, MemoryOfWindows(ctx));
  INTERP_RETURN_IF_ERROR(UnfoldX(ctx, WindowsOver(ctx, numbers), windows.data()));
  return multiply(windows.data());
}

constexpr int kOutGrad = 3;  // of sequence_conv_grad, as those that follow
constexpr int kXGrad = 0;
constexpr int kPaddingDataGrad = 1;
constexpr int kFilterGrad = 2;

// The gradients of X and PaddingData, from those of the windows, which `windows` becomes.
absl::Status WindowGradients(KernelContext& ctx, const RowWindows& shape, Elements windows) {
  Tensor* const x_grad = ctx.optional_output(kXGrad);
  const bool padded = ctx.attrs<SequenceConvAttrs>().padded;
  Tensor* const padding_grad = padded ? ctx.optional_output(kPaddingDataGrad) : nullptr;
  if (x_grad == nullptr && padding_grad == nullptr) return absl::OkStatus();
  const Tensor& filter = ctx.input(kFilter);
  const DType dtype = filter.dtype;
  INTERP_RETURN_IF_ERROR(Multiply(
      ctx, dtype,
      {.m = shape.sequences.rows, .n = filter.shape[0], .k = filter.shape[1], .trans_y = true},
      ElementsOf(dtype, ctx.input(kOutGrad).raw_data()), ElementsOf(dtype, filter.raw_data()),
      windows));
  if (x_grad != nullptr) {
    INTERP_RETURN_IF_ERROR(
        SumRowWindows(dtype, shape, windows.data, x_grad->mutable_raw_data(), StreamOf(ctx)));
  }
  if (padding_grad == nullptr) return absl::OkStatus();
  return SumPaddingWindows(dtype, shape, windows.data, padding_grad->mutable_raw_data(),
                           StreamOf(ctx));
}

// X, PaddingData, Filter, Out@GRAD -> X@GRAD, PaddingData@GRAD, Filter@GRAD.
absl::Status SequenceConvGrad(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const Tensor& filter = ctx.input(kFilter);
  if (x.numel() == 0 || filter.numel() == 0) {
    return ZeroOutputs(ctx, {kXGrad, kPaddingDataGrad, kFilterGrad});
  }
  if (!ctx.attrs<SequenceConvAttrs>().padded) {
    INTERP_RETURN_IF_ERROR(ZeroOutputs(ctx, {kPaddingDataGrad}));
  }
  INTERP_ASSIGN_OR_RETURN(const auto numbers, NumberLists::Make(ctx, {x.lod.back()}));
  const RowWindows shape = WindowsOver(ctx, numbers);
  INTERP_ASSIGN_OR_RETURN(Workspace memory, MemoryOfWindows(ctx));
  const Elements windows = ElementsOf(x.dtype, memory.data());
  if (Tensor* const filter_grad = ctx.optional_output(kFilterGrad)) {
    INTERP_RETURN_IF_ERROR(UnfoldX(ctx, shape, windows.data));
    INTERP_RETURN_IF_ERROR(
        Multiply(ctx, x.dtype,
                 {.m = filter.shape[0], .n = filter.shape[1], .k = x.shape[0], .trans_x = true},
                 windows, ElementsOf(x.dtype, ctx.input(kOutGrad).raw_data()),
                 ElementsOf(x.dtype, filter_grad->mutable_raw_data())));
  }
  return WindowGradients(ctx, shape, windows);
}

constexpr std::initializer_list<DType> kConvolved = {DType::kFloat32, DType::kFloat64};

INTERP_REGISTER_KERNELS("sequence_conv", RowsFor(kConvolved, SequenceConv));
INTERP_REGISTER_KERNELS("sequence_conv_grad", RowsFor(kConvolved, SequenceConvGrad));

}  // namespace
}  // namespace interp::cuda
