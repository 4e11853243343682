#include <algorithm>

#include "kernels/cuda/chunks.h"
#include "kernels/cuda/floats_access.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/optimizer.h"

namespace interp::cuda {
namespace {

// Tasks are arguments of the launch, of which there may be 32764 bytes from Volta on.
constexpr int kMostTasks = 64;

template <int kTasks>
struct TaskBatch {
  UpdateTask tasks[kTasks];
  ChunkMap<kTasks> chunks;
};
static_assert(sizeof(TaskBatch<kMostTasks>) + sizeof(UpdateNumbers) < 32000);

struct SgdStep {
  static constexpr int kStates = 0;
  float rate;
  __device__ SgdStep(const UpdateNumbers& /*numbers*/, const UpdateTask& task)
      : rate(LoadFloat(task.rate.data, task.rate.dtype, 0)) {}
  __device__ float operator()(float p, float g, float* /*state*/) const { return p - rate * g; }
};

template <bool kNesterov>
struct MomentumStep {
  static constexpr int kStates = 1;
  float rate, mu, decay;
  __device__ MomentumStep(const UpdateNumbers& numbers, const UpdateTask& task)
      : rate(LoadFloat(task.rate.data, task.rate.dtype, 0)),
        mu(Load(numbers.beta1)),
        decay(task.decay) {}
  __device__ float operator()(float p, float g, float* state) const {
    g += decay * p;
    state[0] = mu * state[0] + g;
    return kNesterov ? p - rate * (g + mu * state[0]) : p - rate * state[0];
  }
};

struct AdamStep {
  static constexpr int kStates = 2;
  float keep, beta1, beta2, rate, epsilon;
  __device__ AdamStep(const UpdateNumbers& numbers, const UpdateTask& task)
      : beta1(Load(numbers.beta1)), beta2(Load(numbers.beta2)) {
    const float learning_rate = LoadFloat(task.rate.data, task.rate.dtype, 0);
    const float pow1 = LoadFloat(task.beta_pows[0].in, task.beta_pows[0].dtype, 0);
    const float pow2 = LoadFloat(task.beta_pows[1].in, task.beta_pows[1].dtype, 0);
    keep = 1.0f - learning_rate * numbers.decay;
    rate = learning_rate * sqrtf(1.0f - pow2) / (1.0f - pow1);
    epsilon = Load(numbers.epsilon) * sqrtf(1.0f - pow2);
  }
  __device__ float operator()(float p, float g, float* state) const {
    state[0] = beta1 * state[0] + (1.0f - beta1) * g;
    state[1] = beta2 * state[1] + (1.0f - beta2) * g * g;
    return p * keep - rate * (state[0] / (sqrtf(state[1]) + epsilon));
  }
};

struct AdagradStep {
  static constexpr int kStates = 1;
  float rate, keep, add, epsilon;
  __device__ AdagradStep(const UpdateNumbers& numbers, const UpdateTask& task)
      : rate(LoadFloat(task.rate.data, task.rate.dtype, 0)),
        keep(Load(numbers.beta1)),
        add(Load(numbers.beta2)),
        epsilon(Load(numbers.epsilon)) {}
  __device__ float operator()(float p, float g, float* state) const {
    state[0] = keep * state[0] + add * g * g;
    return p - rate * g / (sqrtf(state[0]) + epsilon);
  }
};

struct AdadeltaStep {
  static constexpr int kStates = 2;
  float rate, rho, epsilon;
  __device__ AdadeltaStep(const UpdateNumbers& numbers, const UpdateTask& task)
      : rate(task.rate.data == nullptr ? 1.0f : LoadFloat(task.rate.data, task.rate.dtype, 0)),
        rho(Load(numbers.beta1)),
        epsilon(Load(numbers.epsilon)) {}
  __device__ float operator()(float p, float g, float* state) const {
    state[0] = rho * state[0] + (1.0f - rho) * g * g;
    const float step = -(sqrtf(state[1] + epsilon) / sqrtf(state[0] + epsilon) * g);
    state[1] = rho * state[1] + (1.0f - rho) * step * step;
    return p + rate * step;
  }
};

struct AdamaxStep {
  static constexpr int kStates = 2;
  float rate, beta1, beta2, epsilon;
  __device__ AdamaxStep(const UpdateNumbers& numbers, const UpdateTask& task)
      : rate(LoadFloat(task.rate.data, task.rate.dtype, 0) /
             (1.0f - LoadFloat(task.beta_pows[0].in, task.beta_pows[0].dtype, 0))),
        beta1(Load(numbers.beta1)),
        beta2(Load(numbers.beta2)),
        epsilon(Load(numbers.epsilon)) {}
  __device__ float operator()(float p, float g, float* state) const {
    state[0] = beta1 * state[0] + (1.0f - beta1) * g;
    const float decayed = beta2 * state[1] + epsilon;
    const float magnitude = fabsf(g);
    state[1] = magnitude > decayed ? magnitude : decayed;
    return p - rate * (state[0] / state[1]);
  }
};

template <bool kCentered>
struct RmspropStep {
  static constexpr int kStates = kCentered ? 3 : 2;
  float rate, momentum, decay, epsilon;
  __device__ RmspropStep(const UpdateNumbers& numbers, const UpdateTask& task)
      : rate(LoadFloat(task.rate.data, task.rate.dtype, 0)),
        momentum(Load(numbers.beta1)),
        decay(Load(numbers.beta2)),
        epsilon(Load(numbers.epsilon)) {}
  __device__ float operator()(float p, float g, float* state) const {
    state[0] = decay * state[0] + (1.0f - decay) * g * g;
    float variance = state[0];
    if constexpr (kCentered) {
      state[2] = decay * state[2] + (1.0f - decay) * g;
      variance -= state[2] * state[2];
    }
    state[1] = momentum * state[1] + rate * g / sqrtf(variance + epsilon);
    return p - state[1];
  }
};

__device__ void KeepValue(const FloatsUpdate& update, int64_t i) {
  if (update.in == update.out) return;
  StoreFloat(LoadFloat(update.in, update.dtype, i), update.dtype, update.out, i);
}

template <int kStates>
__device__ void KeepValues(const UpdateTask& task, int64_t i) {
  KeepValue(task.param, i);
  if (task.master.in != nullptr) KeepValue(task.master, i);
  INTERP_UNROLL
  for (int k = 0; k < kStates; ++k) KeepValue(task.states[k], i);
}

template <typename Step>
__device__ void UpdateElement(const UpdateTask& task, const Step& step, int64_t i) {
  const bool has_master = task.master.in != nullptr;
  const FloatsUpdate& exact = has_master ? task.master : task.param;
  float states[Step::kStates + 1] = {};
  INTERP_UNROLL
  for (int k = 0; k < Step::kStates; ++k) {
    states[k] = LoadFloat(task.states[k].in, task.states[k].dtype, i);
  }
  const float param = step(LoadFloat(exact.in, exact.dtype, i),
                           LoadFloat(task.grad.data, task.grad.dtype, i), states);
  INTERP_UNROLL
  for (int k = 0; k < Step::kStates; ++k) {
    StoreFloat(states[k], task.states[k].dtype, task.states[k].out, i);
  }
  StoreFloat(param, exact.dtype, exact.out, i);
  if (has_master) StoreFloat(param, task.param.dtype, task.param.out, i);
}

template <typename Step, int kTasks>
__global__ void __launch_bounds__(kBlockThreads)
    UpdateChunks(const UpdateNumbers numbers, const TaskBatch<kTasks> batch) {
  const ChunkMap<kTasks>& chunks = batch.chunks;
  for (int64_t chunk = blockIdx.x; chunk < chunks.first_chunks[chunks.count]; chunk += gridDim.x) {
    const int t = chunks.Find(chunk);
    const UpdateTask& task = batch.tasks[t];
    const int64_t begin = (chunk - chunks.first_chunks[t]) * kChunk;
    const int64_t end = begin + kChunk < task.size ? begin + kChunk : task.size;
    if (task.skip != nullptr && *task.skip) {
      for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
        KeepValues<Step::kStates>(task, i);
      }
      continue;
    }
    const Step step(numbers, task);
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) UpdateElement(task, step, i);
  }
}

