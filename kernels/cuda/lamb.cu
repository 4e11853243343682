#include "kernels/cuda/floats_access.h"
#include "kernels/cuda/lamb.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/square_sums.h"

namespace interp::cuda {
namespace {

__device__ bool Skips(const UpdateTask& task) { return task.skip != nullptr && *task.skip; }

__device__ const FloatsUpdate& ExactOf(const UpdateTask& task) {
  return task.master.in != nullptr ? task.master : task.param;
}

// What to subtract from the parameter, but for the rate.
struct Direction {
  float unbias1, unbias2, epsilon, decay;

  __device__ Direction(const LambNumbers& numbers, const UpdateTask& task)
      : epsilon(numbers.epsilon), decay(numbers.decay) {
    const FloatsUpdate& pow1 = task.beta_pows[0];
    const FloatsUpdate& pow2 = task.beta_pows[1];
    unbias1 = 1.0f / (1.0f - LoadFloat(pow1.in, pow1.dtype, 0));
    unbias2 = 1.0f / (1.0f - LoadFloat(pow2.in, pow2.dtype, 0));
  }
  __device__ float Of(float p, float moment1, float moment2) const {
    return moment1 * unbias1 / (sqrtf(moment2 * unbias2) + epsilon) + decay * p;
  }
};

// New moments, and the squares of the parameter and of the direction.
__global__ void __launch_bounds__(kBlockThreads)
    UpdateMoments(const LambNumbers numbers, const UpdateTask task, SquareSums* parts) {
  const bool skips = Skips(task);
  const Direction direction(numbers, task);
  const FloatsUpdate& exact = ExactOf(task);
  const FloatsUpdate& first = task.states[0];
  const FloatsUpdate& second = task.states[1];
  const auto add = [&](SquareSums& sums, int64_t i) {
    const float p = LoadFloat(exact.in, exact.dtype, i);
    const float g = LoadFloat(task.grad.data, task.grad.dtype, i);
    float moment1 = LoadFloat(first.in, first.dtype, i);
    float moment2 = LoadFloat(second.in, second.dtype, i);
    if (!skips) {
      moment1 = numbers.beta1 * moment1 + (1.0f - numbers.beta1) * g;
      moment2 = numbers.beta2 * moment2 + (1.0f - numbers.beta2) * g * g;
    }
    StoreFloat(moment1, first.dtype, first.out, i);
    StoreFloat(moment2, second.dtype, second.out, i);
    const float r = direction.Of(p, moment1, moment2);
    sums.first += double{p} * p;
    sums.second += double{r} * r;
  };
  SumSquares(task.size, add, parts);
}

// The states are the new moments.
__global__ void __launch_bounds__(kBlockThreads)
    ApplyDirection(const LambNumbers numbers, const UpdateTask task, const SquareSums* parts) {
  const bool skips = Skips(task);
  const Direction direction(numbers, task);
  const FloatsUpdate& exact = ExactOf(task);
  float rate = LoadFloat(task.rate.data, task.rate.dtype, 0);
  const double param_norm = sqrt(parts[kSquareParts].first);
  const double direction_norm = sqrt(parts[kSquareParts].second);
  const bool adapts = numbers.decay > 0 || numbers.always_adapt;
  if (adapts && param_norm > 0 && direction_norm > 0) {
    rate *= static_cast<float>(param_norm / direction_norm);
  }
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < task.size;
       i += int64_t{gridDim.x} * blockDim.x) {
    const float p = LoadFloat(exact.in, exact.dtype, i);
    const float moment1 = LoadFloat(task.states[0].out, task.states[0].dtype, i);
    const float moment2 = LoadFloat(task.states[1].out, task.states[1].dtype, i);
    const float value = skips ? p : p - rate * direction.Of(p, moment1, moment2);
    if (task.master.in != nullptr) StoreFloat(value, task.master.dtype, task.master.out, i);
    const bool keeps_param = skips && task.master.in != nullptr;
    StoreFloat(keeps_param ? LoadFloat(task.param.in, task.param.dtype, i) : value,
               task.param.dtype, task.param.out, i);
  }
}

// One thread. A launch of its own, as the others read the powers everywhere.
__global__ void AdvanceBetaPows(const LambNumbers numbers, const UpdateTask task) {
  for (int k = 0; k < 2; ++k) {
    const FloatsUpdate& pow = task.beta_pows[k];
    if (pow.out == nullptr) continue;
    const float beta = Skips(task) ? 1.0f : (k == 0 ? numbers.beta1 : numbers.beta2);
    StoreFloat(LoadFloat(pow.in, pow.dtype, 0) * beta, pow.dtype, pow.out, 0);
  }
}

}  // namespace

size_t LambWorkspaceBytes() { return kSquareSumsBytes; }

absl::Status UpdateByLamb(const LambNumbers& numbers, const UpdateTask& task, void* workspace,
                          cudaStream_t stream) {
  SquareSums* const parts = static_cast<SquareSums*>(workspace);
  if (task.size > 0) {
    INTERP_RETURN_IF_ERROR(LaunchSquareSums(UpdateMoments, parts, stream, numbers, task));
    INTERP_RETURN_IF_ERROR(LaunchElements(ApplyDirection, task.size, stream, numbers, task, parts));
  }
  return Launch(AdvanceBetaPows, 1, 1, /*shared_bytes=*/0, stream, numbers, task);
}

}  // namespace interp::cuda
