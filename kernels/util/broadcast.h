// Broadcasting: element-wise functions of two tensors whose shapes differ.
//
// `PlanBroadcast` turns two operands and an output into the fewest nested loops that walk the
// output in memory order; neighbouring dimensions that broadcast alike become one loop. The loop
// over the innermost of them, a row, then has one of a few forms (`RowForm`), of which two have
// loops of their own; the others first lay out one operand in a small tile, so that each function
// is compiled for two loops only. Common cases come out as
//
//   same shape                     1 row               kBoth
//   [N,C,H,W] op [C] at axis 1     N*C rows of H*W     kYOnce     (plain)
//                                  1 row               kYRepeats  (channels-last)
//   [N,C,H,W] op [N,C,1,1]         N*C rows of H*W     kYOnce     (plain)
//                                  N rows of H*W*C     kYRepeats  (channels-last)
//   anything op scalar             1 row               kYOnce
//
// The output may share the memory of an operand that lies in memory as the output does (see
// `InOutputOrder`): every element is read before the same element is written.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/status.h"
#include "core/tensor.h"
#include "kernels/util/loops.h"
#include "kernels/util/parallel_for.h"

namespace interp {

// Axis for trailing alignment.
inline constexpr int kTrailingAxis = -1;

// The shape of x op y by Paddle's rule: the operand of lower rank is placed so that its dimension 0
// meets dimension `axis` of the other (kTrailingAxis: so that the last dimensions meet), and its
// ones that find no other dimension do not count; then each pair of dimensions must be equal or one
// of them 1. Error: the shapes do not fit, or axis is out
// of range.
absl::StatusOr<Shape> BroadcastShapes(const Shape& x, const Shape& y, int axis);

// How the operands move along a row.
enum class RowForm : uint8_t {
  kBoth,      // both step by one
  kYOnce,     // x steps by one, y is one element
  kXOnce,     // the reverse
  kYRepeats,  // x steps by one, y too, but starts again every `period` elements
  kXRepeats,  // the reverse
  kStrided,   // any steps: layouts differ
};

struct BroadcastPlan {
  LoopNest rows;  // the loops around a row
  Loop row;       // along a row; x and y are the operands, the output steps by one
  RowForm form = RowForm::kBoth;
  int64_t period = 0;  // of kYRepeats and kXRepeats, at most kMaxPeriod
  int64_t numel = 0;   // of the output
};

// Longest operand row that is repeated into a tile; longer ones make good rows by themselves.
inline constexpr int64_t kMaxPeriod = 256;
inline constexpr int64_t kTileSize = 1024;

// The loops for out = x op y. Layouts are those of the tensors, shapes are logical.
// REQUIRES: out.shape == BroadcastShapes(x.shape, y.shape, axis).
BroadcastPlan PlanBroadcast(const Tensor& x, const Tensor& y, const Tensor& out, int axis);

// Strides of an operand along the dimensions of an output of `out_rank` dimensions; 0 where it is
// broadcast.
DimStrides BroadcastStrides(const Tensor& operand, int out_rank, int axis);

// The loops for an output and two operands with those strides.
BroadcastPlan PlanBroadcast(const DimStrides& x, const DimStrides& y, const Tensor& out);

// True when the operand with this step (&Loop::x_step or &Loop::y_step) lies in memory as the
// output does. Only such an operand may share its memory with the output.
bool InOutputOrder(const BroadcastPlan& plan, int64_t Loop::*step);

namespace broadcast {

// tile[i] = row[(at + i) % period] for i in [0, n).
template <typename T>
void FillTile(T* tile, int64_t n, const T* row, int64_t at, int64_t period) {
  const int64_t from = at % period;
  T* out = std::copy(row + from, row + std::min(period, from + n), tile);
  std::copy(row, row + std::min(from, n - (out - tile)), out);
  for (int64_t done = period; done < n; done *= 2) {
    std::copy(tile, tile + std::min(done, n - done), tile + done);
  }
}

// The two loops every function is compiled for, kept out of line so that there is one of each. The
// pragma allows out to equal an operand.
template <typename T, typename R, typename Op>
[[gnu::noinline]] void BothLoop(const T* x, const T* y, R* out, int64_t n, Op op) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = op(x[i], y[i]);
}
template <typename T, typename R, typename Op>
[[gnu::noinline]] void OnceLoop(const T* x, T y, R* out, int64_t n, Op op) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = op(x[i], y);
}

