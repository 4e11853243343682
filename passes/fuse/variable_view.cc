#include "passes/fuse/variable_view.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "core/attr_reader.h"
#include "passes/fuse/fusion.h"
#include "passes/op_inputs.h"

namespace interp {
namespace {

// The axis and the index of a slice that takes one index of one axis and drops that.
std::optional<std::pair<int64_t, int64_t>> IndexOfSlice(const Op& op) {
  if (op.type != "slice" || !OnlyInput(op, "Input").has_value()) return std::nullopt;
  AttrReader attrs(op);
  const std::vector<int64_t> axes = attrs.Ints("axes");
  const std::vector<int64_t> starts = attrs.Ints("starts");
  const std::vector<int64_t> ends = attrs.Ints("ends");
  const bool one = attrs.Ints("decrease_axis") == axes && axes.size() == 1 && starts.size() == 1 &&
                   ends.size() == 1 && axes[0] >= 0 && starts[0] >= 0 && ends[0] == starts[0] + 1;
  if (!one || !attrs.status().ok()) return std::nullopt;
  return std::make_pair(axes[0], starts[0]);
}

// The view of what is turned like that; false where they do not fit.
bool Turn(const std::vector<int64_t>& turn, VariableView& view) {
  if (view.axes.empty()) {
    view.axes = turn;
    return true;
  }
  if (turn.size() != view.axes.size() + view.slice.size() / 2) return false;
  for (int64_t& axis : view.axes) axis = turn[axis];
  if (!view.slice.empty()) view.slice[0] = turn[view.slice[0]];
  return true;
}

// The same of what is sliced, of `rank` dims.
bool TakeIndex(int64_t axis, int64_t index, int64_t rank, VariableView& view) {
  if (!view.slice.empty() || axis >= rank) return false;
  if (view.axes.empty()) {
    view.axes.resize(rank - 1);
    std::iota(view.axes.begin(), view.axes.end(), 0);
  }
  if (std::ssize(view.axes) != rank - 1) return false;
  for (int64_t& a : view.axes) a += a >= axis ? 1 : 0;
  view.slice = {axis, index};
  return true;
}

}  // namespace

std::vector<int64_t> AxesOfTranspose(const Op& op) {
  if (op.type != "transpose2" && op.type != "transpose") return {};
  AttrReader attrs(op);
  std::vector<int64_t> axes = attrs.Ints("axis");
  const bool inside =
      absl::c_all_of(axes, [&](int64_t axis) { return axis >= 0 && axis < std::ssize(axes); });
  const bool fits = inside && attrs.status().ok() && OnlyInput(op).has_value();
  return fits ? axes : std::vector<int64_t>();
}

std::optional<VarId> ViewBefore(const Op& op, int64_t rank, VariableView& view) {
  if (const auto index = IndexOfSlice(op)) {
    const bool fits = TakeIndex(index->first, index->second, rank, view);
    return fits ? Fuser::Argument(op.inputs, "Input") : std::nullopt;
  }
  const std::vector<int64_t> axes = AxesOfTranspose(op);
  if (axes.empty() || !Turn(axes, view)) return std::nullopt;
  return Fuser::Argument(op.inputs, "X");
}

bool EndsWithLast(const VariableView& view, int64_t count) {
  if (view.axes.empty()) return true;
  if (std::ssize(view.axes) < 2) return false;
  const int64_t last = std::ssize(view.axes) + std::ssize(view.slice) / 2 - 1;
  return std::find(view.axes.end() - count, view.axes.end(), last) != view.axes.end();
}

}  // namespace interp
