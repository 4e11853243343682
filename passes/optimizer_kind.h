// What the optimizers that AppendOptimizer knows are made of: a table, and options read by it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/status.h"
#include "passes/optimizer.h"

namespace interp {

// An argument of a constructor.
struct OptimizerOption {
  absl::string_view name;
  double fallback = 0;  // NaN: it must be given
  // Of the op; empty: the option means something else.
  absl::string_view attr = {};
  bool flag = false;  // true or false
};

// A state of a parameter: a persistable variable named <parameter>_<suffix>_0.
struct OptimizerState {
  absl::string_view in;
  absl::string_view out;  // empty: an op of its own advances it
  absl::string_view suffix;
  absl::string_view initial = {};  // the option that it starts with; empty: 0
  bool scalar = false;             // one element instead of the parameter's shape
};

struct OptimizerKind {
  absl::string_view type;  // of the optimizer and of its op
  std::vector<OptimizerOption> options;
  std::vector<OptimizerState> states;
  bool multi_precision = false;  // takes that option
  bool own_decay = false;        // takes no weight_decay, or means something else by it
};

// Options with their values, defaults filled in; flags are 0 or 1.
struct OptimizerValues {
  const OptimizerKind* kind = nullptr;
  std::map<std::string, double, std::less<>> numbers;

  double operator[](absl::string_view name) const { return numbers.find(name)->second; }
  bool Has(absl::string_view name) const { return numbers.contains(name); }
};

absl::StatusOr<OptimizerValues> ReadOptimizer(const OptimizerSpec& spec);

}  // namespace interp
