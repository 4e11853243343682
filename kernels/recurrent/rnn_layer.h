// One layer of a recurrent network: all time steps, both directions.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/product/packed_weight.h"
#include "kernels/recurrent/rnn_cell.h"
#include "kernels/util/parallel_for.h"

namespace interp::nn {

// Sizes of one run.
struct RnnSizes {
  int64_t time = 0;
  int64_t batch = 0;
  int64_t input = 0;
  int64_t hidden = 0;
  int64_t gates = 0;  // gates * hidden
  int64_t layers = 0;
  int64_t directions = 0;

  int64_t rows() const { return time * batch; }
  int64_t width() const { return directions * hidden; }
  // Elements of the states of all layers.
  int64_t state_size() const { return layers * directions * batch * hidden; }
  // Elements of the parts of Reserve.
  int64_t gates_part() const { return layers * directions * rows() * gates; }
  int64_t extra_part() const { return layers * directions * rows() * hidden; }
  int64_t outputs_part() const { return (layers - 1) * rows() * width(); }
};

// Packed weights of one layer in one direction.
template <typename E>
struct DirectionWeights {
  PackedWeight<E> input;  // [features, gates]
  PackedWeight<E> state;  // [hidden, gates]
  // Of input and state together, but for the candidate of a GRU, whose state bias stays inside the
  // reset gate.
  std::vector<ComputeType<E>> bias;
  std::vector<ComputeType<E>> hidden_bias;
};
template <typename E>
struct RnnWeights {
  std::vector<DirectionWeights<E>> directions;  // by layer, then direction
};

// One layer of one run. With 16-bit E only the operands of products are of 16 bits.
template <typename E>
struct LayerRun {
  using T = ComputeType<E>;
  const RnnSizes& s;
  RnnMode mode;
  const std::vector<int64_t>& lengths;  // by batch; empty: all full
  const DirectionWeights<E>* weights;   // by direction
  const E* in;                          // [time, batch, OperandLength(features)]
  int64_t features;
  const T* initial_h;  // [direction, batch, hidden]
  const T* initial_c;
  T* gates;  // [direction, time, batch, gates]
  T* extra;  // [direction, time, batch, hidden] for a gradient, or null
  T* out;    // [time, batch, direction * hidden]
  T* last_h;
  T* last_c;
  T* scratch;  // scratch_size() elements

  // Rows of a batch that are stepped together: what the inner matrix product takes at once.
  static constexpr int64_t kRows = kGemmRows;
  static int64_t BlockCount(int64_t batch) { return (batch + kRows - 1) / kRows; }
  static int64_t scratch_size(const RnnSizes& s) {
    return s.directions * BlockCount(s.batch) * block_size(s);
  }
  // What a block takes of it: two states, a row of gates each, and operands.
  static int64_t block_size(const RnnSizes& s) {
    return kRows * (2 * s.hidden + s.gates + OperandLength<E>(s.hidden));
  }

  // gates = in * weights, for all time steps at once.
  void Project(int threads) const {
    const int64_t blocks = (s.rows() + kRows - 1) / kRows;
    const int64_t grain = GrainFor(kRows * features * s.gates, 64 * 1024);
    ParallelFor(threads, s.directions * blocks, grain, [this, blocks](int64_t begin, int64_t end) {
      while (begin < end) {
        const int64_t d = begin / blocks;
        const int64_t stop = std::min(end, (d + 1) * blocks);
        const int64_t first = (begin - d * blocks) * kRows;
        const int64_t last = std::min(s.rows(), (stop - d * blocks) * kRows);
        T* rows = gates + (d * s.rows() + first) * s.gates;
        weights[d].input.Multiply(last - first, in + first * OperandLength<E>(features),
                                  /*accumulate=*/false, rows);
        begin = stop;
      }
    });
  }

  // Steps all sequences through time; they and the directions are independent.
  void Recur(int threads) const {
    const int64_t blocks = BlockCount(s.batch);
    ParallelFor(threads, s.directions * blocks, /*grain=*/1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        RecurBlock(i / blocks, i % blocks * kRows, scratch + i * block_size(s));
      }
    });
  }

 private:
  void RecurBlock(int64_t d, int64_t first, T* memory) const {
    const int64_t count = std::min(kRows, s.batch - first);
    T* h = memory;
    T* c = h + kRows * s.hidden;
    T* hidden = c + kRows * s.hidden;
    const int64_t state = (d * s.batch + first) * s.hidden;
    std::copy_n(initial_h + state, count * s.hidden, h);
    if (initial_c != nullptr) std::copy_n(initial_c + state, count * s.hidden, c);
    for (int64_t step = 0; step < s.time; ++step) {
      const int64_t t = d == 0 ? step : s.time - 1 - step;
      Step(d, t, first, count, h, c, hidden);
    }
    std::copy_n(h, count * s.hidden, last_h + state);
    if (last_c != nullptr) std::copy_n(c, count * s.hidden, last_c + state);
  }

  void Step(int64_t d, int64_t t, int64_t first, int64_t count, T* h, T* c, T* hidden) const {
    const int64_t row = d * s.rows() + t * s.batch + first;
    T* g = gates + row * s.gates;
    const bool gru = mode == RnnMode::kGru;
    E* const operands = reinterpret_cast<E*>(hidden + kRows * s.gates);
    weights[d].state.Multiply(count, RoundRows<E>(count, s.hidden, h, operands),
                              /*accumulate=*/!gru, gru ? hidden : g);
    for (int64_t i = 0; i < count; ++i) {
      T* y = out + (t * s.batch + first + i) * s.width() + d * s.hidden;
      T* kept = extra == nullptr ? c + i * s.hidden : extra + (row + i) * s.hidden;
      if (!lengths.empty() && t >= lengths[first + i]) {
        std::fill_n(y, s.hidden, T{0});
        if (extra != nullptr) std::fill_n(kept, s.hidden, T{0});
        continue;
      }
      StepRow({weights[d].bias.data(), weights[d].hidden_bias.data(), hidden + i * s.gates,
               g + i * s.gates, h + i * s.hidden, c + i * s.hidden, y, kept});
    }
  }

  void StepRow(const CellRow<T>& row) const {
    switch (mode) {
      case RnnMode::kTanh:
        return TanhCell(s.hidden, row);
      case RnnMode::kRelu:
        return ReluCell(s.hidden, row);
      case RnnMode::kLstm:
        return LstmCell(s.hidden, row);
      case RnnMode::kGru:
        return GruCell(s.hidden, row);
    }
  }
};

}  // namespace interp::nn
