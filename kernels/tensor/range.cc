// range: Out = Start, Start + Step, ... up to but without End.
#include <cmath>

#include "core/op_def.h"

namespace interp {
namespace {

constexpr int kStart = 0;
constexpr int kEnd = 1;
constexpr int kStep = 2;
constexpr int kOut = 0;

// Elements between start and end; the caller has checked step.
template <typename T>
absl::StatusOr<int64_t> Count(T start, T end, T step) {
  double count = 0;
  if constexpr (std::is_integral_v<T>) {
    __int128 distance = static_cast<__int128>(end) - start;
    __int128 stride = step;
    if (distance < 0) distance = -distance;
    if (stride < 0) stride = -stride;
    const __int128 exact = (distance + stride - 1) / stride;
    if (exact <= INT64_MAX) return static_cast<int64_t>(exact);
    count = static_cast<double>(exact);
  } else {
    count = std::ceil(std::abs((end - start) / step));
  }
  constexpr double kMost = 0x1p60;
  if (!(count < kMost)) return InvalidArgument("range has ", count, " elements");
  return static_cast<int64_t>(count);
}

template <typename T>
absl::Status InferTyped(InferContext& ctx) {
  T values[3];
  for (const int slot : {kStart, kEnd, kStep}) {
    const Tensor& tensor = ctx.input(slot);
    if (!tensor.has_memory() || tensor.dtype != DTypeOf<T> || tensor.numel() != 1) {
      return InvalidArgument("argument ", slot, " of Start, End, Step is ", DescribeType(tensor),
                             ", expected one ", Name(DTypeOf<T>));
    }
    values[slot] = *tensor.data<T>();
  }
  const auto [start, end, step] = values;
  if (step == T{0}) return InvalidArgument("'Step' is 0");
  if ((start < end && step < T{0}) || (start > end && step > T{0})) {
    return InvalidArgument("'Step' ", step, " leads away from 'End' ", end, " at 'Start' ", start);
  }
  INTERP_ASSIGN_OR_RETURN(const int64_t count, Count(start, end, step));
  ctx.SetShape(kOut, {count});
  return absl::OkStatus();
}

absl::Status InferRange(InferContext& ctx) {
  switch (ctx.output(kOut).dtype) {
    case DType::kFloat32:
      return InferTyped<float>(ctx);
    case DType::kFloat64:
      return InferTyped<double>(ctx);
    case DType::kInt32:
      return InferTyped<int32_t>(ctx);
    default:
      return InferTyped<int64_t>(ctx);
  }
}

// Adds step by step, as Paddle does: the rounding errors are part of the result.
template <typename T>
absl::Status Range(KernelContext& ctx) {
  T value = *ctx.input(kStart).data<T>();
  const T step = *ctx.input(kStep).data<T>();
  T* const out = ctx.output(kOut).mutable_data<T>();
  const int64_t count = ctx.output(kOut).numel();
  for (int64_t i = 0; i < count; ++i) {
    out[i] = value;
    if (i + 1 < count) value += step;  // one further might overflow
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "range",
    .inputs = {{"Start", kValueInInfer}, {"End", kValueInInfer}, {"Step", kValueInInfer}},
    .outputs = {{"Out"}},
    .infer = InferRange,
    .kernels = {{DType::kFloat32, Range<float>},
                {DType::kFloat64, Range<double>},
                {DType::kInt32, Range<int32_t>},
                {DType::kInt64, Range<int64_t>}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
