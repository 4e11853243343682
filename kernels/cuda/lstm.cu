#include "kernels/cuda/gates.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/lstm.h"
#include "kernels/cuda/sequences.h"

namespace interp::cuda {
namespace {

// A thread for each element of the live states.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    StepLstmElements(const LstmCells cells, const LstmStep s) {
  const int64_t size = cells.size;
  const T* const bias = static_cast<const T*>(cells.bias);
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < s.live * size;
       i += int64_t{gridDim.x} * blockDim.x) {
    const int64_t p = i / size;
    const int64_t j = i % size;
    const int64_t row = cells.rows.first[p] + s.t * cells.rows.stride;
    const auto sum = [&](int gate) {
      const T given = static_cast<const T*>(s.input)[(row * 4 + gate) * size + j];
      const T value = given + bias[gate * size + j];
      return s.sums == nullptr ? value
                               : value + static_cast<const T*>(s.sums)[(p * 4 + gate) * size + j];
    };
    const auto peep = [&](int gate, T c) {
      return cells.peepholes ? bias[(4 + gate) * size + j] * c : T{0};
    };
    T& c = static_cast<T*>(s.c)[i];
    const T candidate = Activate(cells.candidate, sum(0));
    const T input = Activate(cells.gate, sum(1) + peep(0, c));
    const T forget = Activate(cells.gate, sum(2) + peep(1, c));
    c = ClipTo<T>(cells.clip, candidate * input + c * forget);
    const T output = Activate(cells.gate, sum(3) + peep(2, c));
    const T active = Activate(cells.cell, c);
    const T h = output * active;
    static_cast<T*>(s.h)[i] = h;
    if (s.hidden != nullptr) static_cast<T*>(s.hidden)[row * size + j] = h;
    if (s.cell_out != nullptr) static_cast<T*>(s.cell_out)[row * size + j] = c;
    const int64_t kept = s.batch_row + p;
    if (s.batch_active != nullptr) static_cast<T*>(s.batch_active)[kept * size + j] = active;
    if (s.batch_hidden != nullptr) static_cast<T*>(s.batch_hidden)[kept * size + j] = h;
    if (s.batch_gate == nullptr) continue;
    T* const gates = static_cast<T*>(s.batch_gate) + kept * 4 * size + j;
    gates[0] = candidate;
    gates[size] = input;
    gates[2 * size] = forget;
    gates[3 * size] = output;
  }
}

// What one thread of a step backward reads and finds out.
template <typename T>
struct LstmElementValues {
  T c;
  T before;
  bool has_before;  // else the state before is 0, and gives nothing to infinite gradients, too
  T dcandidate;
  T dinput;
  T dforget;
  T doutput;
};

// The state before the step; null: 0.
template <typename T>
__device__ const T* StateBefore(const LstmCells& cells, const LstmStepBack& s, int64_t row,
                                int64_t i) {
  if (s.t > 0) {
    const int64_t row_before = row - cells.rows.stride;
    return static_cast<const T*>(s.c) + row_before * cells.size + i % cells.size;
  }
  return s.c_first == nullptr ? nullptr : static_cast<const T*>(s.c_first) + i;
}

// Element i of the live states; dc becomes the gradient of the state before the step.
template <typename T>
__device__ LstmElementValues<T> LstmElementBack(const LstmCells& cells, const LstmStepBack& s,
                                                int64_t row, int64_t i) {
  const int64_t size = cells.size;
  const int64_t p = i / size;
  const int64_t j = i % size;
  const int64_t kept = s.batch_row + p;
  const T* const gates = static_cast<const T*>(s.gates) + kept * 4 * size + j;
  const T* const peepholes =
      cells.peepholes ? static_cast<const T*>(cells.bias) + 4 * size + j : nullptr;
  const T active = static_cast<const T*>(s.active)[kept * size + j];
  const bool goes_on = p < s.live_behind;
  T& dc_state = static_cast<T*>(s.dc)[i];
  const T dh = s.dh != nullptr ? static_cast<const T*>(s.dh)[i]
                               : static_cast<const T*>(s.r_grad)[row * size + j] +
                                     (goes_on ? static_cast<const T*>(s.dr)[i] : T{0});
  LstmElementValues<T> v;
  v.c = static_cast<const T*>(s.c)[row * size + j];
  const T* const before = StateBefore<T>(cells, s, row, i);
  v.has_before = before != nullptr;
  v.before = v.has_before ? *before : T{0};
  v.doutput = ActivateBack(cells.gate, gates[3 * size], dh * active);
  T dc = (goes_on ? dc_state : T{0}) + ActivateBack(cells.cell, active, dh * gates[3 * size]);
  if (peepholes != nullptr) dc += v.doutput * peepholes[2 * size];
  if (ClipEndsAt<T>(cells.clip, v.c)) dc = 0;
  v.dcandidate = ActivateBack(cells.candidate, gates[0], dc * gates[size]);
  v.dinput = ActivateBack(cells.gate, gates[size], dc * gates[0]);
  v.dforget = ActivateBack(cells.gate, gates[2 * size], v.has_before ? dc * v.before : T{0});
  dc *= gates[2 * size];
  if (peepholes != nullptr) dc += v.dinput * peepholes[0] + v.dforget * peepholes[size];
  dc_state = dc;
  return v;
}

template <typename T>
__device__ void StoreGates(const LstmElementValues<T>& v, int64_t size, T* to) {
  to[0] = v.dcandidate;
  to[size] = v.dinput;
  to[2 * size] = v.dforget;
  to[3 * size] = v.doutput;
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    StepLstmElementsBack(const LstmCells cells, const LstmStepBack s) {
  const int64_t size = cells.size;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < s.live * size;
       i += int64_t{gridDim.x} * blockDim.x) {
    const int64_t p = i / size;
    const int64_t j = i % size;
    const int64_t row = cells.rows.first[p] + s.t * cells.rows.stride;
    const LstmElementValues<T> v = LstmElementBack<T>(cells, s, row, i);
    const int64_t kept = s.batch_row + p;
    StoreGates(v, size, static_cast<T*>(s.gates_grad) + kept * 4 * size + j);
    if (s.input_grad != nullptr) {
      StoreGates(v, size, static_cast<T*>(s.input_grad) + row * 4 * size + j);
    }
    if (s.peephole_grads == nullptr) continue;
    T* const terms = static_cast<T*>(s.peephole_grads) + kept * 3 * size + j;
    terms[0] = v.has_before ? v.dinput * v.before : T{0};
    terms[size] = v.has_before ? v.dforget * v.before : T{0};
    terms[2 * size] = v.doutput * v.c;
  }
}

}  // namespace

absl::Status StepLstm(DType dtype, const LstmCells& cells, const LstmStep& step,
                      cudaStream_t stream) {
  const int64_t elements = step.live * cells.size;
  return WithWideFloats("lstm", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return LaunchElements(StepLstmElements<T>, elements, stream, cells, step);
  });
}

absl::Status StepLstmBack(DType dtype, const LstmCells& cells, const LstmStepBack& step,
                          cudaStream_t stream) {
  const int64_t elements = step.live * cells.size;
  return WithWideFloats("the gradient of lstm", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return LaunchElements(StepLstmElementsBack<T>, elements, stream, cells, step);
  });
}

}  // namespace interp::cuda
