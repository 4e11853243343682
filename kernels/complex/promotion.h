// Ops of a real and a complex operand. As in Paddle, both are taken as the complex type that holds
// both, and the gradient of a real operand is the real part of what comes of that.
#pragma once

#include <algorithm>
#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "core/op_def.h"
#include "kernels/complex/complex_dtype.h"
#include "kernels/util/parallel_for.h"

namespace interp {

// An OpDef::kernel_dtype: that of the first present slot, but where one is complex the complex type
// that holds all (Paddle's PromoteTypesIfComplexExists).
template <int... kSlots>
DType PromotedDType(const DTypeContext& ctx) {
  DType first = DType::kUndefined;
  bool complex = false;
  bool wide = false;
  for (const DType dtype : {ctx.input(kSlots)...}) {
    if (first == DType::kUndefined) first = dtype;
    complex = complex || IsComplex(dtype);
    wide = wide || dtype == DType::kFloat64 || dtype == DType::kComplex128;
  }
  if (!complex) return first;
  return wide ? DType::kComplex128 : DType::kComplex64;
}

// An OpDef::infer_dtype of a gradient of two operands: output i has the dtype of input i where the
// kernel is complex and that is a real float, else the kernel's.
inline void RealGradientDTypes(DTypeContext& ctx) {
  if (!IsComplex(ctx.kernel())) return;
  for (const int slot : {0, 1}) {
    const DType dtype = ctx.input(slot);
    if (dtype == DType::kFloat32 || dtype == DType::kFloat64) ctx.Set(slot, dtype);
  }
}

// Real parts of `complex`, as the dtype of `real`, which is of that shape.
template <typename T>
void CopyRealParts(int num_threads, const Tensor& complex, Tensor& real) {
  const auto* const from = complex.data<std::complex<T>>();
  const auto copy = [&](auto* to) {
    ParallelFor(num_threads, real.numel(), kElementwiseGrain, [&](int64_t begin, int64_t end) {
      using R = std::remove_pointer_t<decltype(to)>;
      for (int64_t i = begin; i < end; ++i) to[i] = static_cast<R>(from[i].real());
    });
  };
  if (real.dtype == DType::kFloat32) return copy(real.mutable_data<float>());
  copy(real.mutable_data<double>());
}

// A kernel of complex<T> for RealGradientDTypes: runs `kKernel` with complex tensors for outputs 0
// and 1 where those are real, and keeps the real parts.
template <typename T, KernelFn kKernel>
absl::Status WithRealGradients(KernelContext& ctx) {
  std::array<Tensor, 2> real;
  for (const int slot : {0, 1}) {
    Tensor* const out = ctx.optional_output(slot);
    if (out == nullptr || IsComplex(out->dtype)) continue;
    Tensor complex = *out;
    complex.dtype = DTypeOf<std::complex<T>>;
    INTERP_RETURN_IF_ERROR(ctx.Allocate(complex));
    real[slot] = std::exchange(*out, std::move(complex));
  }
  const absl::Status status = kKernel(ctx);
  for (const int slot : {0, 1}) {
    if (real[slot].dtype == DType::kUndefined) continue;
    const Tensor complex = std::exchange(ctx.output(slot), std::move(real[slot]));
    if (status.ok()) CopyRealParts<T>(ctx.num_threads(), complex, ctx.output(slot));
  }
  return status;
}

}  // namespace interp
