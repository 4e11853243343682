#include "kernels/util/broadcast.h"

#include <array>

namespace interp {
namespace {

// The dimension of the output that meets dimension 0 of an operand of `room` dimensions less.
int FirstDim(int room, int axis) { return room == 0 || axis == kTrailingAxis ? room : axis; }

// How many dimensions of an operand count: ones behind the output's last dimension do not.
int CountedDims(const Shape& operand, int out_rank, int axis) {
  const int first = FirstDim(out_rank - operand.rank(), axis);
  int rank = operand.rank();
  while (rank > 0 && first > out_rank - rank && operand[rank - 1] == 1) --rank;
  return rank;
}

// Makes one row of two loops when one operand goes on in the outer loop and the other starts again.
void JoinRepeats(BroadcastPlan& plan) {
  if (plan.rows.size() == 0 || plan.row.size > kMaxPeriod) return;
  const Loop& outer = plan.rows.innermost();
  const bool y_repeats = outer.x_step == plan.row.size && outer.y_step == 0;
  const bool x_repeats = outer.y_step == plan.row.size && outer.x_step == 0;
  if (!x_repeats && !y_repeats) return;
  plan.form = y_repeats ? RowForm::kYRepeats : RowForm::kXRepeats;
  plan.period = plan.row.size;
  plan.row.size *= plan.rows.Pop().size;
}

void ChooseForm(BroadcastPlan& plan) {
  if (plan.row.x_step == 1 && plan.row.y_step == 1) {
    plan.form = RowForm::kBoth;
    JoinRepeats(plan);
  } else if (plan.row.x_step == 1 && plan.row.y_step == 0) {
    plan.form = RowForm::kYOnce;
  } else if (plan.row.x_step == 0 && plan.row.y_step == 1) {
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
  const int counted = CountedDims(low, high.rank(), axis);
  if (first < 0 || first > high.rank() - counted) {
    return InvalidArgument("axis is ", axis, " for 'X' ", ToString(x), " and 'Y' ", ToString(y),
                           ", expected -1 to ", room);
  }
  Shape out = high;
  for (int i = 0; i < counted; ++i) {
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

DimStrides BroadcastStrides(const Tensor& operand, int out_rank, int axis) {
  const DimStrides own = DimStridesOf(operand);
  const int rank = operand.shape.rank();
  const int first = FirstDim(out_rank - rank, axis);
  DimStrides strides = {};
  for (int i = 0; i < CountedDims(operand.shape, out_rank, axis); ++i) {
    strides[first + i] = operand.shape[i] == 1 ? 0 : own[i];
  }
  return strides;
}

BroadcastPlan PlanBroadcast(const Tensor& x, const Tensor& y, const Tensor& out, int axis) {
  if (x.shape == y.shape && x.layout == y.layout) {
    BroadcastPlan plan;
    plan.numel = out.numel();
    plan.row = {plan.numel, 1, 1};
    return plan;
  }
  const int rank = out.shape.rank();
  return PlanBroadcast(BroadcastStrides(x, rank, axis), BroadcastStrides(y, rank, axis), out);
}

BroadcastPlan PlanBroadcast(const DimStrides& x, const DimStrides& y, const Tensor& out) {
  BroadcastPlan plan;
  plan.numel = out.numel();
  const std::array<int, kMaxRank> order = MemoryOrder(out);
  for (int i = 0; i < out.shape.rank(); ++i) {
    const int dim = order[i];
    if (out.shape[dim] != 1) plan.rows.Add({out.shape[dim], x[dim], y[dim]});
  }
  plan.row = plan.rows.size() > 0 ? plan.rows.Pop() : Loop{1, 1, 1};
  ChooseForm(plan);
  return plan;
}

bool InOutputOrder(const BroadcastPlan& plan, int64_t Loop::*step) {
  const RowForm repeats = step == &Loop::x_step ? RowForm::kXRepeats : RowForm::kYRepeats;
  if (plan.row.*step != 1 || plan.form == repeats) return false;
  int64_t expected = plan.row.size;
  for (int i = plan.rows.size() - 1; i >= 0; --i) {
    if (plan.rows[i].*step != expected) return false;
    expected *= plan.rows[i].size;
  }
  return true;
}

}  // namespace interp
