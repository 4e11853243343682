// where: Out[i] = Condition[i] ? X[i] : Y[i], all of one shape.
// broadcast_where: the same, where each of the three broadcasts to the shape of Out. The pass
// fuse_where makes it of what paddle.where writes for operands of several shapes.
#include <algorithm>
#include <array>

#include "core/op_def.h"
#include "kernels/util/broadcast.h"
#include "kernels/util/indices.h"

namespace interp {
namespace {

constexpr int kCondition = 0;
constexpr int kX = 1;
constexpr int kY = 2;
constexpr int kOut = 0;

DType DTypeOfX(const DTypeContext& ctx) { return ctx.input(kX); }

absl::Status CheckCondition(const OpContext& ctx) {
  const Tensor& condition = ctx.input(kCondition);
  if (condition.dtype == DType::kBool) return absl::OkStatus();
  return InvalidArgument("'Condition' is ", DescribeType(condition), ", expected bool");
}

absl::Status InferWhere(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckCondition(ctx));
  const Tensor& condition = ctx.input(kCondition);
  const Tensor& x = ctx.input(kX);
  const Tensor& y = ctx.input(kY);
  if (!(condition.shape == x.shape) || !(y.shape == x.shape)) {
    return InvalidArgument("'Condition' has shape ", ToString(condition.shape), ", 'X' ",
                           ToString(x.shape), ", 'Y' ", ToString(y.shape), ", expected one shape");
  }
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

absl::Status InferBroadcastWhere(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckCondition(ctx));
  const Tensor& x = ctx.input(kX);
  INTERP_ASSIGN_OR_RETURN(const Shape values,
                          BroadcastShapes(x.shape, ctx.input(kY).shape, kTrailingAxis));
  INTERP_ASSIGN_OR_RETURN(const Shape out,
                          BroadcastShapes(values, ctx.input(kCondition).shape, kTrailingAxis));
  ctx.SetShape(kOut, out);
  ctx.output(kOut).lod = x.lod;
  return absl::OkStatus();
}

// How the three operands lie along the dims of the result; 0 where one is repeated.
using Steps = std::array<Strides, 3>;

// The result as rows: dims [0, first) are around them, the others one row, along which each operand
// steps by `row[i]`, 1 or 0.
struct Rows {
  int first = 0;
  int64_t length = 1;
  std::array<int64_t, 3> row = {};
};

// The longest rows: dims in which every operand goes on, or is repeated, as it did behind them.
Rows RowsOf(const Shape& out, const Steps& steps) {
  Rows rows;
  rows.first = out.rank();
  bool begun = false;
  for (int i = out.rank() - 1; i >= 0; rows.first = i--) {
    if (out[i] == 1) continue;
    for (size_t operand = 0; operand < steps.size(); ++operand) {
      const int64_t step = steps[operand][i];
      if (!begun) rows.row[operand] = step == 0 ? 0 : 1;
      if (step != rows.row[operand] * rows.length) return rows;
    }
    begun = true;
    rows.length *= out[i];
  }
  return rows;
}

template <typename T>
void SelectRow(const Rows& rows, const uint8_t* condition, const T* x, const T* y, T* out) {
  const auto& [c_step, x_step, y_step] = rows.row;
  const int64_t n = rows.length;
  if (c_step == 1 && x_step == 1 && y_step == 1) {
    for (int64_t i = 0; i < n; ++i) out[i] = condition[i] != 0 ? x[i] : y[i];
  } else if (c_step == 1 && x_step == 1) {
    const T other = *y;
    for (int64_t i = 0; i < n; ++i) out[i] = condition[i] != 0 ? x[i] : other;
  } else if (c_step == 1 && y_step == 1) {
    const T value = *x;
    for (int64_t i = 0; i < n; ++i) out[i] = condition[i] != 0 ? value : y[i];
  } else if (c_step == 1) {
    const T value = *x;
    const T other = *y;
    for (int64_t i = 0; i < n; ++i) out[i] = condition[i] != 0 ? value : other;
  } else if (const bool first = *condition != 0; (first ? x_step : y_step) == 1) {
    std::copy_n(first ? x : y, n, out);
  } else {
    std::fill_n(out, n, first ? *x : *y);
  }
}

// Elements [begin, end) of the only row.
template <typename T>
void SelectPart(Rows rows, int64_t begin, int64_t end, const uint8_t* condition, const T* x,
                const T* y, T* out) {
  rows.length = end - begin;
  SelectRow(rows, condition + begin * rows.row[kCondition], x + begin * rows.row[kX],
            y + begin * rows.row[kY], out + begin);
}

// Rows [begin, end).
template <typename T>
void SelectRows(const Rows& rows, const Shape& shape, const Steps& steps, int64_t begin,
                int64_t end, const uint8_t* condition, const T* x, const T* y, T* out) {
  for (int64_t row = begin; row < end; ++row) {
    std::array<int64_t, 3> at = {};
    int64_t index = row;
    for (int i = rows.first - 1; i >= 0; index /= shape[i--]) {
      for (size_t operand = 0; operand < at.size(); ++operand) {
        at[operand] += index % shape[i] * steps[operand][i];
      }
    }
    SelectRow(rows, condition + at[kCondition], x + at[kX], y + at[kY], out + row * rows.length);
  }
}

absl::Status Where(KernelContext& ctx) {
  const Tensor& condition = ctx.input(kCondition);
  const Tensor& x = ctx.input(kX);
  const Tensor& y = ctx.input(kY);
  Tensor& out = ctx.output(kOut);
  const Shape& shape = out.shape;
  if (out.numel() == 0) return absl::OkStatus();
  const Steps steps = {BroadcastStrides(condition, shape.rank(), kTrailingAxis),
                       BroadcastStrides(x, shape.rank(), kTrailingAxis),
                       BroadcastStrides(y, shape.rank(), kTrailingAxis)};
  // Operands of one shape are one row whatever their layout; others are plain.
  const bool same = condition.shape == shape && x.shape == shape && y.shape == shape;
  const Rows rows = same ? Rows{.length = out.numel(), .row = {1, 1, 1}} : RowsOf(shape, steps);
  const bool one = rows.first == 0;
  const auto* const chosen = static_cast<const uint8_t*>(condition.raw_data());
  WithElementSize(out.dtype, [&](auto element) {
    using T = decltype(element);
    const T* const from_x = static_cast<const T*>(x.raw_data());
    const T* const from_y = static_cast<const T*>(y.raw_data());
    T* const to = static_cast<T*>(out.mutable_raw_data());
    const int64_t grain = GrainFor(one ? 1 : rows.length);
    ParallelFor(ctx.num_threads(), one ? rows.length : out.numel() / rows.length, grain,
                [&](int64_t begin, int64_t end) {
                  if (one) return SelectPart(rows, begin, end, chosen, from_x, from_y, to);
                  SelectRows(rows, shape, steps, begin, end, chosen, from_x, from_y, to);
                });
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "where",
    .inputs = {{"Condition", kAnyDType}, {"X"}, {"Y"}},
    .outputs = {{"Out"}},
    .kernel_dtype = DTypeOfX,
    .infer = InferWhere,
    .kernels = {{DType::kUndefined, Where}},
    .layout = LayoutRule::kFollows,
    .inplace = {{kX, kOut}, {kY, kOut}},
    .gradient = {.inputs = {"Condition", "X", "Y", "Out@GRAD"}, .outputs = {"X@GRAD", "Y@GRAD"}},
});

INTERP_REGISTER_OP(OpDef{
    .type = "broadcast_where",
    .inputs = {{"Condition", kAnyDType}, {"X"}, {"Y"}},
    .outputs = {{"Out"}},
    .kernel_dtype = DTypeOfX,
    .infer = InferBroadcastWhere,
    .kernels = {{DType::kUndefined, Where}},
    .inplace = {{kX, kOut}, {kY, kOut}},
});

}  // namespace
}  // namespace interp
