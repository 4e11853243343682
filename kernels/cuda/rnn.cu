#include "kernels/cuda/launch.h"
#include "kernels/cuda/rnn.h"
#include "kernels/cuda/sequences.h"

namespace interp::cuda {
namespace {

__device__ bool HasStep(const StepLengths& lengths, int64_t sequence, int64_t step) {
  if (lengths.lengths == nullptr) return true;
  return step < (lengths.dtype == DType::kInt32
                     ? int64_t{static_cast<const int32_t*>(lengths.lengths)[sequence]}
                     : static_cast<const int64_t*>(lengths.lengths)[sequence]);
}

template <typename T>
__device__ T Sigmoid(T x) {
  return T{1} / (T{1} + exp(-x));
}

// What one thread has of a step: element j of a sequence, in memory of T.
template <typename T>
struct CellElement {
  int64_t hidden;
  T* gates;  // of the sequence, at j
  const T* input_bias;
  const T* state_bias;
  const T* hidden_sums;

  // The sum of gate `gate` before its activation.
  __device__ T Sum(int gate) const {
    const int64_t at = gate * hidden;
    return gates[at] + (input_bias[at] + state_bias[at]);
  }
};

template <typename T>
__device__ T LstmElement(const CellElement<T>& e, T* c, T* kept) {
  const T input = Sigmoid(e.Sum(0));
  const T forget = Sigmoid(e.Sum(1));
  const T candidate = tanh(e.Sum(2));
  const T output = Sigmoid(e.Sum(3));
  e.gates[0] = input;
  e.gates[e.hidden] = forget;
  e.gates[2 * e.hidden] = candidate;
  e.gates[3 * e.hidden] = output;
  *c = forget * *c + input * candidate;
  if (kept != nullptr) *kept = *c;
  return output * tanh(*c);
}

template <typename T>
__device__ T GruElement(const CellElement<T>& e, T h, T* kept) {
  const int64_t last = 2 * e.hidden;
  const T reset = Sigmoid(e.Sum(0) + e.hidden_sums[0]);
  const T update = Sigmoid(e.Sum(1) + e.hidden_sums[e.hidden]);
  const T share = e.hidden_sums[last] + e.state_bias[last];
  const T candidate = tanh(e.gates[last] + e.input_bias[last] + reset * share);
  e.gates[0] = reset;
  e.gates[e.hidden] = update;
  e.gates[last] = candidate;
  if (kept != nullptr) *kept = share;
  return update * h + (T{1} - update) * candidate;
}

template <typename T>
__device__ T PlainElement(RecurrentCell cell, const CellElement<T>& e) {
  const T sum = e.Sum(0);
  const T value = cell == RecurrentCell::kTanh ? tanh(sum) : sum < T{0} ? T{0} : sum;
  e.gates[0] = value;
  return value;
}

__device__ int64_t GatesOf(RecurrentCell cell) {
  return cell == RecurrentCell::kLstm ? 4 : cell == RecurrentCell::kGru ? 3 : 1;
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    StepElements(const RecurrentStep s, const CellMemory m) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < s.batch * s.hidden;
       i += int64_t{gridDim.x} * blockDim.x) {
    const int64_t b = i / s.hidden;
    const int64_t j = i % s.hidden;
    T& y = static_cast<T*>(m.y)[b * s.width + j];
    T* const kept = m.kept == nullptr ? nullptr : static_cast<T*>(m.kept) + i;
    if (!HasStep(s.lengths, b, s.step)) {
      y = 0;
      if (kept != nullptr) *kept = 0;
      continue;
    }
    const int64_t at = b * GatesOf(s.cell) * s.hidden + j;
    const CellElement<T> e = {
        s.hidden, static_cast<T*>(m.gates) + at, static_cast<const T*>(m.input_bias) + j,
        static_cast<const T*>(m.state_bias) + j,
        s.cell == RecurrentCell::kGru ? static_cast<const T*>(m.hidden_sums) + at : nullptr};
    T& h = static_cast<T*>(m.h)[i];
    if (s.cell == RecurrentCell::kLstm) {
      h = LstmElement(e, static_cast<T*>(m.c) + i, kept);
    } else if (s.cell == RecurrentCell::kGru) {
      h = GruElement(e, h, kept);
    } else {
      h = PlainElement(s.cell, e);
    }
    y = h;
  }
}

// What one thread has of a step backward.
template <typename T>
struct CellGradientElement {
  int64_t hidden;
  const T* gates;
  T kept;
  T before;  // c or h
  T dnext;   // the gradient of the new h
  T* dgates;
  T* dstate;
};

template <typename T>
__device__ void LstmElementBack(const CellGradientElement<T>& e, T* dc) {
  const T input = e.gates[0];
  const T forget = e.gates[e.hidden];
  const T candidate = e.gates[2 * e.hidden];
  const T output = e.gates[3 * e.hidden];
  const T active = tanh(e.kept);
  const T dcell = *dc + e.dnext * output * (T{1} - active * active);
  e.dgates[0] = dcell * candidate * input * (T{1} - input);
  e.dgates[e.hidden] = dcell * e.before * forget * (T{1} - forget);
  e.dgates[2 * e.hidden] = dcell * input * (T{1} - candidate * candidate);
  e.dgates[3 * e.hidden] = e.dnext * active * output * (T{1} - output);
  *dc = dcell * forget;
}

// Returns what reaches the state before the step past the weights.
template <typename T>
__device__ T GruElementBack(const CellGradientElement<T>& e) {
  const T reset = e.gates[0];
  const T update = e.gates[e.hidden];
  const T candidate = e.gates[2 * e.hidden];
  const T dcandidate = e.dnext * (T{1} - update) * (T{1} - candidate * candidate);
  const T dreset = dcandidate * e.kept * reset * (T{1} - reset);
  const T dupdate = e.dnext * (e.before - candidate) * update * (T{1} - update);
  e.dgates[0] = e.dstate[0] = dreset;
  e.dgates[e.hidden] = e.dstate[e.hidden] = dupdate;
  e.dgates[2 * e.hidden] = dcandidate;
  e.dstate[2 * e.hidden] = dcandidate * reset;
  return e.dnext * update;
}

template <typename T>
__device__ T Before(const RecurrentStep& s, const CellGradientMemory& m, int64_t b, int64_t j) {
  if (m.before != nullptr && HasStep(s.lengths, b, m.step_before)) {
    return static_cast<const T*>(m.before)[b * m.before_width + j];
  }
  return static_cast<const T*>(m.first)[b * s.hidden + j];
}

template <typename T>
__device__ void ClearGates(const RecurrentStep& s, const CellGradientMemory& m, int64_t at) {
  for (int64_t gate = 0; gate < GatesOf(s.cell); ++gate) {
    static_cast<T*>(m.dgates)[at + gate * s.hidden] = 0;
    static_cast<T*>(m.dstate)[at + gate * s.hidden] = 0;
  }
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    StepElementsBack(const RecurrentStep s, const CellGradientMemory m) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < s.batch * s.hidden;
       i += int64_t{gridDim.x} * blockDim.x) {
    const int64_t b = i / s.hidden;
    const int64_t j = i % s.hidden;
    const int64_t at = b * GatesOf(s.cell) * s.hidden + j;
    if (!HasStep(s.lengths, b, s.step)) {
      ClearGates<T>(s, m, at);
      continue;
    }
    T& dh = static_cast<T*>(m.dh)[i];
    CellGradientElement<T> e = {s.hidden,
                                static_cast<const T*>(m.gates) + at,
                                T{0},
                                T{0},
                                dh + static_cast<const T*>(m.dy)[b * s.width + j],
                                static_cast<T*>(m.dgates) + at,
                                static_cast<T*>(m.dstate) + at};
    const T gate = e.gates[0];
    dh = 0;
    if (s.cell == RecurrentCell::kTanh) {
      e.dgates[0] = e.dnext * (T{1} - gate * gate);
    } else if (s.cell == RecurrentCell::kRelu) {
      e.dgates[0] = gate > T{0} ? e.dnext : T{0};
    } else {
      e.kept = static_cast<const T*>(m.kept)[i];
      e.before = Before<T>(s, m, b, j);
      if (s.cell == RecurrentCell::kGru) {
        dh = GruElementBack(e);
      } else {
        LstmElementBack(e, static_cast<T*>(m.dc) + i);
      }
    }
  }
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    CollectStatesBefore(const RecurrentStep s, int64_t steps, bool backward, const T* out,
                        const T* first, T* states) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < steps * s.batch * s.hidden;
       i += int64_t{gridDim.x} * blockDim.x) {
    const int64_t j = i % s.hidden;
    const int64_t b = i / s.hidden % s.batch;
    const int64_t t = i / s.hidden / s.batch + (backward ? 1 : -1);
    const bool inside = t >= 0 && t < steps && HasStep(s.lengths, b, t);
    states[i] = inside ? out[(t * s.batch + b) * s.width + j] : first[b * s.hidden + j];
  }
}

