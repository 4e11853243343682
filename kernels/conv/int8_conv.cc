#include "kernels/conv/int8_conv.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/conv/conv_direct.h"
#include "kernels/product/int8_sums.h"
#include "kernels/util/convert_elements.h"
#include "kernels/util/flush_denormals.h"

namespace interp::nn {
namespace {

// oneDNN divides the bias by the scales, and results by their own.
bool CanBeFused(const Int8Conv::Case& c) {
  const Int8Epilogue& epilogue = c.epilogue;
  if (!c.weights_stay || !c.scales_stay) return false;
  if (epilogue.to_int8 && !(std::isnormal(epilogue.out_scale) && epilogue.out_scale > 0)) {
    return false;
  }
  for (size_t i = 0; i < epilogue.scales.size(); ++i) {
    if (!std::isnormal(epilogue.scales[i])) return false;
    if (!epilogue.bias.empty() && !std::isfinite(epilogue.bias[i] / epilogue.scales[i]))
      return false;
  }
  return true;
}

// Null where oneDNN has nothing.
absl::StatusOr<std::unique_ptr<OnednnInt8Conv>> MakeConv(const ConvProblem& problem,
                                                         const Int8Epilogue& epilogue) {
  absl::StatusOr<std::unique_ptr<OnednnInt8Conv>> conv = OnednnInt8Conv::Make(problem, epilogue);
  if (absl::IsUnimplemented(conv.status())) return std::unique_ptr<OnednnInt8Conv>();
  return conv;
}

std::vector<float> WideFilter(const Int8Weights& weights) {
  if (!weights.real_values.empty()) return weights.real_values;
  return std::vector<float>(weights.values.begin(), weights.values.end());
}

enum class Side : bool { kInput, kOutput };

ImageView ImageOf(const ConvProblem& problem, Side side) {
  const bool output = side == Side::kOutput;
  Shape shape = {problem.batch, output ? problem.out_channels : problem.in_channels};
  for (int i = 0; i < problem.window.rank; ++i) {
    shape.push_back(output ? problem.window[i].out : problem.window[i].in);
  }
  return DenseChannelsLast(ViewImage(shape, Layout::kPlain, /*channels_last_dims=*/false));
}

ImageView FilterOf(const ConvProblem& problem) {
  Shape shape = {problem.out_channels, problem.group_in()};
  for (int i = 0; i < problem.window.rank; ++i) shape.push_back(problem.window[i].kernel);
  return ViewImage(shape, Layout::kPlain, /*channels_last_dims=*/false);
}

}  // namespace

void FillEpilogue(const Int8Weights& weights, const Tensor& input_scale, const Tensor* out_scale,
                  const Int8Attrs& attrs, Int8Epilogue& epilogue) {
  const float scale = *input_scale.data<float>();
  epilogue.scales.resize(weights.factors.size());
  std::transform(weights.factors.begin(), weights.factors.end(), epilogue.scales.begin(),
                 [scale](float factor) { return factor * scale; });
  epilogue.bias = weights.bias;
  epilogue.to_int8 = out_scale != nullptr;
  epilogue.out_scale = out_scale == nullptr ? 0 : *out_scale->data<float>();
  epilogue.out_grid = attrs.out_grid;
}

std::string Int8Conv::algorithm() const {
  if (last_ == nullptr) return "";
  if (last_->fused != nullptr) return last_->fused->implementation();
  if (last_->sums != nullptr) return last_->sums->implementation();
  return last_->wide != nullptr ? last_->wide->implementation() : "plain loops";
}

absl::StatusOr<Int8Conv::Prepared*> Int8Conv::Prepare(const KernelContext& ctx, const Case& c) {
  const ShapeCache<Prepared>::Key key = KeyOf(c.problem, ctx.num_threads());
  const bool whole = c.weights.real_values.empty();
  Prepared* const found = prepared_.Find(key);
  if (found != nullptr && (whole || found->sums_in_float())) return found;
  auto prepared = std::make_unique<Prepared>();
  if (whole && CanBeFused(c)) {
    INTERP_ASSIGN_OR_RETURN(prepared->fused, MakeConv(c.problem, c.epilogue));
  }
  if (whole && prepared->fused == nullptr) {
    INTERP_ASSIGN_OR_RETURN(prepared->sums, MakeConv(c.problem, Int8Epilogue()));
  }
  if (prepared->sums_in_float()) {
    absl::StatusOr<std::unique_ptr<OnednnConv>> wide =
        OnednnConv::Make(c.problem, ConvEpilogue(), DType::kFloat32);
    if (!wide.ok() && !absl::IsUnimplemented(wide.status())) return wide.status();
    if (wide.ok()) prepared->wide = *std::move(wide);
  }
  if (found == nullptr) return &prepared_.Insert(key, std::move(prepared));
  *found = std::move(*prepared);
  return found;
}

// The filter as `conv` wants it.
absl::StatusOr<std::shared_ptr<const dnnl::memory>> Int8Conv::Filter(const KernelContext& ctx,
                                                                     const Case& c,
                                                                     const OnednnInt8Conv& conv,
                                                                     Prepared& prepared) {
  const auto pack = [&] { return conv.Pack(c.weights.values.data()); };
  if (!c.weights_stay) return pack();
  if (prepared.filter == nullptr) {
    INTERP_ASSIGN_OR_RETURN(prepared.filter, ctx.Shared<dnnl::memory>(conv.weights_key(), pack));
  }
  return prepared.filter;
}

// Sums in float32 where there is no int8 primitive: exact as long as weights are whole numbers and
// sums stay below 2^24.
absl::Status Int8Conv::SumWide(const KernelContext& ctx, const Case& c, Prepared& prepared,
                               const float* in, float* sums) {
  if (prepared.wide != nullptr) {
    if (prepared.wide_filter == nullptr || !c.weights_stay) {
      INTERP_ASSIGN_OR_RETURN(
          auto packed, prepared.wide->Pack(WideFilter(c.weights).data(), {}, ctx.num_threads()));
      INTERP_ASSIGN_OR_RETURN(prepared.wide_filter, prepared.wide->Use(std::move(packed)));
    }
    return prepared.wide->Run(ctx, prepared.wide_filter, in, sums);
  }
  const ImageView out_view = ImageOf(c.problem, Side::kOutput);
  std::fill_n(sums, out_view.numel(), 0.0F);
  ConvDirect(c.problem, ImageOf(c.problem, Side::kInput), in, FilterOf(c.problem),
             WideFilter(c.weights).data(), out_view, sums, ctx.num_threads());
  return absl::OkStatus();
}

// Sums first, then all that follows them.
template <typename Out>
absl::Status Int8Conv::RunInTwo(const KernelContext& ctx, const Case& c, Prepared& prepared,
                                const int8_t* in, Out* out) {
  const int64_t out_size = ImageOf(c.problem, Side::kOutput).numel();
  const int64_t in_size = ImageOf(c.problem, Side::kInput).numel();
  const int64_t pixels = out_size / c.problem.out_channels;
  const bool whole = prepared.sums != nullptr;
  INTERP_ASSIGN_OR_RETURN(const Workspace work,
                          ctx.workspace(sizeof(float) * (out_size + (whole ? 0 : in_size))));
  if (whole) {
    auto* const sums = work.data<int32_t>();
    INTERP_ASSIGN_OR_RETURN(const std::shared_ptr<const dnnl::memory> filter,
                            Filter(ctx, c, *prepared.sums, prepared));
    INTERP_RETURN_IF_ERROR(prepared.sums->Run(ctx, filter, in, sums));
    FinishSums(c.epilogue, pixels, sums, ctx.num_threads(), out);
    return absl::OkStatus();
  }
  auto* const sums = work.data<float>();
  float* const wide = sums + out_size;
  ConvertElements(ctx.num_threads(), in, in_size, wide);
  INTERP_RETURN_IF_ERROR(SumWide(ctx, c, prepared, wide, sums));
  FinishSums(c.epilogue, pixels, sums, ctx.num_threads(), out);
  return absl::OkStatus();
}

template <typename Out>
absl::Status Int8Conv::Run(const KernelContext& ctx, const Case& c, const int8_t* in, Out* out) {
  const FlushDenormals flush;
  UseThreads(ctx.num_threads());
  INTERP_ASSIGN_OR_RETURN(Prepared* const prepared, Prepare(ctx, c));
  last_ = prepared;
  if (prepared->fused == nullptr) return RunInTwo(ctx, c, *prepared, in, out);
  INTERP_ASSIGN_OR_RETURN(const std::shared_ptr<const dnnl::memory> filter,
                          Filter(ctx, c, *prepared->fused, *prepared));
  return prepared->fused->Run(ctx, filter, in, out);
}

template absl::Status Int8Conv::Run(const KernelContext&, const Case&, const int8_t*, float*);
template absl::Status Int8Conv::Run(const KernelContext&, const Case&, const int8_t*, int8_t*);

}  // namespace interp::nn
