// One layer of a recurrent network: all time steps, both directions.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/nn/gemm.h"
#include "kernels/nn/rnn_cell.h"
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
  // Elements of the parts of Reserve.
  int64_t gates_part() const { return layers * directions * rows() * gates; }
  int64_t extra_part() const { return layers * directions * rows() * hidden; }
  int64_t outputs_part() const { return (layers - 1) * rows() * width(); }
};

// Packed weights of one layer in one direction.
template <typename T>
struct DirectionWeights {
  AlignedArray<T> input;       // [features, gates]
  AlignedArray<T> state;       // [hidden, gates]
  std::vector<T> bias;         // of input and state together, but for the candidate of a GRU,
  std::vector<T> hidden_bias;  // whose state bias stays inside the reset gate
};
template <typename T>
struct RnnWeights {
  std::vector<DirectionWeights<T>> directions;  // by layer, then direction
};

// One layer of one run.
template <typename T>
struct LayerRun {
  const RnnSizes& s;
  RnnMode mode;
  const std::vector<int64_t>& lengths;  // by batch; empty: all full
  const DirectionWeights<T>* weights;   // by direction
  const T* in;                          // [time, batch, features]
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
    return s.directions * BlockCount(s.batch) * kRows * (2 * s.hidden + s.gates);
  }

  // gates = in * weights, for all time steps at once.
  void Project(int threads) const {
    const int64_t blocks = (s.rows() + kRows - 1) / kRows;
    const int64_t grain = 64 * 1024 / std::max<int64_t>(1, kRows * features * s.gates) + 1;
    ParallelFor(threads, s.directions * blocks, grain, [this, blocks](int64_t begin, int64_t end) {
      while (begin < end) {
        const int64_t d = begin / blocks;
        const int64_t stop = std::min(end, (d + 1) * blocks);
        const int64_t first = (begin - d * blocks) * kRows;
        const int64_t last = std::min(s.rows(), (stop - d * blocks) * kRows);
        T* rows = gates + (d * s.rows() + first) * s.gates;
        GemmPacked(last - first, features, s.gates, in + first * features, features,
                   weights[d].input.data(), rows, s.gates, /*accumulate=*/false);
        begin = stop;
      }
    });
  }

  // Steps all sequences through time; they and the directions are independent.
  void Recur(int threads) const {
    const int64_t blocks = BlockCount(s.batch);
    ParallelFor(threads, s.directions * blocks, /*grain=*/1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        RecurBlock(i / blocks, i % blocks * kRows, scratch + i * kRows * (2 * s.hidden + s.gates));
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
    GemmPacked(count, s.hidden, s.gates, h, s.hidden, weights[d].state.data(), gru ? hidden : g,
               s.gates, /*accumulate=*/!gru);
    for (int64_t i = 0; i < count; ++i) {
      T* y = out + (t * s.batch + first + i) * s.width() + d * s.hidden;
      if (!lengths.empty() && t >= lengths[first + i]) {
        std::fill_n(y, s.hidden, T{0});
        continue;
      }
      T* kept = extra == nullptr ? c + i * s.hidden : extra + (row + i) * s.hidden;
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
