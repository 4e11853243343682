// Variables as views of those that transposes and slices make them from.
#pragma once

#include <optional>
#include <vector>

#include "core/program.h"

namespace interp {

// A variable that is read in place of another: of the index `slice[1]` along its axis `slice[0]`,
// or of all of it without a slice, the axes `axes` in this order; in their own without axes.
struct VariableView {
  VarId id = 0;
  std::vector<int64_t> axes = {};
  std::vector<int64_t> slice = {};
};

// The `axis` of a transpose; empty for other ops.
std::vector<int64_t> AxesOfTranspose(const Op& op);

// Makes `view`, which is of what `op` makes, a view of what that reads, and gives it; nullopt for
// ops other than a transpose or a slice of one index, whose axis goes, and for a second slice.
// `rank` is that of what a slice reads. REQUIRES: view.id is the only output that counts.
std::optional<VarId> ViewBefore(const Op& op, int64_t rank, VariableView& view);

// Whether one of the last `count` axes is the last one of the variable that is read.
bool EndsWithLast(const VariableView& view, int64_t count);

}  // namespace interp