// out[i] = op(repeated[(at + i) % period], other[i]) for i in [0, n).
template <typename T, typename R, typename Op>
void RepeatsLoop(const T* repeated, int64_t at, int64_t period, const T* other, R* out, int64_t n,
                 Op op) {
  T tile[kTileSize];
  const int64_t length = std::min(n, kTileSize / period * period);
  FillTile(tile, length, repeated, at, period);
  for (int64_t i = 0; i < n; i += length) {
    BothLoop(tile, other + i, out + i, std::min(length, n - i), op);
  }
}

// Elements [at, at + n) of y along a row: themselves, or laid out in the tile.
template <typename T>
const T* YPiece(const BroadcastPlan& plan, const T* y, int64_t at, int64_t n, T* tile) {
  switch (plan.form) {
    case RowForm::kBoth:
      return y + at;
    case RowForm::kYOnce:
      std::fill(tile, tile + n, *y);
      return tile;
    case RowForm::kYRepeats:
      FillTile(tile, n, y, at, plan.period);
      return tile;
    default:
      for (int64_t i = 0; i < n; ++i) tile[i] = y[(at + i) * plan.row.y_step];
      return tile;
  }
}

// Elements [at, at + n) of the row that starts at x and y.
template <typename T, typename R, typename Op>
void Row(const BroadcastPlan& plan, const T* x, const T* y, int64_t at, int64_t n, R* out, Op op) {
  const auto swapped = [op](T b, T a) { return op(a, b); };
  switch (plan.form) {
    case RowForm::kBoth:
      return BothLoop(x + at, y + at, out, n, op);
    case RowForm::kYOnce:
      return OnceLoop(x + at, *y, out, n, op);
    case RowForm::kXOnce:
      return RepeatsLoop(x, 0, 1, y + at, out, n, op);
    case RowForm::kXRepeats:
      return RepeatsLoop(x, at, plan.period, y + at, out, n, op);
    case RowForm::kYRepeats:
      return RepeatsLoop(y, at, plan.period, x + at, out, n, swapped);
    case RowForm::kStrided:
      for (int64_t i = 0; i < n; ++i) {
        out[i] = op(x[(at + i) * plan.row.x_step], y[(at + i) * plan.row.y_step]);
      }
      return;
  }
}

}  // namespace broadcast

// out[i] = op(x[..], y[..]) for every element of the output, on up to `num_threads` threads.
template <typename T, typename R, typename Op>
void RunBroadcast(const BroadcastPlan& plan, int num_threads, const T* x, const T* y, R* out,
                  Op op) {
  ParallelFor(num_threads, plan.numel, kElementwiseGrain, [&](int64_t begin, int64_t end) {
    const int64_t length = plan.row.size;
    int64_t at = begin % length;
    for (LoopCursor row(plan.rows, begin / length); begin < end; row.Next(), at = 0) {
      const int64_t n = std::min(length - at, end - begin);
      broadcast::Row(plan, x + row.x(), y + row.y(), at, n, out + begin, op);
      begin += n;
    }
  });
}

// Calls body(begin, n, values) for disjoint pieces of the output, at most kTileSize long unless y
// steps by one, with the elements of y that meet [begin, begin + n). For functions of y and of any
// number of tensors that lie in memory as the output does.
// REQUIRES: x of the plan is the output.
template <typename T, typename Body>
void ForEachPiece(const BroadcastPlan& plan, int num_threads, const T* y, const Body& body) {
  ParallelFor(num_threads, plan.numel, kElementwiseGrain, [&](int64_t begin, int64_t end) {
    T tile[kTileSize];
    const int64_t length = plan.row.size;
    int64_t at = begin % length;
    LoopCursor row(plan.rows, begin / length);
    while (begin < end) {
      int64_t n = std::min(length - at, end - begin);
      if (plan.form != RowForm::kBoth) n = std::min(n, kTileSize);
      body(begin, n, broadcast::YPiece(plan, y + row.y(), at, n, tile));
      begin += n;
      at += n;
      if (at < length) continue;
      at = 0;
      row.Next();
    }
  });
}

}  // namespace interp