// A thread for each task. A launch of its own, as the update reads the powers everywhere.
template <int kTasks>
__global__ void AdvancePows(const UpdateNumbers numbers, const TaskBatch<kTasks> batch) {
  const int t = threadIdx.x;
  if (t >= batch.chunks.count) return;
  const UpdateTask& task = batch.tasks[t];
  const bool stays = numbers.keep_pows || (task.skip != nullptr && *task.skip);
  for (int k = 0; k < 2; ++k) {
    const FloatsUpdate& pow = task.beta_pows[k];
    if (pow.out == nullptr) continue;
    const float beta = stays ? 1.0f : Load(k == 0 ? numbers.beta1 : numbers.beta2);
    StoreFloat(LoadFloat(pow.in, pow.dtype, 0) * beta, pow.dtype, pow.out, 0);
  }
}

template <typename Step, int kTasks>
absl::Status UpdateBatch(const UpdateNumbers& numbers, absl::Span<const UpdateTask> tasks,
                         cudaStream_t stream) {
  TaskBatch<kTasks> batch = {};
  for (size_t t = 0; t < tasks.size(); ++t) {
    batch.tasks[t] = tasks[t];
    batch.chunks.Add(tasks[t].size);
  }
  const int64_t chunks = batch.chunks.num_chunks();
  if (chunks > 0) {
    INTERP_RETURN_IF_ERROR(Launch(UpdateChunks<Step, kTasks>, BlocksFor(chunks, 1), kBlockThreads,
                                  /*shared_bytes=*/0, stream, numbers, batch));
  }
  const bool advances = std::any_of(tasks.begin(), tasks.end(), [](const UpdateTask& task) {
    return task.beta_pows[0].out != nullptr || task.beta_pows[1].out != nullptr;
  });
  if (!advances) return absl::OkStatus();
  return Launch(AdvancePows<kTasks>, 1, kMostTasks, /*shared_bytes=*/0, stream, numbers, batch);
}

