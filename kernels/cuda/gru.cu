#include "kernels/cuda/gates.h"
#include "kernels/cuda/gru.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/sequences.h"

namespace interp::cuda {
namespace {

// A thread for each element of the live states: body(i, p, j, row of the input).
template <typename Step, typename Body>
__device__ void ForEachLive(const GruCells& cells, const Step& s, const Body& body) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < s.live * cells.size;
       i += int64_t{gridDim.x} * blockDim.x) {
    const int64_t p = i / cells.size;
    const int64_t first = cells.rows.first == nullptr ? p : cells.rows.first[p];
    body(i, p, i % cells.size, first + s.t * cells.rows.stride);
  }
}

// What the input and the bias give to a gate.
template <typename T>
__device__ T GivenTo(int gate, const GruCells& cells, const void* input, int64_t row, int64_t j) {
  const T given = static_cast<const T*>(input)[(row * 3 + gate) * cells.size + j];
  return cells.bias == nullptr ? given
                               : given + static_cast<const T*>(cells.bias)[gate * cells.size + j];
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    GruGateElements(const GruCells cells, const GruStep s) {
  const int64_t size = cells.size;
  ForEachLive(cells, s, [&](int64_t i, int64_t p, int64_t j, int64_t row) {
    T* const gates = static_cast<T*>(s.gates) + p * 2 * size + j;
    T update = GivenTo<T>(0, cells, s.input, row, j);
    T reset = GivenTo<T>(1, cells, s.input, row, j);
    if (s.has_state) {
      update += gates[0];
      reset += gates[size];
    }
    gates[0] = update = Activate(cells.gate, update);
    gates[size] = reset = Activate(cells.gate, reset);
    const T behind = s.has_state ? reset * static_cast<const T*>(s.before)[i] : T{0};
    static_cast<T*>(s.reset)[i] = behind;
    const int64_t kept = s.batch_row + p;
    if (s.batch_reset != nullptr) static_cast<T*>(s.batch_reset)[kept * size + j] = behind;
    if (s.batch_gate == nullptr) return;
    static_cast<T*>(s.batch_gate)[kept * 3 * size + j] = update;
    static_cast<T*>(s.batch_gate)[(kept * 3 + 1) * size + j] = reset;
  });
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    GruStateElements(const GruCells cells, const GruStep s) {
  const int64_t size = cells.size;
  ForEachLive(cells, s, [&](int64_t i, int64_t p, int64_t j, int64_t row) {
    const T given = GivenTo<T>(2, cells, s.input, row, j);
    const T candidate =
        Activate(cells.candidate, s.has_state ? given + static_cast<const T*>(s.sums)[i] : given);
    const T update = static_cast<const T*>(s.gates)[p * 2 * size + j];
    const T share = cells.origin_mode ? T{1} - update : update;
    const T of_state = cells.origin_mode ? update : T{1} - update;
    T next = share * candidate;
    if (s.has_state) next += of_state * static_cast<const T*>(s.before)[i];
    static_cast<T*>(s.h)[i] = next;
    static_cast<T*>(s.hidden)[row * size + j] = next;
    const int64_t kept = s.batch_row + p;
    if (s.batch_hidden != nullptr) static_cast<T*>(s.batch_hidden)[kept * size + j] = next;
    if (s.batch_gate != nullptr) {
      static_cast<T*>(s.batch_gate)[(kept * 3 + 2) * size + j] = candidate;
    }
  });
}

// The state before the step.
template <typename T>
__device__ T GruStateBefore(const GruCells& cells, const GruStepBack& s, int64_t row, int64_t i) {
  if (s.t > 0) {
    const int64_t row_before = row - cells.rows.stride;
    return static_cast<const T*>(s.hidden)[row_before * cells.size + i % cells.size];
  }
  return s.first == nullptr ? T{0} : static_cast<const T*>(s.first)[i];
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    GruStateElementsBack(const GruCells cells, const GruStepBack s) {
  const int64_t size = cells.size;
  ForEachLive(cells, s, [&](int64_t i, int64_t p, int64_t j, int64_t row) {
    const int64_t kept = s.batch_row + p;
    const T* const gates = static_cast<const T*>(s.gates) + kept * 3 * size + j;
    const T update = gates[0];
    const T candidate = gates[2 * size];
    T& state = static_cast<T*>(s.dh)[i];
    const T dh =
        static_cast<const T*>(s.hidden_grad)[row * size + j] + (p < s.live_behind ? state : T{0});
    const T difference = candidate - GruStateBefore<T>(cells, s, row, i);
    const T share = cells.origin_mode ? T{1} - update : update;
    const T dupdate =
        ActivateBack(cells.gate, update, dh * (cells.origin_mode ? -difference : difference));
    const T dcandidate = ActivateBack(cells.candidate, candidate, dh * share);
    state = dh * (cells.origin_mode ? update : T{1} - update);
    T* const gates_grad = static_cast<T*>(s.gates_grad) + kept * 2 * size + j;
    gates_grad[0] = dupdate;
    gates_grad[size] = 0;
    static_cast<T*>(s.candidate_grad)[kept * size + j] = dcandidate;
    if (s.input_grad == nullptr) return;
    T* const input_grad = static_cast<T*>(s.input_grad) + row * 3 * size + j;
    input_grad[0] = dupdate;
    input_grad[size] = 0;
    input_grad[2 * size] = dcandidate;
  });
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    GruResetElementsBack(const GruCells cells, const GruStepBack s) {
  const int64_t size = cells.size;
  ForEachLive(cells, s, [&](int64_t i, int64_t p, int64_t j, int64_t row) {
    const int64_t kept = s.batch_row + p;
    const T reset = static_cast<const T*>(s.gates)[(kept * 3 + 1) * size + j];
    const T grad = static_cast<const T*>(s.reset_grad)[i];
    const T dreset = ActivateBack(cells.gate, reset, grad * GruStateBefore<T>(cells, s, row, i));
    static_cast<T*>(s.dh)[i] += grad * reset;
    static_cast<T*>(s.gates_grad)[(kept * 2 + 1) * size + j] = dreset;
    if (s.input_grad != nullptr) {
      static_cast<T*>(s.input_grad)[(row * 3 + 1) * size + j] = dreset;
    }
  });
}

template <typename Step>
absl::Status LaunchLive(void (*kernel)(GruCells, Step), const GruCells& cells, const Step& step,
                        cudaStream_t stream) {
  const int64_t elements = step.live * cells.size;
  return LaunchElements(kernel, elements, stream, cells, step);
}

}  // namespace

absl::Status StepGruGates(DType dtype, const GruCells& cells, const GruStep& step,
                          cudaStream_t stream) {
  return WithWideFloats("gates of gru", dtype, [&](auto type) {
    return LaunchLive<GruStep>(GruGateElements<typename decltype(type)::type>, cells, step, stream);
  });
}

absl::Status StepGruState(DType dtype, const GruCells& cells, const GruStep& step,
                          cudaStream_t stream) {
  return WithWideFloats("states of gru", dtype, [&](auto type) {
    return LaunchLive<GruStep>(GruStateElements<typename decltype(type)::type>, cells, step,
                               stream);
  });
}

absl::Status StepGruStateBack(DType dtype, const GruCells& cells, const GruStepBack& step,
                              cudaStream_t stream) {
  return WithWideFloats("gradients of states of gru", dtype, [&](auto type) {
    return LaunchLive<GruStepBack>(GruStateElementsBack<typename decltype(type)::type>, cells, step,
                                   stream);
  });
}

absl::Status StepGruResetBack(DType dtype, const GruCells& cells, const GruStepBack& step,
                              cudaStream_t stream) {
  return WithWideFloats("gradients of gates of gru", dtype, [&](auto type) {
    return LaunchLive<GruStepBack>(GruResetElementsBack<typename decltype(type)::type>, cells, step,
                                   stream);
  });
}

}  // namespace interp::cuda
