#include "core/array/sum_arrays.h"

#include <algorithm>
#include <array>
#include <complex>
#include <type_traits>

#include "core/float16.h"

namespace interp {
namespace {

constexpr int kTerms = 0;
constexpr int kSum = 0;
constexpr int64_t kPart = 512;  // elements summed at a time, on the stack

absl::Status InferSum(InferContext& ctx) {
  const absl::Span<const Tensor* const> x = ctx.inputs(kTerms);
  if (x[0] == nullptr) return InvalidArgument("the first array is none");
  for (const Tensor* tensor : x) {
    if (tensor == nullptr || tensor->shape != x[0]->shape || tensor->dtype != x[0]->dtype) {
      return InvalidArgument("the arrays differ: ", DescribeType(*x[0]), " and ",
                             tensor == nullptr ? "none" : DescribeType(*tensor));
    }
  }
  ctx.SetShape(kSum, x[0]->shape);
  return absl::OkStatus();
}

// What sums are computed in.
template <typename T>
using Wide =
    std::conditional_t<std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>, float, T>;

// out = the sum of x at [begin, begin + n).
template <typename T>
void SumPart(absl::Span<const Tensor* const> x, int64_t begin, int64_t n, Wide<T>* __restrict out) {
  const T* const first = x[0]->data<T>() + begin;
  if (x.size() == 1) {
    std::transform(first, first + n, out, [](T v) { return static_cast<Wide<T>>(v); });
    return;
  }
  if (x.size() == 2) {
    const T* const second = x[1]->data<T>() + begin;
    for (int64_t i = 0; i < n; ++i) {
      out[i] = static_cast<Wide<T>>(first[i]) + static_cast<Wide<T>>(second[i]);
    }
    return;
  }
  const size_t half = (x.size() + 1) / 2;
  std::array<Wide<T>, kPart> right;
  SumPart<T>(x.first(half), begin, n, out);
  SumPart<T>(x.subspan(half), begin, n, right.data());
  for (int64_t i = 0; i < n; ++i) out[i] += right[i];
}

template <typename T>
absl::Status SumTerms(KernelContext& ctx) {
  Tensor& out = ctx.output(kSum);
  T* const to = out.mutable_data<T>();
  const int64_t count = out.numel();
  for (int64_t begin = 0; begin < count; begin += kPart) {
    const int64_t n = std::min(kPart, count - begin);
    // `out` may be the memory of an input, so its part is written when all are read.
    std::array<Wide<T>, kPart> sum;
    SumPart<T>(ctx.inputs(kTerms), begin, n, sum.data());
    std::transform(sum.data(), sum.data() + n, to + begin,
                   [](Wide<T> v) { return static_cast<T>(v); });
  }
  return absl::OkStatus();
}

int64_t Flops(const OpContext& ctx) {
  return (std::ssize(ctx.inputs(kTerms)) - 1) * ctx.output(kSum).numel();
}

}  // namespace

const OpDef& SumArraysDef() {
  static const auto* const kDef =
      new OpDef{.type = "sum_arrays",
                .inputs = {{"X", kVariadic}},
                .outputs = {{"Out"}},
                .infer = InferSum,
                .kernels = {{DType::kFloat32, SumTerms<float>},
                            {DType::kFloat64, SumTerms<double>},
                            {DType::kFloat16, SumTerms<float16>},
                            {DType::kBFloat16, SumTerms<bfloat16>},
                            {DType::kComplex64, SumTerms<std::complex<float>>},
                            {DType::kComplex128, SumTerms<std::complex<double>>},
                            {DType::kInt32, SumTerms<int32_t>},
                            {DType::kInt64, SumTerms<int64_t>}},
                .inplace = {{kTerms, kSum, /*each=*/false}},
                .flops = Flops};
  return *kDef;
}

}  // namespace interp
