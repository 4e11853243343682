#include "kernels/conv/conv_grad.h"

#include <algorithm>
#include <optional>
#include <type_traits>

#include "kernels/conv/conv_direct_grad.h"
#include "kernels/conv/conv_winograd_filter_grad.h"
#include "kernels/nn/with_channels_last.h"
#include "kernels/norm/channel_stats.h"
#include "kernels/util/convert_elements.h"
#include "kernels/util/gradient_shape.h"

namespace interp::nn {
namespace {

constexpr const char* kPlainLoops = "plain loops";

// Whether Winograd's method computes the gradient by the input.
template <typename T>
bool TransformsForData(const KernelContext& ctx, const ConvProblem& problem,
                       const Tensor& out_grad) {
  if (!std::is_same_v<T, float> || ctx.algorithms() != Algorithms::kFast) return false;
  return out_grad.numel() > 0 && WinogradPays(DataGradProblem(problem), /*constant=*/false);
}

// The same for the gradient by the filter.
template <typename T>
bool TransformsForFilter(const KernelContext& ctx, const ConvProblem& problem,
                         const Tensor& out_grad) {
  if (!std::is_same_v<T, float> || ctx.algorithms() != Algorithms::kFast) return false;
  return out_grad.numel() > 0 && WinogradFilterGradPays(problem);
}

PreparedConvGrad& Prepared(KernelContext& ctx, const ConvProblem& problem, DType dtype) {
  ShapeCache<PreparedConvGrad>& cache = ctx.state<ConvGradState>().prepared;
  ShapeCache<PreparedConvGrad>::Key key = KeyOf(problem, ctx.num_threads());
  key.push_back(static_cast<int64_t>(dtype));
  if (PreparedConvGrad* prepared = cache.Find(key)) return *prepared;
  return cache.Insert(std::move(key),
                      std::make_unique<PreparedConvGrad>(PreparedConvGrad{
                          absl::UnknownError(""), absl::UnknownError(""), absl::UnknownError("")}));
}

// Filter values in dense O,I,kernel order.
template <typename T>
absl::StatusOr<const T*> PlainFilter(const KernelContext& ctx, const Tensor& filter,
                                     std::optional<Workspace>& copy) {
  const ImageView view = ViewImage(filter, /*channels_last_dims=*/false);
  if (IsChannelsFirst(view)) return filter.data<T>();
  INTERP_ASSIGN_OR_RETURN(copy, ctx.workspace(filter.size_bytes()));
  CopyImage(view, filter.data<T>(), DenseChannelsFirst(view), copy->data<T>(), ctx.num_threads());
  return copy->data<T>();
}

// What PreparedConvGrad keeps of a primitive, made at first use.
template <typename Primitive, typename Make>
absl::StatusOr<Primitive*> MadeOnce(absl::StatusOr<std::unique_ptr<Primitive>>& kept,
                                    const Make& make) {
  if (absl::IsUnknown(kept.status())) kept = make();
  INTERP_RETURN_IF_ERROR(kept.status());
  return kept->get();
}

template <typename T>
absl::StatusOr<OnednnConvDataGrad*> DataGradPrimitive(KernelContext& ctx,
                                                      const ConvProblem& problem) {
  UseThreads(ctx.num_threads());
  return MadeOnce(Prepared(ctx, problem, DTypeOf<T>).data,
                  [&] { return OnednnConvDataGrad::Make(problem, DTypeOf<T>); });
}

template <typename T>
absl::StatusOr<OnednnConvFilterGrad*> FilterGradPrimitive(KernelContext& ctx,
                                                          const ConvProblem& problem) {
  UseThreads(ctx.num_threads());
  return MadeOnce(Prepared(ctx, problem, DTypeOf<T>).filter, [&] {
    return OnednnConvFilterGrad::Make(problem, ctx.num_threads(), DTypeOf<T>);
  });
}

// Error Unimplemented: nothing has been done.
template <typename T>
absl::Status OnednnDataGrad(KernelContext& ctx, const ConvGradCase& conv, const Tensor& filter,
                            const Tensor& out_grad, Tensor& in_grad) {
  INTERP_ASSIGN_OR_RETURN(OnednnConvDataGrad* const primitive,
                          DataGradPrimitive<T>(ctx, conv.problem));
  ctx.state<ConvGradState>().by_input = primitive->implementation();
  std::optional<Workspace> copy;
  INTERP_ASSIGN_OR_RETURN(const T* const weights, PlainFilter<T>(ctx, filter, copy));
  return WithChannelsLast<T>(
      ctx, out_grad, in_grad, conv.channels_last_dims,
      [&](const T* from, T* to) { return primitive->Run(ctx, weights, from, to); });
}

// The gradient is a convolution itself: see DataGradProblem.
absl::Status WinogradDataGrad(KernelContext& ctx, const ConvGradCase& conv, const Tensor& filter,
                              const Tensor& out_grad, Tensor& in_grad) {
  const ConvProblem problem = DataGradProblem(conv.problem);
  auto& state = ctx.state<ConvGradState>();
  state.by_input = kWinogradName;
  std::optional<Workspace> copy;
  INTERP_ASSIGN_OR_RETURN(const float* const weights, PlainFilter<float>(ctx, filter, copy));
  INTERP_RETURN_IF_ERROR(CatchErrors([&] {
    TransformFilter(problem, DataGradFilter(conv.problem, weights), ctx.num_threads(),
                    state.mirrored);
    return absl::OkStatus();
  }));
  INTERP_ASSIGN_OR_RETURN(const Workspace work,
                          ctx.workspace(WinogradWorkBytes(problem, ctx.num_threads())));
  return WithChannelsLast<float>(
      ctx, out_grad, in_grad, conv.channels_last_dims, [&](const float* from, float* to) {
        RunWinograd(problem, ConvEpilogue(), state.mirrored.points.data(), /*bias=*/nullptr, from,
                    to, ctx.num_threads(), work.data<float>());
        return absl::OkStatus();
      });
}

absl::Status OnednnForward(KernelContext& ctx, const ConvGradCase& conv, const Tensor& filter,
                           const Tensor& in, Tensor& out) {
  UseThreads(ctx.num_threads());
  INTERP_ASSIGN_OR_RETURN(OnednnConv* const primitive,
                          MadeOnce(Prepared(ctx, conv.problem, DType::kFloat32).forward, [&] {
                            return OnednnConv::Make(conv.problem, ConvEpilogue(), DType::kFloat32);
                          }));
  ctx.state<ConvGradState>().by_input = primitive->implementation();
  std::optional<Workspace> copy;
  INTERP_ASSIGN_OR_RETURN(const float* const plain, PlainFilter<float>(ctx, filter, copy));
  INTERP_ASSIGN_OR_RETURN(const auto weights, primitive->Repack(ctx, plain));
  return WithChannelsLast<float>(
      ctx, in, out, conv.channels_last_dims,
      [&](const float* from, float* to) { return primitive->Run(ctx, weights, from, to); });
}

// Calls run(in, out_grad, filter_grad), an absl::Status, on dense channels-last images and a dense
// O,I,kernel filter.
template <typename T, typename Run>
absl::Status WithDenseFilterGrad(const KernelContext& ctx, const ConvGradCase& conv,
                                 const Tensor& in, const Tensor& out_grad, Tensor& filter_grad,
                                 const Run& run) {
  std::optional<Workspace> in_copy;
  std::optional<Workspace> out_copy;
  INTERP_ASSIGN_OR_RETURN(const T* const images,
                          AsChannelsLast<T>(ctx, in, conv.channels_last_dims, in_copy));
  INTERP_ASSIGN_OR_RETURN(const T* const grads,
                          AsChannelsLast<T>(ctx, out_grad, conv.channels_last_dims, out_copy));
  const ImageView view = ViewImage(filter_grad, /*channels_last_dims=*/false);
  if (IsChannelsFirst(view)) return run(images, grads, filter_grad.mutable_data<T>());
  INTERP_ASSIGN_OR_RETURN(const Workspace dense, ctx.workspace(filter_grad.size_bytes()));
  INTERP_RETURN_IF_ERROR(run(images, grads, dense.data<T>()));
  CopyImage(DenseChannelsFirst(view), dense.data<T>(), view, filter_grad.mutable_data<T>(),
            ctx.num_threads());
  return absl::OkStatus();
}

template <typename T>
absl::Status OnednnFilterGrad(KernelContext& ctx, const ConvGradCase& conv, const Tensor& in,
                              const Tensor& out_grad, Tensor& filter_grad) {
  INTERP_ASSIGN_OR_RETURN(OnednnConvFilterGrad* const primitive,
                          FilterGradPrimitive<T>(ctx, conv.problem));
  ctx.state<ConvGradState>().by_filter = primitive->implementation();
  return WithDenseFilterGrad<T>(ctx, conv, in, out_grad, filter_grad,
                                [&](const T* images, const T* grads, T* filter) {
                                  return primitive->Run(ctx, images, grads, filter);
                                });
}

absl::Status RunWinogradFilterGrad(const KernelContext& ctx, const ConvGradCase& conv,
                                   const Tensor& in, const Tensor& out_grad, Tensor& filter_grad) {
  ctx.state<ConvGradState>().by_filter = kWinogradName;
  INTERP_ASSIGN_OR_RETURN(const Workspace work,
                          ctx.workspace(WinogradFilterGradWorkBytes(conv.problem)));
  return WithDenseFilterGrad<float>(ctx, conv, in, out_grad, filter_grad,
                                    [&](const float* images, const float* grads, float* filter) {
                                      WinogradFilterGrad(conv.problem, images, grads, filter,
                                                         ctx.num_threads(), work.data<float>());
                                      return absl::OkStatus();
                                    });
}

// `tensor` in float32, its values or with room for them.
absl::StatusOr<Tensor> Widened(const KernelContext& ctx, const Tensor& tensor, bool values) {
  Tensor wide;
  wide.dtype = DType::kFloat32;
  wide.shape = tensor.shape;
  wide.layout = tensor.layout;
  INTERP_RETURN_IF_ERROR(wide.Allocate(ctx.allocator()));
  if (values) {
    ConvertElements(ctx.num_threads(), tensor.data<bfloat16>(), tensor.numel(),
                    wide.mutable_data<float>());
  }
  return wide;
}

// Calls run(a, b, out) for float32 tensors in place of bfloat16 ones.
template <typename Run>
absl::Status InFloat(const KernelContext& ctx, const Tensor& a, const Tensor& b, Tensor& out,
                     const Run& run) {
  INTERP_ASSIGN_OR_RETURN(const Tensor wide_a, Widened(ctx, a, /*values=*/true));
  INTERP_ASSIGN_OR_RETURN(const Tensor wide_b, Widened(ctx, b, /*values=*/true));
  INTERP_ASSIGN_OR_RETURN(Tensor wide_out, Widened(ctx, out, /*values=*/false));
  INTERP_RETURN_IF_ERROR(run(wide_a, wide_b, wide_out));
  ConvertElements(ctx.num_threads(), wide_out.data<float>(), out.numel(),
                  out.mutable_data<bfloat16>());
  return absl::OkStatus();
}

}  // namespace

template <typename T>
absl::Status ConvDataGrad(KernelContext& ctx, const ConvGradCase& conv, const Tensor& filter,
                          const Tensor& out_grad, Tensor& in_grad) {
  if (in_grad.numel() == 0) return absl::OkStatus();
  ctx.state<ConvGradState>().by_input = kPlainLoops;
  if constexpr (std::is_same_v<T, float>) {
    if (TransformsForData<T>(ctx, conv.problem, out_grad)) {
      return WinogradDataGrad(ctx, conv, filter, out_grad, in_grad);
    }
  }
  if constexpr (!std::is_same_v<T, double>) {
    const absl::Status done = OnednnDataGrad<T>(ctx, conv, filter, out_grad, in_grad);
    if (!absl::IsUnimplemented(done)) return done;
  }
  if constexpr (std::is_same_v<T, bfloat16>) {
    return InFloat(ctx, filter, out_grad, in_grad,
                   [&](const Tensor& wide_filter, const Tensor& wide_grad, Tensor& result) {
                     return ConvDataGrad<float>(ctx, conv, wide_filter, wide_grad, result);
                   });
  } else {
    const ConvImages<T> images = {.in_view = ViewImage(in_grad, conv.channels_last_dims),
                                  .filter_view = ViewImage(filter, false),
                                  .filter = filter.data<T>(),
                                  .out_view = ViewImage(out_grad, conv.channels_last_dims),
                                  .out_grad = out_grad.data<T>()};
    ConvDirectDataGrad(conv.problem, images, in_grad.mutable_data<T>(), ctx.num_threads());
    return absl::OkStatus();
  }
}

template <typename T>
absl::Status ConvForward(KernelContext& ctx, const ConvGradCase& conv, const Tensor& filter,
                         const Tensor& in, Tensor& out) {
  if (out.numel() == 0) return absl::OkStatus();
  ctx.state<ConvGradState>().by_input = kPlainLoops;
  if constexpr (std::is_same_v<T, float>) {
    const absl::Status done = OnednnForward(ctx, conv, filter, in, out);
    if (!absl::IsUnimplemented(done)) return done;
  }
  T* const sums = out.mutable_data<T>();
  std::fill_n(sums, out.numel(), T{0});
  ConvDirect(conv.problem, ViewImage(in, conv.channels_last_dims), in.data<T>(),
             ViewImage(filter, false), filter.data<T>(), ViewImage(out, conv.channels_last_dims),
             sums, ctx.num_threads());
  return absl::OkStatus();
}

template <typename T>
absl::Status ConvFilterGrad(KernelContext& ctx, const ConvGradCase& conv, const Tensor& in,
                            const Tensor& out_grad, Tensor& filter_grad) {
  ctx.state<ConvGradState>().by_filter = kPlainLoops;
  if constexpr (std::is_same_v<T, float>) {
    if (TransformsForFilter<T>(ctx, conv.problem, out_grad)) {
      return RunWinogradFilterGrad(ctx, conv, in, out_grad, filter_grad);
    }
  }
  if constexpr (!std::is_same_v<T, double>) {
    if (out_grad.numel() > 0) {
      const absl::Status done = OnednnFilterGrad<T>(ctx, conv, in, out_grad, filter_grad);
      if (!absl::IsUnimplemented(done)) return done;
    }
  }
  if constexpr (std::is_same_v<T, bfloat16>) {
    return InFloat(ctx, in, out_grad, filter_grad,
                   [&](const Tensor& wide_in, const Tensor& wide_grad, Tensor& result) {
                     return ConvFilterGrad<float>(ctx, conv, wide_in, wide_grad, result);
                   });
  } else {
    const ConvImages<T> images = {.in_view = ViewImage(in, conv.channels_last_dims),
                                  .in = in.data<T>(),
                                  .filter_view = ViewImage(filter_grad, false),
                                  .out_view = ViewImage(out_grad, conv.channels_last_dims),
                                  .out_grad = out_grad.data<T>()};
    ConvDirectFilterGrad(conv.problem, images, filter_grad.mutable_data<T>(), ctx.num_threads());
    return absl::OkStatus();
  }
}

template <typename T>
absl::Status PrepareConvGrad(KernelContext& ctx, const ConvProblem& problem) {
  const Tensor& out_grad = ctx.input(kConvOutGrad);
  if (out_grad.numel() == 0) return absl::OkStatus();
  absl::Status status;
  if (ctx.has_output(kConvInputGrad) && !TransformsForData<T>(ctx, problem, out_grad)) {
    status.Update(DataGradPrimitive<T>(ctx, problem).status());
  }
  // Within a parallel region oneDNN makes a depthwise one for a single thread
  // (jit_uni_dw_convolution_bwd_weights_t::pd_t::init).
  if (ctx.has_output(kConvFilterGrad) && !problem.depthwise() &&
      !TransformsForFilter<T>(ctx, problem, out_grad)) {
    status.Update(FilterGradPrimitive<T>(ctx, problem).status());
  }
  return status;
}

template absl::Status PrepareConvGrad<float>(KernelContext&, const ConvProblem&);
template absl::Status PrepareConvGrad<bfloat16>(KernelContext&, const ConvProblem&);
template absl::Status ConvForward<float>(KernelContext&, const ConvGradCase&, const Tensor&,
                                         const Tensor&, Tensor&);
template absl::Status ConvForward<double>(KernelContext&, const ConvGradCase&, const Tensor&,
                                          const Tensor&, Tensor&);
template absl::Status ConvDataGrad<float>(KernelContext&, const ConvGradCase&, const Tensor&,
                                          const Tensor&, Tensor&);
template absl::Status ConvDataGrad<double>(KernelContext&, const ConvGradCase&, const Tensor&,
                                           const Tensor&, Tensor&);
template absl::Status ConvFilterGrad<float>(KernelContext&, const ConvGradCase&, const Tensor&,
                                            const Tensor&, Tensor&);
template absl::Status ConvFilterGrad<double>(KernelContext&, const ConvGradCase&, const Tensor&,
                                             const Tensor&, Tensor&);
template absl::Status ConvDataGrad<bfloat16>(KernelContext&, const ConvGradCase&, const Tensor&,
                                             const Tensor&, Tensor&);
template absl::Status ConvFilterGrad<bfloat16>(KernelContext&, const ConvGradCase&, const Tensor&,
                                               const Tensor&, Tensor&);

template <typename T>
void ConvBiasGrad(const Tensor& image, bool channels_last_dims, Tensor& bias_grad,
                  int num_threads) {
  const ImageView view = ViewImage(image, channels_last_dims);
  const std::array<int64_t, 5> strides = Strides3(view);
  const int64_t width = view.rank > 2 ? view.spatial(view.spatial_rank() - 1) : 1;
  const int64_t rows = view.pixels() / std::max<int64_t>(width, 1);
  const int64_t height = view.spatial_rank() > 1 ? view.spatial(view.spatial_rank() - 2) : 1;
  ParallelFor(num_threads, view.channels(), /*grain=*/1, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      double sum = 0;
      for (int64_t i = 0; i < view.batch() * rows; ++i) {
        const int64_t row = i % rows;
        const T* x = image.data<T>() + i / rows * strides[0] + c * strides[1] +
                     row / height * strides[2] + row % height * strides[3];
        for (int64_t w = 0; w < width; ++w) sum += x[w * strides[4]];
      }
      bias_grad.mutable_data<T>()[c] = Convert<T>(sum);
    }
  });
}

