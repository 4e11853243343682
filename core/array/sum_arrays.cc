#include "core/array/sum_arrays.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "core/float16.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;
constexpr int64_t kPart = 512;  // elements summed at a time, on the stack

absl::Status Infer(InferContext& ctx) {
  const absl::Span<const Tensor* const> x = ctx.inputs(kX);
  if (x[0] == nullptr) return InvalidArgument("the first array is none");
  for (const Tensor* tensor : x) {
    if (tensor == nullptr || tensor->shape != x[0]->shape || tensor->dtype != x[0]->dtype) {
      return InvalidArgument("the arrays differ: ", DescribeType(*x[0]), " and ",
                             tensor == nullptr ? "none" : DescribeType(*tensor));
    }
  }
  ctx.SetShape(kOut, x[0]->shape);
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
absl::Status Sum(KernelContext& ctx) {
  Tensor& out = ctx.output(kOut);
  T* const to = out.mutable_data<T>();
  const int64_t count = out.numel();
  for (int64_t begin = 0; begin < count; begin += kPart) {
    const int64_t n = std::min(kPart, count - begin);
    // `out` may be the memory of an input, so its part is written when all are read.
    std::array<Wide<T>, kPart> sum;
    SumPart<T>(ctx.inputs(kX), begin, n, sum.data());
    std::transform(sum.data(), sum.data() + n, to + begin,
                   [](Wide<T> v) { return static_cast<T>(v); });
  }
  return absl::OkStatus();
}

int64_t Flops(const OpContext& ctx) {
  return (std::ssize(ctx.inputs(kX)) - 1) * ctx.output(kOut).numel();
}

}  // namespace

const OpDef& SumArraysDef() {
  static const auto* const kDef = new OpDef{.type = "sum_arrays",
                                            .inputs = {{"X", kVariadic}},
                                            .outputs = {{"Out"}},
                                            .infer = Infer,
                                            .kernels = {{DType::kFloat32, Sum<float>},
                                                        {DType::kFloat64, Sum<double>},
                                                        {DType::kFloat16, Sum<float16>},
                                                        {DType::kBFloat16, Sum<bfloat16>},
                                                        {DType::kInt32, Sum<int32_t>},
                                                        {DType::kInt64, Sum<int64_t>}},
                                            .inplace = {{kX, kOut, /*each=*/false}},
                                            .flops = Flops};
  return *kDef;
}

}  // namespace interp
