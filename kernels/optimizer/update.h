// What updates of parameters have in common: one pass over a parameter, its gradient and its
// states.
//
// A rule is a function of one element: the parameter, its gradient and its states, which it
// changes.
//
//   struct Momentum {
//     float rate, mu;
//     float operator()(float p, float g, std::array<float, 1>& state) const {
//       state[0] = mu * state[0] + g;
//       return p - rate * state[0];
//     }
//   };
//
// It computes in M, float or double. Parameters of 16 bits may have their exact values in a master
// parameter of float32.
#pragma once

#include <array>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "kernels/optimizer/gradient.h"
#include "kernels/util/copy.h"
#include "kernels/util/parallel_for.h"

namespace interp::optimizer {

// A tensor that is read, and the one that takes its new values: the same memory, as a rule.
struct Operand {
  const Tensor* in = nullptr;
  Tensor* out = nullptr;
};

// What the update of one parameter touches.
template <typename M, size_t kStates>
struct Update {
  Operand param;
  Operand master;  // null: none
  std::array<Operand, kStates> states;
  Gradient<M> gradient;

  // Where the exact values of the parameter are.
  const Operand& exact() const { return master.in != nullptr ? master : param; }
};

// The update of one parameter and its rule.
template <typename M, size_t kStates, typename Rule>
struct Task {
  Update<M, kStates> update;
  Rule rule;
};

namespace internal {

// The pragma allows outputs to be inputs.
template <typename M, typename Rule, size_t... kState>
void ApplyRule(const Rule& rule_of_caller, int64_t n, const M* p, const M* g, M* p_out,
               [[maybe_unused]] const std::array<const M*, sizeof...(kState)>& in,
               [[maybe_unused]] const std::array<M*, sizeof...(kState)>& out,
               std::index_sequence<kState...>) {
  const Rule rule = rule_of_caller;  // its members stay in registers
  [[maybe_unused]] const auto from = std::make_tuple(in[kState]...);
  [[maybe_unused]] const auto to = std::make_tuple(out[kState]...);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    std::array<M, sizeof...(kState)> state = {std::get<kState>(from)[i]...};
    p_out[i] = rule(p[i], g[i], state);
    ((std::get<kState>(to)[i] = state[kState]), ...);
  }
}

}  // namespace internal

// Applies a rule to the elements of which `g` is the gradient and `p` the parameter. What it gives
// for the parameter goes to `result`, which may be `p`.
template <typename M, size_t kStates, typename Rule>
void ApplyToStates(const Update<M, kStates>& update, const Rule& rule, const GradientChunk<M>& g,
                   const M* p, M* result) {
  M buffers[kStates + 1][kChunk];  // no array has length 0
  std::array<const M*, kStates> in;
  std::array<M*, kStates> out;
  for (size_t k = 0; k < kStates; ++k) {
    in[k] = LoadChunk(*update.states[k].in, g.at, g.size, buffers[k]);
    out[k] = TargetOf(*update.states[k].out, g.at, buffers[k]);
  }
  internal::ApplyRule(rule, g.size, p, g.values, result, in, out,
                      std::make_index_sequence<kStates>());
  for (size_t k = 0; k < kStates; ++k) StoreChunk(out[k], g.at, g.size, *update.states[k].out);
}

// Stores new values that lie where TargetOf says for Update::exact.
template <typename M, size_t kStates>
void StoreParam(const Update<M, kStates>& update, const M* values, int64_t at, int64_t n) {
  StoreChunk(values, at, n, *update.exact().out);
  if (update.master.in != nullptr) StoreChunk(values, at, n, *update.param.out);
}

template <typename M, size_t kStates, typename Rule>
void UpdateChunk(const Update<M, kStates>& update, const Rule& rule, const GradientChunk<M>& g) {
  M buffer[kChunk];
  const Operand& exact = update.exact();
  M* const out = TargetOf(*exact.out, g.at, buffer);
  ApplyToStates(update, rule, g, LoadChunk(*exact.in, g.at, g.size, buffer), out);
  StoreParam(update, out, g.at, g.size);
}

// Gives outputs under other names the values of before.
template <typename M, size_t kStates>
void KeepValues(const Update<M, kStates>& update) {
  CopyUnlessShared(*update.param.in, *update.param.out);
  if (update.master.in != nullptr) CopyUnlessShared(*update.master.in, *update.master.out);
  for (const Operand& state : update.states) CopyUnlessShared(*state.in, *state.out);
}

// Calls visit(t, c) for chunk c of every task t, on all threads: parameters are many and most are
// small.
template <typename Tasks, typename Visit>
void ForEachChunk(int num_threads, const Tasks& tasks, const Visit& visit) {
  std::vector<int64_t> begins = {0};
  for (const auto& task : tasks) {
    begins.push_back(begins.back() + task.update.gradient.num_chunks());
  }
  ParallelFor(num_threads, begins.back(), GrainFor(kChunk), [&](int64_t begin, int64_t end) {
    size_t t = std::upper_bound(begins.begin(), begins.end(), begin) - begins.begin();
    for (--t; begin < end; ++begin) {
      while (begin >= begins[t + 1]) ++t;
      visit(t, begin - begins[t]);
    }
  });
}

template <typename M, size_t kStates, typename Rule>
void RunUpdates(int num_threads, const std::vector<Task<M, kStates, Rule>>& tasks) {
  for (const auto& task : tasks) {
    if (task.update.gradient.leaves_rows_untouched()) KeepValues(task.update);
  }
  ForEachChunk(num_threads, tasks, [&](size_t t, int64_t chunk) {
    M buffer[kChunk];
    UpdateChunk(tasks[t].update, tasks[t].rule, tasks[t].update.gradient.Chunk(chunk, buffer));
  });
}

}  // namespace interp::optimizer
