#include "kernels/util/broadcast.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/util/strided_copy.h"

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

// Bytes of the largest element.
constexpr size_t kMaxElement = 16;
using Tile = char[kTileSize * kMaxElement];

// tile[i] = row[(at + i) % period] for i in [0, n), all in bytes.
void FillTile(char* tile, int64_t n, const char* row, int64_t at, int64_t period) {
  const int64_t from = at % period;
  const int64_t first = std::min(period - from, n);
  const int64_t second = std::min(from, n - first);
  std::memcpy(tile, row + from, first);
  std::memcpy(tile + first, row, second);
  for (int64_t done = period; done < n; done *= 2) {
    std::memcpy(tile + done, tile, std::min(done, n - done));
  }
}

// to[i] = from[i * step] for i in [0, n), in elements of `size` bytes.
void Gather(size_t size, const char* from, int64_t step, int64_t n, char* to) {
  CopyStrided(/*num_threads=*/1, size, {{.size = n, .src_stride = step, .dst_stride = 1}}, from,
              to);
}

// Elements [at, at + n) of the operand y along a row: themselves, or laid out in the tile.
const char* YPiece(const BroadcastPlan& plan, const char* y, size_t size, int64_t at, int64_t n,
                   char* tile) {
  const int64_t bytes = static_cast<int64_t>(size);
  switch (plan.form) {
    case RowForm::kBoth:
      return y + at * bytes;
    case RowForm::kYOnce:
      FillTile(tile, n * bytes, y, 0, bytes);
      return tile;
    case RowForm::kYRepeats:
      FillTile(tile, n * bytes, y, at * bytes, plan.period * bytes);
      return tile;
    default:
      Gather(size, y + at * plan.row.y_step * bytes, plan.row.y_step, n, tile);
      return tile;
  }
}

// A piece of a row: `n` elements from number `at` on. x and y are where the row starts, out is
// where the piece goes.
struct Piece {
  const char* x;
  const char* y;
  char* out;
  int64_t at;
  int64_t n;
};

// The piece where one operand starts again every `period` elements and the other steps by one.
void RunRepeats(const Piece& piece, bool x_repeats, int64_t period,
                const broadcast::RowLoops& loops) {
  const int64_t size = static_cast<int64_t>(loops.operand_size);
  alignas(kMaxElement) Tile tile;
  const int64_t length = std::min(piece.n, kTileSize / period * period);
  FillTile(tile, length * size, x_repeats ? piece.x : piece.y, piece.at * size, period * size);
  const char* other = (x_repeats ? piece.y : piece.x) + piece.at * size;
  char* out = piece.out;
  for (int64_t i = 0; i < piece.n; i += length) {
    const int64_t n = std::min(length, piece.n - i);
    loops.both(loops.op, x_repeats ? tile : other, x_repeats ? other : tile, out, n);
    other += n * size;
    out += n * static_cast<int64_t>(loops.out_size);
  }
}

// The piece where operands move by any steps.
void RunStrided(const Piece& piece, const Loop& row, const broadcast::RowLoops& loops) {
  const int64_t size = static_cast<int64_t>(loops.operand_size);
  alignas(kMaxElement) Tile x;
  alignas(kMaxElement) Tile y;
  for (int64_t i = 0; i < piece.n; i += kTileSize) {
    const int64_t n = std::min(kTileSize, piece.n - i);
    const int64_t at = (piece.at + i) * size;
    Gather(loops.operand_size, piece.x + at * row.x_step, row.x_step, n, x);
    Gather(loops.operand_size, piece.y + at * row.y_step, row.y_step, n, y);
    loops.both(loops.op, x, y, piece.out + i * static_cast<int64_t>(loops.out_size), n);
  }
}

void RunPiece(const BroadcastPlan& plan, const Piece& piece, const broadcast::RowLoops& loops) {
  const int64_t size = static_cast<int64_t>(loops.operand_size);
  const char* x = piece.x + piece.at * plan.row.x_step * size;
  const char* y = piece.y + piece.at * plan.row.y_step * size;
  switch (plan.form) {
    case RowForm::kBoth:
      return loops.both(loops.op, x, y, piece.out, piece.n);
    case RowForm::kYOnce:
      return loops.once(loops.op, x, y, piece.out, piece.n);
    case RowForm::kXOnce:
      return RunRepeats(piece, true, 1, loops);
    case RowForm::kXRepeats:
      return RunRepeats(piece, true, plan.period, loops);
    case RowForm::kYRepeats:
      return RunRepeats(piece, false, plan.period, loops);
    case RowForm::kStrided:
      return RunStrided(piece, plan.row, loops);
  }
}

// Rows up to this many elements are laid out in tiles, several after the other: a call for each
// would cost more than its elements.
constexpr int64_t kShortRow = 24;

bool HasShortRows(const BroadcastPlan& plan) {
  const bool repeats = plan.form == RowForm::kXRepeats || plan.form == RowForm::kYRepeats;
  return plan.row.size <= kShortRow && plan.rows.size() > 0 && !repeats;
}

