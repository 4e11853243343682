// Broadcasting: element-wise functions of two tensors whose shapes differ.
//
// `PlanBroadcast` turns two operands and an output into the fewest nested loops that walk the
// output in memory order; neighbouring dimensions that broadcast alike become one loop. The loop
// over the innermost of them, a row, then has one of a few forms (`RowForm`), of which two have
// loops of their own; the others first lay out operands in small tiles, so that each function is
// compiled for two loops only. Common cases come out as
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

#include <cstddef>
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
Strides BroadcastStrides(const Tensor& operand, int out_rank, int axis);

// The loops for an output and two operands with those strides.
BroadcastPlan PlanBroadcast(const Strides& x, const Strides& y, const Tensor& out);

// True when the operand with this step (&Loop::x_step or &Loop::y_step) lies in memory as the
// output does. Only such an operand may share its memory with the output.
bool InOutputOrder(const BroadcastPlan& plan, int64_t Loop::*step);

namespace broadcast {

// The loops of one function along a row. They know its dtypes; the walk over rows does not, so that
// it is compiled once for all functions.
struct RowLoops {
  size_t operand_size;  // bytes of an element of x or y
  size_t out_size;
  const void* op;
  // out[i] = op(x[i], y[i]) for i in [0, n).
  void (*both)(const void* op, const void* x, const void* y, void* out, int64_t n);
  // out[i] = op(x[i], *y).
  void (*once)(const void* op, const void* x, const void* y, void* out, int64_t n);
};

void RunRows(const BroadcastPlan& plan, int num_threads, const void* x, const void* y, void* out,
             const RowLoops& loops);

// The pragmas allow out to equal an operand.
template <typename T, typename R, typename Op>
void BothLoop(const void* op_at, const void* x_at, const void* y_at, void* out_at, int64_t n) {
  const Op op = *static_cast<const Op*>(op_at);
  const T* x = static_cast<const T*>(x_at);
  const T* y = static_cast<const T*>(y_at);
  R* out = static_cast<R*>(out_at);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = op(x[i], y[i]);
}
template <typename T, typename R, typename Op>
void OnceLoop(const void* op_at, const void* x_at, const void* y_at, void* out_at, int64_t n) {
  const Op op = *static_cast<const Op*>(op_at);
  const T* x = static_cast<const T*>(x_at);
  const T y = *static_cast<const T*>(y_at);
  R* out = static_cast<R*>(out_at);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = op(x[i], y);
}
// ForEachPiece of a body that is called through `call`; elements of y have `size` bytes.
void ForEachPieceOf(const BroadcastPlan& plan, int num_threads, const void* y, size_t size,
                    const void* body,
                    void (*call)(const void* body, int64_t begin, int64_t n, const void* values));

}  // namespace broadcast

// out[i] = op(x[..], y[..]) for every element of the output, on up to `num_threads` threads.
template <typename T, typename R, typename Op>
void RunBroadcast(const BroadcastPlan& plan, int num_threads, const T* x, const T* y, R* out,
                  Op op) {
  broadcast::RunRows(
      plan, num_threads, x, y, out,
      {sizeof(T), sizeof(R), &op, broadcast::BothLoop<T, R, Op>, broadcast::OnceLoop<T, R, Op>});
}

// Calls body(begin, n, values) for disjoint pieces of the output, at most kTileSize long unless y
// steps by one, with the elements of y that meet [begin, begin + n). For functions of y and of any
// number of tensors that lie in memory as the output does.
// REQUIRES: x of the plan is the output.
template <typename T, typename Body>
void ForEachPiece(const BroadcastPlan& plan, int num_threads, const T* y, const Body& body) {
  broadcast::ForEachPieceOf(plan, num_threads, y, sizeof(T), &body,
                            [](const void* of, int64_t begin, int64_t n, const void* values) {
                              const CopiedIfTrivial<Body> own = *static_cast<const Body*>(of);
                              own(begin, n, static_cast<const T*>(values));
                            });
}

}  // namespace interp