template <typename Step>
absl::Status UpdateAll(const UpdateNumbers& numbers, absl::Span<const UpdateTask> tasks,
                       cudaStream_t stream) {
  if (tasks.size() == 1) return UpdateBatch<Step, 1>(numbers, tasks, stream);
  for (; !tasks.empty(); tasks.remove_prefix(std::min<size_t>(kMostTasks, tasks.size()))) {
    INTERP_RETURN_IF_ERROR(
        (UpdateBatch<Step, kMostTasks>(numbers, tasks.subspan(0, kMostTasks), stream)));
  }
  return absl::OkStatus();
}

absl::Status CheckFloat(DType dtype) {
  if (IsFloating(dtype)) return absl::OkStatus();
  return Unimplemented("an optimizer on ", Name(dtype), " on a GPU");
}

absl::Status CheckTask(UpdateRule rule, const UpdateTask& task) {
  INTERP_RETURN_IF_ERROR(CheckFloat(task.param.dtype));
  INTERP_RETURN_IF_ERROR(CheckFloat(task.grad.dtype));
  for (int k = 0; k < StatesOf(rule); ++k) {
    INTERP_RETURN_IF_ERROR(CheckFloat(task.states[k].dtype));
  }
  return absl::OkStatus();
}

}  // namespace

int StatesOf(UpdateRule rule) {
  switch (rule) {
    case UpdateRule::kSgd:
      return SgdStep::kStates;
    case UpdateRule::kAdam:
      return AdamStep::kStates;
    case UpdateRule::kAdadelta:
      return AdadeltaStep::kStates;
    case UpdateRule::kAdamax:
      return AdamaxStep::kStates;
    case UpdateRule::kRmsprop:
      return RmspropStep<false>::kStates;
    case UpdateRule::kCenteredRmsprop:
      return RmspropStep<true>::kStates;
    default:
      return 1;
  }
}

absl::Status UpdateParameters(UpdateRule rule, const UpdateNumbers& numbers,
                              absl::Span<const UpdateTask> tasks, cudaStream_t stream) {
  for (const UpdateTask& task : tasks) INTERP_RETURN_IF_ERROR(CheckTask(rule, task));
  switch (rule) {
    case UpdateRule::kSgd:
      return UpdateAll<SgdStep>(numbers, tasks, stream);
    case UpdateRule::kMomentum:
      return UpdateAll<MomentumStep<false>>(numbers, tasks, stream);
    case UpdateRule::kNesterov:
      return UpdateAll<MomentumStep<true>>(numbers, tasks, stream);
    case UpdateRule::kAdam:
      return UpdateAll<AdamStep>(numbers, tasks, stream);
    case UpdateRule::kAdagrad:
      return UpdateAll<AdagradStep>(numbers, tasks, stream);
    case UpdateRule::kAdadelta:
      return UpdateAll<AdadeltaStep>(numbers, tasks, stream);
    case UpdateRule::kAdamax:
      return UpdateAll<AdamaxStep>(numbers, tasks, stream);
    case UpdateRule::kRmsprop:
      return UpdateAll<RmspropStep<false>>(numbers, tasks, stream);
    default:
      return UpdateAll<RmspropStep<true>>(numbers, tasks, stream);
  }
}

}  // namespace interp::cuda
