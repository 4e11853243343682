#include "kernels/cuda/gates.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/lstm_projection.h"
#include "kernels/cuda/sequences.h"

namespace interp::cuda {
namespace {

// A thread for each element of the live states: body(i, p, j, row of the input).
template <typename Body>
__device__ void ForEachProjected(const LstmProjection& projection, int64_t t, int64_t live,
                                 const Body& body) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < live * projection.width;
       i += int64_t{gridDim.x} * blockDim.x) {
    const int64_t p = i / projection.width;
    body(i, p, i % projection.width, projection.rows.first[p] + t * projection.rows.stride);
  }
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    ProjectElements(const LstmProjection projection, const ProjectionStep s) {
  ForEachProjected(projection, s.t, s.live, [&](int64_t i, int64_t, int64_t j, int64_t row) {
    T& r = static_cast<T*>(s.r)[i];
    const T value = ClipTo<T>(projection.clip, Activate(projection.activation, r));
    r = value;
    static_cast<T*>(s.out)[row * projection.width + j] = value;
  });
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    ProjectElementsBack(const LstmProjection projection, const ProjectionStepBack s) {
  ForEachProjected(projection, s.t, s.live, [&](int64_t i, int64_t p, int64_t j, int64_t row) {
    const T r = static_cast<const T*>(s.r)[row * projection.width + j];
    T grad = static_cast<const T*>(s.r_grad)[row * projection.width + j];
    if (p < s.live_behind) grad += static_cast<const T*>(s.dr)[i];
    if (ClipEndsAt<T>(projection.clip, r)) grad = 0;
    static_cast<T*>(s.sums_grad)[(s.batch_row + p) * projection.width + j] =
        ActivateBack(projection.activation, r, grad);
  });
}

template <typename Step>
absl::Status LaunchProjected(void (*kernel)(LstmProjection, Step), const LstmProjection& projection,
                             const Step& step, cudaStream_t stream) {
  const int64_t elements = step.live * projection.width;
  if (elements == 0) return absl::OkStatus();
  return Launch(kernel, BlocksFor(elements, kBlockThreads), kBlockThreads, /*shared_bytes=*/0,
                stream, projection, step);
}

}  // namespace

absl::Status StepProjection(DType dtype, const LstmProjection& projection,
                            const ProjectionStep& step, cudaStream_t stream) {
  return WithWideFloats("projections of lstmp", dtype, [&](auto type) {
    return LaunchProjected<ProjectionStep>(ProjectElements<typename decltype(type)::type>,
                                           projection, step, stream);
  });
}

absl::Status StepProjectionBack(DType dtype, const LstmProjection& projection,
                                const ProjectionStepBack& step, cudaStream_t stream) {
  return WithWideFloats("gradients of projections of lstmp", dtype, [&](auto type) {
    return LaunchProjected<ProjectionStepBack>(ProjectElementsBack<typename decltype(type)::type>,
                                               projection, step, stream);
  });
}

}  // namespace interp::cuda
