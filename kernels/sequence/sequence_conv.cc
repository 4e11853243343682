// sequence_conv: Out[t] = (the rows X[t + start] ... X[t + start + length - 1], joined) Filter.
// Rows outside of the sequence of t are 0, or those of PaddingData: first the ones for in front of
// a sequence, then the ones for behind it.
// fusion_seqconv_eltadd_relu: relu(Out + Bias) of that, without PaddingData, as Paddle's inference
// passes fuse it. The output that only its kernel needs is left empty.
#include <algorithm>
#include <optional>

#include "kernels/product/product.h"
#include "kernels/sequence/sequence_windows.h"
#include "kernels/util/flops.h"
#include "kernels/util/parallel_for.h"
#include "kernels/util/shape_args.h"

namespace interp::sequence_conv {
namespace {

constexpr int kBias = 3;  // of the fused form
constexpr int kOut = 0;
constexpr int kColumns = 1;

absl::Status InferSequenceConv(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckInputs(ctx));
  const Tensor& x = ctx.input(kX);
  ctx.SetShape(kOut, {x.shape[0], ctx.input(kFilter).shape[1]});
  ctx.output(kOut).lod = x.lod;
  return absl::OkStatus();
}

absl::Status InferFused(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(InferSequenceConv(ctx));
  if (ctx.input(kBias).numel() != ctx.output(kOut).shape[1]) {
    return InvalidArgument("input 'Bias' has shape ", ToString(ctx.input(kBias).shape),
                           ", expected ", ctx.output(kOut).shape[1], " elements");
  }
  ctx.SetShape(kColumns, {0});
  return absl::OkStatus();
}

// The windows of all rows of X, each as long as a column of Filter.
template <typename T>
absl::StatusOr<Workspace> UnfoldRows(KernelContext& ctx) {
  const Windows<T> windows = WindowsOf<T>(ctx);
  const int64_t rows = ctx.input(kX).shape[0];
  const int64_t depth = ctx.input(kFilter).shape[0];
  INTERP_ASSIGN_OR_RETURN(const int64_t bytes, CheckedProduct(rows, depth * sizeof(T)));
  INTERP_ASSIGN_OR_RETURN(Workspace unfolded, ctx.workspace(static_cast<size_t>(bytes)));
  T* const out = unfolded.data<T>();
  ParallelFor(ctx.num_threads(), rows, GrainFor(depth),
              [&](int64_t begin, int64_t end) { windows.Copy(begin, end, out + begin * depth); });
  return unfolded;
}

// Out = the product of the windows and Filter, plus `bias` unless it is null.
template <typename T>
absl::Status Convolve(KernelContext& ctx, const T* bias) {
  const auto& attrs = ctx.attrs<SequenceConvAttrs>();
  const Tensor& filter = ctx.input(kFilter);
  Tensor& out = ctx.output(kOut);
  nn::Product product = nn::ProductOf(out.shape[0], out.shape[1], filter.shape[0]);
  const T* rows = ctx.input(kX).data<T>();
  std::optional<Workspace> windows;
  const bool rows_are_windows = attrs.length == 1 && attrs.start == 0;
  if (!rows_are_windows && product.k > 0 && out.numel() > 0) {
    INTERP_ASSIGN_OR_RETURN(windows, UnfoldRows<T>(ctx));
    rows = windows->template data<T>();
  }
  return nn::RunProduct<T>(ctx, product, rows, filter.data<T>(), ctx.input_is_constant(kFilter),
                           bias, out.mutable_data<T>());
}

template <typename T>
absl::Status SequenceConv(KernelContext& ctx) {
  return Convolve<T>(ctx, /*bias=*/nullptr);
}

template <typename T>
absl::Status SequenceConvRelu(KernelContext& ctx) {
  INTERP_RETURN_IF_ERROR(Convolve(ctx, ctx.input(kBias).data<T>()));
  Tensor& out = ctx.output(kOut);
  T* const values = out.mutable_data<T>();
  ParallelFor(ctx.num_threads(), out.numel(), kElementwiseGrain,
              [values](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) values[i] = std::max(values[i], T{0});
              });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "sequence_conv",
    .inputs = {{"X"}, {"PaddingData", kOptional}, {"Filter"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<SequenceConvAttrs, ReadSequenceConvAttrs>,
    .infer = InferSequenceConv,
    .kernels = {{DType::kFloat32, SequenceConv<float>}, {DType::kFloat64, SequenceConv<double>}},
    .gradient = {.inputs = {"PaddingData", "X", "Filter", "Out@GRAD"},
                 .outputs = {"PaddingData@GRAD", "X@GRAD", "Filter@GRAD"}},
    .flops = ProductFlops<kX, kFilter>,
});

// Never padded: programs have no PaddingData.
INTERP_REGISTER_OP(OpDef{
    .type = "fusion_seqconv_eltadd_relu",
    .inputs = {{"X"}, {"PaddingData", kOptional}, {"Filter"}, {"Bias"}},
    .outputs = {{"Out"}, {"ColMat", kOptional}},
    .parse = ParseAttrs<SequenceConvAttrs, ReadSequenceConvAttrs>,
    .infer = InferFused,
    .kernels = {{DType::kFloat32, SequenceConvRelu<float>},
                {DType::kFloat64, SequenceConvRelu<double>}},
    .flops = ProductFlops<kX, kFilter>,
});

}  // namespace
}  // namespace interp::sequence_conv