absl::Status CheckLengths(const StepLengths& lengths) {
  if (lengths.lengths == nullptr || lengths.dtype == DType::kInt32 ||
      lengths.dtype == DType::kInt64) {
    return absl::OkStatus();
  }
  return InvalidArgument("lengths of sequences are ", Name(lengths.dtype),
                         ", expected int32 or int64");
}

}  // namespace

absl::Status StepCells(DType dtype, const RecurrentStep& step, const CellMemory& memory,
                       cudaStream_t stream) {
  INTERP_RETURN_IF_ERROR(CheckLengths(step.lengths));
  const int64_t size = step.batch * step.hidden;
  return WithWideFloats("recurrent cells", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return LaunchElements(StepElements<T>, size, stream, step, memory);
  });
}

absl::Status StepCellsBack(DType dtype, const RecurrentStep& step, const CellGradientMemory& memory,
                           cudaStream_t stream) {
  INTERP_RETURN_IF_ERROR(CheckLengths(step.lengths));
  const int64_t size = step.batch * step.hidden;
  return WithWideFloats("gradients of recurrent cells", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return LaunchElements(StepElementsBack<T>, size, stream, step, memory);
  });
}

absl::Status StatesBeforeSteps(DType dtype, const RecurrentStep& step, int64_t steps, bool backward,
                               const void* out, const void* first, void* states,
                               cudaStream_t stream) {
  INTERP_RETURN_IF_ERROR(CheckLengths(step.lengths));
  const int64_t size = steps * step.batch * step.hidden;
  return WithWideFloats("states of recurrent layers", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return LaunchElements(CollectStatesBefore<T>, size, stream, step, steps, backward,
                          static_cast<const T*>(out), static_cast<const T*>(first),
                          static_cast<T*>(states));
  });
}

}  // namespace interp::cuda
