// The ways of our own to compute a convolution of float32 whose filter is constant: where oneDNN's
// kernels are slow.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "kernels/conv/conv_problem.h"

namespace interp::nn {

// Images are dense and channels-last. Thread-safety: constant.
struct ConvMethod {
  absl::string_view name;  // in profiles
  uint64_t key;            // of the packed filter, KernelContext::Shared; no hash is that small
  // True where this is faster than oneDNN. It may compute other cases, too.
  bool (*pays)(const ConvProblem&);
  int64_t (*filter_size)(const ConvProblem&);  // floats of the packed filter
  // Packs a filter. May throw std::bad_alloc.
  void (*pack)(const ConvProblem&, const ScaledFilter& filter, float* packed);
  // Memory for a run.
  size_t (*work_bytes)(const ConvProblem&, int num_threads) = [](const ConvProblem&, int) {
    return size_t{0};
  };
  // Computes `out`, which holds the residual before when the epilogue has one. `bias` is null
  // without one; `work` has work_bytes. Results do not depend on the number of threads. REQUIRES:
  // a case that the method computes.
  void (*run)(const ConvProblem&, const ConvEpilogue&, const float* packed, const float* bias,
              const float* in, float* out, int num_threads, float* work);
};

// Keys of methods are below that; 1 is that of Winograd's method, 2 that of the taps behind a 1x1
// convolution.
inline constexpr uint64_t kConvMethodKeys = 8;

// The first method that pays; null: none does.
const ConvMethod* FindConvMethod(const ConvProblem& problem);

}  // namespace interp::nn