// to[i] = from[i * step] for i in [0, n). What lies there may be of another type of that size.
template <typename T>
void LayOut(const T* from, int64_t step, int64_t n, T* to) {
  T value;
  if (step == 0) {
    std::memcpy(&value, from, sizeof(T));
    for (int64_t i = 0; i < n; ++i) to[i] = value;
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    std::memcpy(&value, from + i * step, sizeof(T));
    to[i] = value;
  }
}

// Elements [begin, end) of the output. T is of the size of an element of x and y.
template <typename T>
void RunShortRows(const BroadcastPlan& plan, int64_t begin, int64_t end, const void* x,
                  const void* y, char* out, const broadcast::RowLoops& loops) {
  std::array<T, kTileSize> of_x;
  std::array<T, kTileSize> of_y;
  const Loop& row = plan.row;
  int64_t at = begin % row.size;
  LoopCursor cursor(plan.rows, begin / row.size);
  while (begin < end) {
    const int64_t count = std::min(kTileSize, end - begin);
    for (int64_t i = 0; i < count;) {
      const int64_t n = std::min(row.size - at, count - i);
      LayOut(static_cast<const T*>(x) + cursor.x() + at * row.x_step, row.x_step, n, &of_x[i]);
      LayOut(static_cast<const T*>(y) + cursor.y() + at * row.y_step, row.y_step, n, &of_y[i]);
      i += n;
      at += n;
      if (at < row.size) break;
      at = 0;
      cursor.Next();
    }
    loops.both(loops.op, of_x.data(), of_y.data(),
               out + begin * static_cast<int64_t>(loops.out_size), count);
    begin += count;
  }
}

// The same whatever the size.
void RunShortRows(const BroadcastPlan& plan, int64_t begin, int64_t end, const void* x,
                  const void* y, char* out, const broadcast::RowLoops& loops) {
  switch (loops.operand_size) {
    case 1:
      return RunShortRows<uint8_t>(plan, begin, end, x, y, out, loops);
    case 2:
      return RunShortRows<uint16_t>(plan, begin, end, x, y, out, loops);
    case 4:
      return RunShortRows<uint32_t>(plan, begin, end, x, y, out, loops);
    case 8:
      return RunShortRows<uint64_t>(plan, begin, end, x, y, out, loops);
    default:
      return RunShortRows<std::array<uint64_t, 2>>(plan, begin, end, x, y, out, loops);
  }
}

}  // namespace

namespace broadcast {

void RunRows(const BroadcastPlan& plan, int num_threads, const void* x, const void* y, void* out,
             const RowLoops& loops) {
  ParallelFor(num_threads, plan.numel, kElementwiseGrain, [&](int64_t begin, int64_t end) {
    if (HasShortRows(plan)) {
      return RunShortRows(plan, begin, end, x, y, static_cast<char*>(out), loops);
    }
    const int64_t size = static_cast<int64_t>(loops.operand_size);
    const int64_t length = plan.row.size;
    int64_t at = begin % length;
    for (LoopCursor row(plan.rows, begin / length); begin < end; row.Next(), at = 0) {
      const int64_t n = std::min(length - at, end - begin);
      RunPiece(plan,
               {static_cast<const char*>(x) + row.x() * size,
                static_cast<const char*>(y) + row.y() * size,
                static_cast<char*>(out) + begin * static_cast<int64_t>(loops.out_size), at, n},
               loops);
      begin += n;
    }
  });
}

void ForEachPieceOf(const BroadcastPlan& plan, int num_threads, const void* y, size_t size,
                    const void* body,
                    void (*call)(const void* body, int64_t begin, int64_t n, const void* values)) {
  ParallelFor(num_threads, plan.numel, kElementwiseGrain, [&](int64_t begin, int64_t end) {
    alignas(kMaxElement) Tile tile;
    const int64_t length = plan.row.size;
    int64_t at = begin % length;
    LoopCursor row(plan.rows, begin / length);
    while (begin < end) {
      int64_t n = std::min(length - at, end - begin);
      if (plan.form != RowForm::kBoth) n = std::min(n, kTileSize);
      const char* from = static_cast<const char*>(y) + row.y() * static_cast<int64_t>(size);
      call(body, begin, n, YPiece(plan, from, size, at, n, tile));
      begin += n;
      at += n;
      if (at < length) continue;
      at = 0;
      row.Next();
    }
  });
}

}  // namespace broadcast

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
  if (!out.CheckedNumel().has_value()) {
    return InvalidArgument("'X' ", ToString(x), " and 'Y' ", ToString(y), " broadcast to ",
                           ToString(out), ", which is too large");
  }
  return out;
}

Strides BroadcastStrides(const Tensor& operand, int out_rank, int axis) {
  const Strides own = StridesOf(operand);
  const int rank = operand.shape.rank();
  const int first = FirstDim(out_rank - rank, axis);
  Strides strides = {};
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

BroadcastPlan PlanBroadcast(const Strides& x, const Strides& y, const Tensor& out) {
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