template void ConvBiasGrad<float>(const Tensor&, bool, Tensor&, int);
template void ConvBiasGrad<double>(const Tensor&, bool, Tensor&, int);
template void ConvBiasGrad<bfloat16>(const Tensor&, bool, Tensor&, int);

OpDef ConvGradDef(absl::string_view type, absl::StatusOr<ParsedAttrs> (*parse)(AttrReader&),
                  absl::Status (*infer)(InferContext&)) {
  return OpDef{
      .type = type,
      .inputs = {{"Input"},
                 {"Filter", kAnyLayout},
                 {"Bias", kOptional | kNoNeedBuffer},
                 {"Output@GRAD"}},
      .outputs = {{"Input@GRAD", kOptional},
                  {"Filter@GRAD", kOptional | kAnyLayout},
                  {"Bias@GRAD", kOptional}},
      .parse = parse,
      .infer = infer,
      .layout = LayoutRule::kPrefersChannelsLast,
  };
}

absl::Status InferConvGrad(InferContext& ctx, const Shape& out, int64_t channels) {
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kConvOutGrad, "Output@GRAD", out));
  const Tensor* bias = ctx.optional_input(kConvBias);
  if (bias == nullptr ? ctx.has_output(kConvBiasGrad) : bias->numel() != channels) {
    return InvalidArgument("input 'Bias' is ", bias == nullptr ? "absent" : DescribeType(*bias),
                           ", expected [", channels, "]");
  }
  ctx.ShareShape(kConvInput, kConvInputGrad);
  ctx.ShareShape(kConvFilter, kConvFilterGrad);
  if (bias != nullptr) ctx.ShareShape(kConvBias, kConvBiasGrad);
  return absl::OkStatus();
}

int64_t ConvGradFlops(const OpContext& ctx, const Tensor& image) {
  const int wanted =
      (ctx.has_output(kConvInputGrad) ? 1 : 0) + (ctx.has_output(kConvFilterGrad) ? 1 : 0);
  return wanted * ConvFlops(image, ctx.input(kConvFilter));
}

}  // namespace interp::nn
