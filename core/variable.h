// Variable: what a name holds, in a scope or in a frame of a run.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/tensor.h"

namespace interp {

// What a LOD_RANK_TABLE variable holds: the sequences of one level of a LoD, longest first, those
// of equal length in their original order. (Paddle's LoDRankTable, lod_rank_table.cc.)
struct RankTable {
  struct Item {
    int64_t index = 0;  // of the sequence
    int64_t length = 0;
  };
  std::vector<Item> items;
  Lod coarse;  // the levels above the ranked one
};

// Which rows of a tall tensor a variable holds: row i of the variable's `tensor` belongs to row
// `rows[i]`, added to what other i with that row say. (Paddle's SelectedRows.)
struct RowIndex {
  std::vector<int64_t> rows;  // in any order, also repeatedly; each in [0, height)
  int64_t height = 0;
};

struct Variable;

// What an activation leaves for its gradient: values, in the order of Plan::saved, then the types,
// where known, of what entries of the gradient's block are gradients of: at its end, at its start.
struct StepRecord {
  std::vector<Variable> values;
};

// A variable holds one of these, as its kind says. LOD_TENSOR variables use `tensor`;
// LOD_TENSOR_ARRAY, FEED_MINIBATCH and FETCH_LIST variables use `array`; SELECTED_ROWS variables
// use `tensor` ([number of rows, ...]) and `selected_rows`.
struct Variable {
  Tensor tensor;
  std::vector<Tensor> array;
  std::unique_ptr<RankTable> rank_table;  // LOD_RANK_TABLE
  std::vector<StepRecord> steps;          // STEP_SCOPES, in the order of the activations
  std::optional<RowIndex> selected_rows;  // engaged in all SELECTED_ROWS variables, in no others
  // Raised by whoever changes the values of a persistable variable in place: cores that packed them
  // as constants then pack them again. Giving `tensor` other memory is noticed without it.
  uint64_t version = 0;

  Variable();
  Variable(Variable&&) noexcept;
  Variable& operator=(Variable&&) noexcept;
  ~Variable();

  // Drops what it holds; shape, dtype and layout of `tensor` stay.
  void DropValue();
};

}  // namespace interp
