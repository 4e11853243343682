#include "kernels/util/broadcast.h"

#include <cstdlib>

namespace interp {
namespace {

// Logical dimensions from the slowest to the fastest in memory.
std::array<int, kMaxRank> MemoryOrder(const Tensor& tensor) {
  const int rank = tensor.shape.rank();
  std::array<int, kMaxRank> order;
  for (int i = 0; i < rank; ++i) order[i] = i;
  if (tensor.layout == Layout::kChannelsLast && rank > 2) {
    for (int i = 1; i + 1 < rank; ++i) order[i] = i + 1;
    order[rank - 1] = 1;
  }
  return order;
}

// Elements between neighbours of each logical dimension.
std::array<int64_t, kMaxRank> Strides(const Tensor& tensor) {
  const std::array<int, kMaxRank> order = MemoryOrder(tensor);
  std::array<int64_t, kMaxRank> strides;
  int64_t stride = 1;
  for (int i = tensor.shape.rank() - 1; i >= 0; --i) {
    strides[order[i]] = stride;
    stride *= tensor.shape[order[i]];
  }
  return strides;
}

// The dimension of the output that meets dimension 0 of an operand of `room` dimensions less.
int FirstDim(int room, int axis) {
  if (room == 0) return 0;
  return axis < 0 ? room + axis + 1 : axis;
}

// Strides of the operand along the dimensions of the output; 0 where it is broadcast.
std::array<int64_t, kMaxRank> StridesIn(const Tensor& operand, int out_rank, int axis) {
  const std::array<int64_t, kMaxRank> own = Strides(operand);
  const int rank = operand.shape.rank();
  const int first = FirstDim(out_rank - rank, axis);
  std::array<int64_t, kMaxRank> strides = {};
  for (int i = 0; i < rank; ++i) strides[first + i] = operand.shape[i] == 1 ? 0 : own[i];
  return strides;
}

// Adds a loop inside those of the plan, or lengthens the innermost when both operands go on in it.
void AddLoop(BroadcastPlan& plan, const BroadcastPlan::Loop& loop) {
  if (plan.num_loops > 0) {
    BroadcastPlan::Loop& outer = plan.loops[plan.num_loops - 1];
    if (outer.x_step == loop.size * loop.x_step && outer.y_step == loop.size * loop.y_step) {
      outer = {outer.size * loop.size, loop.x_step, loop.y_step};
      return;
    }
  }
  plan.loops[plan.num_loops++] = loop;
}

// Makes one row of two loops when one operand goes on in the outer loop and the other starts again.
void JoinRepeats(BroadcastPlan& plan) {
  if (plan.num_loops < 2 || plan.row().size > kMaxPeriod) return;
  const BroadcastPlan::Loop inner = plan.row();
  BroadcastPlan::Loop& outer = plan.loops[plan.num_loops - 2];
  const bool y_repeats = outer.x_step == inner.size && outer.y_step == 0;
  const bool x_repeats = outer.y_step == inner.size && outer.x_step == 0;
  if (!x_repeats && !y_repeats) return;
  plan.form = y_repeats ? RowForm::kYRepeats : RowForm::kXRepeats;
  plan.period = inner.size;
  outer = {outer.size * inner.size, 1, 1};
  --plan.num_loops;
}

void ChooseForm(BroadcastPlan& plan) {
  const BroadcastPlan::Loop& row = plan.row();
  if (row.x_step == 1 && row.y_step == 1) {
    plan.form = RowForm::kBoth;
    JoinRepeats(plan);
  } else if (row.x_step == 1 && row.y_step == 0) {
    plan.form = RowForm::kYOnce;
  } else if (row.x_step == 0 && row.y_step == 1) {
    plan.form = RowForm::kXOnce;
  } else {
    plan.form = RowForm::kStrided;
  }
}

}  // namespace

absl::StatusOr<Shape> BroadcastShapes(const Shape& x, const Shape& y, int axis) {
  if (x == y) return x;
  const Shape& high = x.rank() >= y.rank() ? x : y;
  const Shape& low = x.rank() >= y.rank() ? y : x;
  const int room = high.rank() - low.rank();
  const int first = FirstDim(room, axis);
  if (first < 0 || first > room) {
    return InvalidArgument("axis is ", axis, " for 'X' ", ToString(x), " and 'Y' ", ToString(y),
                           ", expected -1 to ", room);
  }
  Shape out = high;
  for (int i = 0; i < low.rank(); ++i) {
    int64_t& dim = out[first + i];
    if (dim == low[i] || low[i] == 1) continue;
    if (dim != 1) {
      return InvalidArgument("'X' ", ToString(x), " and 'Y' ", ToString(y),
                             " do not broadcast at axis ", axis, ": ", dim, " meets ", low[i]);
    }
    dim = low[i];
  }
  if (!out.CheckedNumel().has_value()) return InvalidArgument("output is too large");
  return out;
}

BroadcastPlan PlanBroadcast(const Tensor& x, const Tensor& y, const Tensor& out, int axis) {
  BroadcastPlan plan;
  plan.numel = out.numel();
  if (x.shape == y.shape && x.layout == y.layout) {
    AddLoop(plan, {plan.numel, 1, 1});
    return plan;
  }
  const int rank = out.shape.rank();
  const std::array<int64_t, kMaxRank> x_strides = StridesIn(x, rank, axis);
  const std::array<int64_t, kMaxRank> y_strides = StridesIn(y, rank, axis);
  const std::array<int, kMaxRank> order = MemoryOrder(out);
  for (int i = 0; i < rank; ++i) {
    const int dim = order[i];
    if (out.shape[dim] != 1) AddLoop(plan, {out.shape[dim], x_strides[dim], y_strides[dim]});
  }
  if (plan.num_loops == 0) AddLoop(plan, {1, 1, 1});
  ChooseForm(plan);
  return plan;
}

bool InOutputOrder(const BroadcastPlan& plan, int64_t BroadcastPlan::Loop::*step) {
  int64_t expected = 1;
  for (int i = plan.num_loops - 1; i >= 0; --i) {
    if (plan.loops[i].*step != expected) return false;
    expected *= plan.loops[i].size;
  }
  return plan.form !=
         (step == &BroadcastPlan::Loop::x_step ? RowForm::kXRepeats : RowForm::kYRepeats);
}

namespace broadcast {

RowCursor::RowCursor(const BroadcastPlan& plan, int64_t row) : plan_(plan) {
  for (int i = plan.num_loops - 2; i >= 0; --i) {
    const BroadcastPlan::Loop& loop = plan.loops[i];
    index_[i] = row % loop.size;
    row /= loop.size;
    x_ += index_[i] * loop.x_step;
    y_ += index_[i] * loop.y_step;
  }
}

}  // namespace broadcast
}  // namespace interp
