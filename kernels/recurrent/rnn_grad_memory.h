// The memory of a run of rnn_grad beside its inputs and outputs.
#pragma once

#include <algorithm>
#include <type_traits>
#include <utility>

#include "kernels/recurrent/rnn_layer_grad.h"
#include "kernels/recurrent/rnn_shapes.h"

namespace interp::nn {

// In T what is computed in, in E the operands of products.
template <typename E>
struct RnnGradBuffers {
  using T = ComputeType<E>;
  T* dh;      // as PreState[0]
  T* dc;      // as PreState[1], LSTM
  T* dgates;  // of one layer
  T* dstate;
  T* douts[2];    // [time, batch, width]: of the layers but the last, in turns
  T* masked;      // as a layer's output
  T* one_dinput;  // of one direction, when there are two
  T* bias;        // [gates]
  // With 16-bit E: inputs of the op, and a gradient of Input.
  T* before[2];
  T* out;
  T* dout;
  T* dinput;

  E* states;    // [time, batch, hidden]: before the steps of one direction
  E* operands;  // of the steps back
  // With 16-bit E: the same as dgates, dstate and a layer's input.
  E* rounded_dgates;
  E* rounded_dstate;
  E* rounded_input;
};

// A part of the memory of a run, of `count` elements.
template <typename T>
struct Part {
  T** at;
  int64_t count;
};

// Gives parts memory from `at` on and returns its end.
template <typename T, size_t kCount>
T* Place(const Part<T> (&parts)[kCount], T* at) {
  for (const Part<T>& part : parts) *part.at = std::exchange(at, at + part.count);
  return at;
}

// Gives the parts of `work` memory, which lives as long as what is returned.
template <typename E>
absl::StatusOr<Workspace> TakeRnnGradMemory(const KernelContext& ctx, const RnnAttrs& attrs,
                                            const RnnSizes& s, RnnGradBuffers<E>& work) {
  using T = ComputeType<E>;
  constexpr bool kWidens = !std::is_same_v<E, T>;
  const bool gru = attrs.mode == RnnMode::kGru;
  const int64_t widest = std::max(s.input, s.width());
  const int64_t rows = s.rows();
  const int64_t gates = s.directions * rows * s.gates;
  const int64_t out = rows * s.width();
  const int64_t widened = kWidens ? out : 0;
  const int64_t widened_state = kWidens ? s.state_size() : 0;
  const Part<T> wide[] = {
      {&work.dh, s.state_size()},
      {&work.dc, attrs.mode == RnnMode::kLstm ? s.state_size() : 0},
      {&work.dgates, gates},
      {&work.dstate, gru ? gates : 0},
      {&work.douts[0], s.layers > 2 ? out : 0},  // a layer i > 0 writes to douts[i % 2]
      {&work.douts[1], s.layers > 1 ? out : 0},
      {&work.masked, s.layers > 1 && Masks(attrs) ? out : 0},
      {&work.one_dinput, s.directions > 1 ? rows * widest : 0},
      {&work.bias, s.gates},
      {&work.before[0], widened_state},
      {&work.before[1], widened_state},
      {&work.out, widened},
      {&work.dout, widened},
      {&work.dinput, kWidens ? rows * s.input : 0}};
  const Part<E> narrow[] = {{&work.states, rows * s.hidden},
                            {&work.operands, kWidens ? LayerGradRun<E>::scratch_size(s) : 0},
                            {&work.rounded_dgates, kWidens ? gates : 0},
                            {&work.rounded_dstate, kWidens && gru ? gates : 0},
                            {&work.rounded_input, kWidens ? rows * widest : 0}};
  size_t size_bytes = 0;
  for (const Part<T>& part : wide) size_bytes += part.count * sizeof(T);
  for (const Part<E>& part : narrow) size_bytes += part.count * sizeof(E);
  INTERP_ASSIGN_OR_RETURN(Workspace memory, ctx.workspace(size_bytes));
  Place(narrow, reinterpret_cast<E*>(Place(wide, memory.data<T>())));
  if (!gru) {
    work.dstate = work.dgates;
    work.rounded_dstate = work.rounded_dgates;
  }
  return memory;
}

}  // namespace interp::nn
