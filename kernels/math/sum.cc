// sum: Out = X[0] + X[1] + ... for tensors of one shape, or of one element. Inputs without elements
// count as absent whatever their shape, as in Paddle, where gradient accumulation leaves such
// tensors. Inputs may be selected rows; the sum of nothing but those is selected rows. Of arrays,
// the elements are summed.
#include <algorithm>
#include <type_traits>

#include "absl/container/inlined_vector.h"
#include "core/op_def.h"
#include "kernels/math/scaled_gradient.h"
#include "kernels/math/sum_arrays.h"
#include "kernels/math/sum_rows.h"
#include "kernels/util/arithmetic.h"
#include "kernels/util/flops.h"
#include "kernels/util/parallel_for.h"
#include "kernels/util/rows.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;
constexpr int64_t kChunk = 1024;  // elements summed on the stack at a time

bool IsAbsent(const Tensor* tensor) { return tensor == nullptr || tensor->numel() == 0; }

// The arguments but for selected rows.
std::vector<const Tensor*> TensorsOf(const OpContext& ctx) {
  std::vector<const Tensor*> tensors;
  for (size_t i = 0; i < ctx.inputs(kX).size(); ++i) {
    const Tensor* x = ctx.inputs(kX)[i];
    if (x != nullptr && !InputIsRows(ctx, kX, i)) tensors.push_back(x);
  }
  return tensors;
}

absl::Status InferSum(InferContext& ctx) {
  const std::vector<const Tensor*> inputs = TensorsOf(ctx);
  if (OutputIsRows(ctx, kOut)) {
    if (inputs.empty()) return absl::OkStatus();
    return InvalidArgument("'Out' is selected rows, but an argument of 'X' is a tensor");
  }
  const Tensor* first = nullptr;
  for (const Tensor* x : inputs) {
    if (first == nullptr || IsAbsent(first)) first = x != nullptr ? x : first;
  }
  if (first == nullptr) return InvalidArgument("input 'X' has no argument that is a tensor");
  for (const Tensor* x : inputs) {
    const bool scalars = x != nullptr && x->numel() == 1 && first->numel() == 1;
    if (!IsAbsent(x) && !scalars && x->shape != first->shape) {
      return InvalidArgument("inputs 'X' differ in shape: ", ToString(first->shape), " and ",
                             ToString(x->shape));
    }
  }
  Tensor& out = ctx.output(kOut);
  out.shape = first->shape;
  out.lod = first->lod;
  return absl::OkStatus();
}

// Adds chunk by chunk on the stack: Out may be the memory of any input, and of several. The inputs
// are present, and one or more.
template <typename T>
void SumRange(absl::Span<const T* const> inputs, T* out, int64_t begin, int64_t end) {
  using C = ComputeType<T>;
  C total[kChunk];
  const T* const last = inputs.back();
  for (; begin < end; begin += kChunk) {
    const int64_t n = std::min(kChunk, end - begin);
    if (inputs.size() == 1) {
      std::copy(last + begin, last + begin + n, out + begin);
      continue;
    }
    const T* const first = inputs[0] + begin;
    const C* so_far = total;
    if constexpr (std::is_same_v<C, T>) so_far = inputs.size() == 2 ? first : total;
    if (so_far == total) {
      for (int64_t i = 0; i < n; ++i) total[i] = static_cast<C>(first[i]);
    }
    for (const T* input : inputs.subspan(1, inputs.size() - 2)) {
      for (int64_t i = 0; i < n; ++i) {
        total[i] = WrapAdd(total[i], static_cast<C>(input[begin + i]));
      }
    }
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      out[begin + i] = static_cast<T>(WrapAdd(so_far[i], static_cast<C>(last[begin + i])));
    }
  }
}

template <typename T>
void SumTensors(KernelContext& ctx, absl::Span<const Tensor* const> inputs, Tensor& out) {
  absl::InlinedVector<const T*, 8> present;
  for (const Tensor* input : inputs) {
    if (!IsAbsent(input)) present.push_back(input->data<T>());
  }
  if (present.empty()) return;  // Out has no elements, too
  T* data = out.mutable_data<T>();
  ParallelFor(ctx.num_threads(), out.numel(), kElementwiseGrain,
              [&](int64_t begin, int64_t end) { SumRange<T>(present, data, begin, end); });
}

template <typename T>
absl::Status SumWithRows(KernelContext& ctx) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    if (!OutputIsRows(ctx, kOut)) {
      SumTensors<T>(ctx, TensorsOf(ctx), ctx.output(kOut));
    }
    return AddRows<T>(ctx, kX, kOut);
  } else {
    return Unimplemented("sums selected rows of float32 and float64 alone, not of ",
                         Name(DTypeOf<T>));
  }
}

template <typename T>
absl::Status Sum(KernelContext& ctx) {
  if (AnyRows(ctx, kX)) return SumWithRows<T>(ctx);
  if (AreArrays(ctx, kX)) {
    return SumArrays(ctx, kX, kOut, [&ctx](absl::Span<const Tensor* const> elements, Tensor& out) {
      SumTensors<T>(ctx, elements, out);
    });
  }
  SumTensors<T>(ctx, ctx.inputs(kX), ctx.output(kOut));
  return absl::OkStatus();
}

absl::Status MakeGradient(GradientMaker& maker) {
  const VarId gradient = maker.OutputGradients("Out")[0];
  for (const VarId x : maker.InputGradients("X")) {
    AddScaledGradient(maker, gradient, x, /*factor=*/1.0f);
  }
  return absl::OkStatus();
}

int64_t Flops(const OpContext& ctx) {
  const double adds = static_cast<double>(ctx.inputs(kX).size()) - 1;
  return ToFlops(std::max(0.0, adds) * static_cast<double>(ctx.output(kOut).numel()));
}

INTERP_REGISTER_OP(OpDef{
    .type = "sum",
    .inputs = {{"X", kVariadic | kMayBeRows | kMayBeArray}},
    .outputs = {{"Out", kMayBeRows | kMayBeArray}},
    .infer = InferSum,
    .kernels = {{DType::kFloat32, Sum<float>},
                {DType::kFloat64, Sum<double>},
                {DType::kFloat16, Sum<float16>},
                {DType::kBFloat16, Sum<bfloat16>},
                {DType::kInt32, Sum<int32_t>},
                {DType::kInt64, Sum<int64_t>},
                {DType::kComplex64, Sum<std::complex<float>>},
                {DType::kComplex128, Sum<std::complex<double>>}},
    .layout = LayoutRule::kFollows,
    .inplace = {{kX, kOut}},
    .gradient = {.make = MakeGradient},
    .flops = Flops,
});

}  // namespace
}  // namespace interp
