// Half spectra along several axes back to real signals: what fft_c2r and fft_r2c_grad do.
#pragma once

#include <complex>
#include <vector>

#include "core/op_def.h"
#include "kernels/fft/transform.h"

namespace interp::fft {

// The axes but for the last of the list, along which half of a spectrum is left out.
inline absl::Span<const int> OuterAxes(const std::vector<int>& axes) {
  return {axes.data(), axes.size() - 1};
}

// out = the real signals of `spectra`, see TransformToReal.
template <typename T>
absl::Status HalfToReal(const KernelContext& ctx, const Tensor& spectra,
                        const std::vector<int>& axes, const LineOptions& options, Tensor& out) {
  using Number = std::complex<T>;
  const Number* from = spectra.data<Number>();
  const absl::Span<const int> outer = OuterAxes(axes);
  const size_t elements = outer.empty() ? 0 : static_cast<size_t>(spectra.numel());
  INTERP_ASSIGN_OR_RETURN(const Workspace work, ctx.workspace(elements * sizeof(Number)));
  if (!outer.empty()) {
    INTERP_RETURN_IF_ERROR(Transform<T>(ctx, spectra.shape, outer, {.forward = options.forward},
                                        from, work.data<Number>()));
    from = work.data<Number>();
  }
  return TransformToReal<T>(ctx, spectra.shape, out.shape, axes.back(), options, from,
                            out.mutable_data<T>());
}

}  // namespace interp::fft
