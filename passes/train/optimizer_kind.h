// What the optimizers that AppendOptimizer knows are made of: a table, and options read by it.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "core/status.h"
#include "passes/train/optimizer.h"

namespace interp {

enum class OptionForm {
  kNumber,
  kFlag,   // true or false
  kList,   // of numbers: 1;2;3
  kDecay,  // of a running mean: a number from 0 on and below 1
};

// Instead of a fallback: the option must be given, or is there only when it is given.
inline constexpr double kRequiredOption = std::numeric_limits<double>::infinity();
inline constexpr double kAbsentOption = -kRequiredOption;

// An argument of a constructor, or something else to choose.
struct OptimizerOption {
  absl::string_view name;
  double fallback = 0;
  // Of the op; empty: the option means something else.
  absl::string_view attr = {};
  OptionForm form = OptionForm::kNumber;
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

// Options with their values, defaults filled in.
struct OptimizerValues {
  const OptimizerKind* kind = nullptr;
  std::string schedule;                                // lr_schedule; empty: none
  std::map<std::string, double, std::less<>> numbers;  // flags are 0 or 1
  std::map<std::string, std::vector<double>, std::less<>> lists;

  double operator[](absl::string_view name) const { return numbers.find(name)->second; }
  bool Has(absl::string_view name) const { return numbers.contains(name) || lists.contains(name); }
};

absl::StatusOr<OptimizerValues> ReadOptimizer(const OptimizerSpec& spec);

}  // namespace interp
