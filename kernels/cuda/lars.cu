#include "kernels/cuda/floats_access.h"
#include "kernels/cuda/lars.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/square_sums.h"

namespace interp::cuda {
namespace {

__device__ const FloatsUpdate& ExactOf(const UpdateTask& task) {
  return task.master.in != nullptr ? task.master : task.param;
}

// The squares of the parameter and of the gradient.
__global__ void __launch_bounds__(kBlockThreads)
    SquareBoth(const UpdateTask task, SquareSums* parts) {
  const FloatsUpdate& exact = ExactOf(task);
  const auto add = [&](SquareSums& sums, int64_t i) {
    const double p = LoadFloat(exact.in, exact.dtype, i);
    const double g = LoadFloat(task.grad.data, task.grad.dtype, i);
    sums.first += p * p;
    sums.second += g * g;
  };
  SumSquares(task.size, add, parts);
}

__device__ float RateOf(const LarsNumbers& numbers, const UpdateTask& task,
                        const SquareSums& sums) {
  const float rate = LoadFloat(task.rate.data, task.rate.dtype, 0);
  if (!(task.decay > 0)) return rate;
  const float p = static_cast<float>(sqrt(sums.first));
  const float g = static_cast<float>(sqrt(sums.second)) * fabsf(numbers.rescale);
  if (!(p > 0) || !(g > 0)) return rate;
  return rate * numbers.coefficient * p / (g + task.decay * p + numbers.epsilon);
}

__global__ void __launch_bounds__(kBlockThreads)
    ApplyVelocity(const LarsNumbers numbers, const UpdateTask task, const SquareSums* parts) {
  const FloatsUpdate& exact = ExactOf(task);
  const FloatsUpdate& velocity = task.states[0];
  const float rate = RateOf(numbers, task, parts[kSquareParts]);
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < task.size;
       i += int64_t{gridDim.x} * blockDim.x) {
    const float p = LoadFloat(exact.in, exact.dtype, i);
    const float g = LoadFloat(task.grad.data, task.grad.dtype, i);
    const float v = numbers.mu * LoadFloat(velocity.in, velocity.dtype, i) +
                    rate * (numbers.rescale * g + task.decay * p);
    StoreFloat(v, velocity.dtype, velocity.out, i);
    StoreFloat(p - v, exact.dtype, exact.out, i);
    if (task.master.in != nullptr) StoreFloat(p - v, task.param.dtype, task.param.out, i);
  }
}

}  // namespace

size_t LarsWorkspaceBytes() { return kSquareSumsBytes; }

absl::Status UpdateByLars(const LarsNumbers& numbers, const UpdateTask& task, void* workspace,
                          cudaStream_t stream) {
  SquareSums* const parts = static_cast<SquareSums*>(workspace);
  if (task.size == 0) return absl::OkStatus();
  INTERP_RETURN_IF_ERROR(LaunchSquareSums(SquareBoth, parts, stream, task));
  return LaunchElements(ApplyVelocity, task.size, stream, numbers, task, parts);
}

}  // namespace interp::cuda
