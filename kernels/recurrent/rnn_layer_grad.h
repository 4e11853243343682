// The way back through time of one layer of a recurrent network: gradients of the gates and of the
// first states. What follows from them for inputs and weights is a few large products, made later.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/recurrent/rnn_cell_grad.h"
#include "kernels/recurrent/rnn_layer.h"
#include "kernels/util/parallel_for.h"

namespace interp::nn {

template <typename E>
struct LayerGradRun {
  using T = ComputeType<E>;

  const RnnSizes& s;
  RnnMode mode;
  const std::vector<int64_t>& lengths;  // by batch; empty: all full
  const PackedWeight<E>* weights;       // by direction: state weights, [gates, hidden]
  const T* gates;                       // [direction, time, batch, gates], activated
  const T* extra;                       // [direction, time, batch, hidden], see rnn_shapes.h
  const T* out;                         // [time, batch, direction * hidden]
  const T* initial_h;                   // [direction, batch, hidden]
  const T* initial_c;                   // LSTM
  const T* dout;                        // as out
  T* dh;                                // as initial_h: of the last states, then of the first
  T* dc;                                // LSTM
  T* dgates;                            // as gates: of what the input gives to the gates
  T* dstate;                            // of what the state gives; the same memory but for GRU
  E* scratch;                           // scratch_size() elements

  static int64_t scratch_size(const RnnSizes& s) {
    return s.directions * LayerRun<E>::BlockCount(s.batch) * block_size(s);
  }

  // Steps all sequences back through time; they and the directions are independent.
  void Run(int threads) const {
    constexpr int64_t kRows = LayerRun<E>::kRows;
    const int64_t blocks = LayerRun<E>::BlockCount(s.batch);
    ParallelFor(threads, s.directions * blocks, /*grain=*/1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i % blocks * kRows;
        for (int64_t step = s.time - 1; step >= 0; --step) {
          StepBack(i / blocks, i / blocks == 0 ? step : s.time - 1 - step, first,
                   std::min(kRows, s.batch - first), scratch + i * block_size(s));
        }
      }
    });
  }

  bool Lives(int64_t t, int64_t b) const { return lengths.empty() || t < lengths[b]; }

  // Where the state before step t of sequence b lies in [time, batch]; -1: it is the first state.
  int64_t RowBefore(int64_t d, int64_t t, int64_t b) const {
    const int64_t before = d == 0 ? t - 1 : t + 1;
    return before >= 0 && before < s.time && Lives(before, b) ? before * s.batch + b : -1;
  }
  const T* StateBefore(int64_t d, int64_t t, int64_t b) const {
    const int64_t row = RowBefore(d, t, b);
    return row < 0 ? initial_h + (d * s.batch + b) * s.hidden
                   : out + row * s.width() + d * s.hidden;
  }

 private:
  // Operands of a step's product.
  static int64_t block_size(const RnnSizes& s) {
    return LayerRun<E>::kRows * OperandLength<E>(s.gates);
  }

  void StepBack(int64_t d, int64_t t, int64_t first, int64_t count, E* operands) const {
    for (int64_t b = first; b < first + count; ++b) {
      const int64_t row = t * s.batch + b;
      const int64_t at = (d * s.rows() + row) * s.gates;
      if (!Lives(t, b)) {
        std::fill_n(dgates + at, s.gates, T{0});
        std::fill_n(dstate + at, s.gates, T{0});
        continue;
      }
      T* dh_row = dh + (d * s.batch + b) * s.hidden;
      const T* dy = dout + row * s.width() + d * s.hidden;
      CellBack(d, t, b, at, dy, dh_row);
    }
    const int64_t at = (d * s.rows() + t * s.batch + first) * s.gates;
    weights[d].Multiply(count, RoundRows<E>(count, s.gates, dstate + at, operands),
                        /*accumulate=*/true, dh + (d * s.batch + first) * s.hidden);
  }

  void CellBack(int64_t d, int64_t t, int64_t b, int64_t at, const T* dy, T* dh_row) const {
    const int64_t kept = at / s.gates * s.hidden;
    switch (mode) {
      case RnnMode::kTanh:
        return TanhCellGrad(s.hidden, gates + at, dy, dh_row, dgates + at);
      case RnnMode::kRelu:
        return ReluCellGrad(s.hidden, gates + at, dy, dh_row, dgates + at);
      case RnnMode::kLstm: {
        const int64_t row = RowBefore(d, t, b);
        const T* c_before = row < 0 ? initial_c + (d * s.batch + b) * s.hidden
                                    : extra + (d * s.rows() + row) * s.hidden;
        return LstmCellGrad(s.hidden, gates + at, extra + kept, c_before, dy, dh_row,
                            dc + (d * s.batch + b) * s.hidden, dgates + at);
      }
      case RnnMode::kGru:
        return GruCellGrad(s.hidden, gates + at, extra + kept, StateBefore(d, t, b), dy, dh_row,
                           dgates + at, dstate + at);
    }
  }
};

}  // namespace interp::nn
