// StepOrder: how recurrent ops step through the sequences of a LoD tensor, all at once.
//
// Sequences are sorted by length, the longest first; equal ones keep their order. Step t takes row
// t of every sequence that has one, counted from the end in the reverse direction. As the sorted
// lengths do not ascend, these are always the first sequences, so a step is one matrix product over
// adjacent rows of state. "Batch rows" are the rows in the order of the steps:
//
//   lengths 3, 1, 2     sequences 0, 2, 1     steps  0 4 3 | 1 5 | 2     (rows of the input)
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/op_def.h"
#include "kernels/sequence/lod.h"
#include "kernels/util/parallel_for.h"

namespace interp::recurrent {

struct StepOrder {
  std::vector<int64_t> sequences;  // sorted; empty sequences are last
  std::vector<int64_t> first;      // by sorted position: the row that step 0 takes
  std::vector<int64_t> starts;     // by step: batch rows before it; one more entry than steps
  int64_t stride = 1;              // rows from one step of a sequence to the next: 1 or -1

  int64_t steps() const { return static_cast<int64_t>(starts.size()) - 1; }
  // Sequences that have a row in step t. REQUIRES: t < steps().
  int64_t live(int64_t t) const { return starts[t + 1] - starts[t]; }
  // Sequences that are not empty.
  int64_t rows() const { return steps() == 0 ? 0 : live(0); }
  // The row of the input that sorted sequence `position` has in step t.
  int64_t row(int64_t t, int64_t position) const { return first[position] + t * stride; }
};

// `offsets` is a level of a LoD. Time O(rows + sequences log sequences).
StepOrder MakeStepOrder(const std::vector<int64_t>& offsets, bool reverse);

// The offsets of the sequences in `input`. InvalidArgument unless it is a matrix of `gates` * size
// columns with a LoD of one level that fits its rows.
absl::StatusOr<Offsets> GateSequences(const Tensor& input, int64_t gates);

// Keeps the order of the last LoD, as most runs have the LoD of the run before.
class StepOrderCache {
 public:
  // REQUIRES: `reverse` is the same in all calls.
  const StepOrder& Get(const std::vector<int64_t>& offsets, bool reverse);

 private:
  std::vector<int64_t> offsets_;
  StepOrder order_;
};

// Sequences that a thread takes at least: products of fewer rows wait for memory.
inline constexpr int64_t kStepGrain = 4;

// Calls step(t, first, count) for every step of the sorted sequences [first, first + count) that
// have it, the steps of a sequence in order. Sequences are independent, so threads share them out.
template <typename Step>
void ForEachStep(const StepOrder& order, int threads, const Step& step) {
  ParallelFor(threads, order.rows(), kStepGrain, [&](int64_t begin, int64_t end) {
    for (int64_t t = 0; t < order.steps(); ++t) {
      const int64_t count = std::min(end, order.live(t)) - begin;
      if (count <= 0) return;
      step(t, begin, count);
    }
  });
}

// The same from the last step to the first.
template <typename Step>
void ForEachStepBack(const StepOrder& order, int threads, const Step& step) {
  ParallelFor(threads, order.rows(), kStepGrain, [&](int64_t begin, int64_t end) {
    for (int64_t t = order.steps() - 1; t >= 0; --t) {
      const int64_t count = std::min(end, order.live(t)) - begin;
      if (count > 0) step(t, begin, count);
    }
  });
}

// Adds to rows of `sorted` what `given`, [T, width] in the order of the input, has for sorted
// sequences [first, first + count) in step t.
template <typename T>
void AddOfStep(const StepOrder& order, int64_t t, int64_t first, int64_t count, const T* given,
               int64_t width, T* sorted) {
  for (int64_t i = 0; i < count; ++i) {
    const T* const from = given + order.row(t, first + i) * width;
    for (int64_t j = 0; j < width; ++j) sorted[i * width + j] += from[j];
  }
}

// Gathers the rows of `states` [sequences, width] that have steps into `sorted`, in sorted order.
template <typename T>
void GatherStates(const StepOrder& order, const T* states, int64_t width, T* sorted) {
  for (int64_t p = 0; p < order.rows(); ++p) {
    std::copy_n(states + order.sequences[p] * width, width, sorted + p * width);
  }
}

}  // namespace interp::recurrent
