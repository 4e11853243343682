// histogram: Out = how many elements of X lie in each of `bins` equal parts of [min, max], those of
// X where both are 0. What lies outside does not count. Which part an element on an edge is in is
// found in float32 for float32, as Paddle does. bincount: Out[i] = how often i is in X, or the sum
// of the Weights there.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "core/element_types.h"
#include "core/op_def.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kWeights = 1;
constexpr int kMinLengthTensor = 2;
constexpr int kOut = 0;

struct HistogramAttrs {
  int64_t bins = 100;
  int64_t min = 0;
  int64_t max = 0;
};

HistogramAttrs ReadHistogramAttrs(AttrReader& reader) {
  const HistogramAttrs attrs = {reader.Long("bins", 100), reader.Int("min", 0),
                                reader.Int("max", 0)};
  if (attrs.bins < 1) {
    reader.Fail(absl::StrCat("attribute 'bins' is ", attrs.bins, ", expected at least 1"));
  }
  if (attrs.max < attrs.min) {
    reader.Fail(
        absl::StrCat("attribute 'max' is ", attrs.max, ", expected at least 'min' ", attrs.min));
  }
  return attrs;
}

absl::Status InferHistogram(InferContext& ctx) {
  ctx.SetShape(kOut, {ctx.attrs<HistogramAttrs>().bins});
  return absl::OkStatus();
}

template <typename T>
absl::Status Histogram(KernelContext& ctx) {
  const HistogramAttrs& attrs = ctx.attrs<HistogramAttrs>();
  const T* const x = ctx.input(kX).data<T>();
  const int64_t count = ctx.input(kX).numel();
  int64_t* const out = ctx.output(kOut).mutable_data<int64_t>();
  std::fill(out, out + attrs.bins, 0);
  if (count == 0) return absl::OkStatus();
  T low = static_cast<T>(attrs.min);
  T high = static_cast<T>(attrs.max);
  if (low == high) {
    low = *std::min_element(x, x + count);
    high = *std::max_element(x, x + count);
  }
  if (!std::isfinite(static_cast<double>(low)) || !std::isfinite(static_cast<double>(high))) {
    return InvalidArgument("'X' reaches from ", low, " to ", high, ", expected finite numbers");
  }
  using C = std::conditional_t<std::is_same_v<T, float>, float, double>;
  C first = static_cast<C>(low);
  C last = static_cast<C>(high);
  if (first == last) {
    first -= 1;
    last += 1;
  }
  for (int64_t i = 0; i < count; ++i) {
    const C value = static_cast<C>(x[i]);
    if (!(value >= first && value <= last)) continue;
    const C part = (value - first) * static_cast<C>(attrs.bins) / (last - first);
    // False also for what a product of huge numbers gives, infinity and NaN.
    const bool inner = part < static_cast<C>(attrs.bins);
    ++out[inner ? static_cast<int64_t>(part) : attrs.bins - 1];
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "histogram",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<HistogramAttrs, ReadHistogramAttrs>,
    .infer_dtype = [](DTypeContext& ctx) { ctx.Set(kOut, DType::kInt64); },
    .infer = InferHistogram,
    .kernels = {{DType::kFloat32, Histogram<float>},
                {DType::kFloat64, Histogram<double>},
                {DType::kInt32, Histogram<int32_t>},
                {DType::kInt64, Histogram<int64_t>}},
    .gradient = {.none = true},
});

struct BinCountAttrs {
  int64_t minlength = 0;
};

// Largest number of bins: an element of X alone says how many there are.
constexpr int64_t kMaxBins = int64_t{1} << 30;

BinCountAttrs ReadBinCountAttrs(AttrReader& reader) { return {reader.Int("minlength", 0)}; }

absl::StatusOr<int64_t> MinLength(const OpContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(
      const int64_t length,
      ReadInteger(ctx, kMinLengthTensor, "MinLengthTensor", ctx.attrs<BinCountAttrs>().minlength));
  if (length >= 0 && length <= kMaxBins) return length;
  return InvalidArgument("'minlength' is ", length, ", expected 0 to ", kMaxBins);
}

// Sums of integer weights are taken as float64.
DType CountDType(DType weights) {
  if (weights == DType::kUndefined) return DType::kInt64;
  return weights == DType::kFloat32 ? DType::kFloat32 : DType::kFloat64;
}

template <typename T>
absl::StatusOr<int64_t> CountBins(const Tensor& tensor, int64_t minlength) {
  const T* const x = tensor.data<T>();
  int64_t bins = minlength;
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    if (x[i] < 0 || x[i] >= kMaxBins) {
      return InvalidArgument("'X' has the value ", x[i], " at position ", i, ", expected 0 to ",
                             kMaxBins - 1);
    }
    bins = std::max<int64_t>(bins, static_cast<int64_t>(x[i]) + 1);
  }
  return bins;
}

template <typename R, typename T, typename Weight>
void AddUp(const Tensor& x, const Weight& weight, Tensor& out) {
  const T* const bins = x.data<T>();
  R* const sums = out.mutable_data<R>();
  std::fill(sums, sums + out.numel(), R{0});
  const int64_t count = x.numel();
  for (int64_t i = 0; i < count; ++i) sums[bins[i]] += weight(i);
}

template <typename T>
absl::Status AddUpWeights(const Tensor& x, const Tensor& weights, Tensor& out) {
  const auto add = [&]<typename W>() {
    using R = std::conditional_t<std::is_same_v<W, float>, float, double>;
    AddUp<R, T>(
        x, [w = weights.data<W>()](int64_t i) { return static_cast<R>(w[i]); }, out);
  };
  if (WithOneOf<float, double, int32_t, int64_t>(weights.dtype, add)) return absl::OkStatus();
  return InvalidArgument("'Weights' is ", DescribeType(weights),
                         ", expected float32, float64, int32 or int64");
}

template <typename T>
absl::Status BinCount(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const Tensor* const weights = ctx.optional_input(kWeights);
  if (x.shape.rank() != 1 || (weights != nullptr && weights->shape != x.shape)) {
    return InvalidArgument(
        "'X' has shape ", ToString(x.shape), weights == nullptr ? "" : " and 'Weights' ",
        weights == nullptr ? "" : ToString(weights->shape), ", expected vectors of one length");
  }
  Tensor& out = ctx.output(kOut);
  INTERP_ASSIGN_OR_RETURN(const int64_t least, MinLength(ctx));
  INTERP_ASSIGN_OR_RETURN(const int64_t bins, CountBins<T>(x, least));
  out.shape = {x.numel() == 0 ? 0 : bins};
  out.lod.clear();
  INTERP_RETURN_IF_ERROR(ctx.Allocate(out));
  if (weights == nullptr) {
    AddUp<int64_t, T>(
        x, [](int64_t) { return 1; }, out);
    return absl::OkStatus();
  }
  return AddUpWeights<T>(x, *weights, out);
}

INTERP_REGISTER_OP(OpDef{
    .type = "bincount",
    .inputs = {{"X"},
               {"Weights", kOptional | kAnyDType},
               {"MinLengthTensor", kOptional | kAnyDType, "minlength"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<BinCountAttrs, ReadBinCountAttrs>,
    .infer_dtype = [](DTypeContext& ctx) { ctx.Set(kOut, CountDType(ctx.input(kWeights))); },
    .kernels = {{DType::kInt32, BinCount<int32_t>}, {DType::kInt64, BinCount<int64_t>}},
    .dynamic_outputs = true,
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
