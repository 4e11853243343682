// broadcast_where: what the pass fuse_where makes of paddle.where with operands of several shapes.
//   Out[i] = Condition[i] ? X[i] : Y[i], where each of the three broadcasts to the shape of Out.
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

absl::Status Infer(InferContext& ctx) {
  const Tensor& condition = ctx.input(kCondition);
  const Tensor& x = ctx.input(kX);
  const Tensor& y = ctx.input(kY);
  if (condition.dtype != DType::kBool) {
    return InvalidArgument("'Condition' is ", DescribeType(condition), ", expected bool");
  }
  INTERP_ASSIGN_OR_RETURN(const Shape values, BroadcastShapes(x.shape, y.shape, kTrailingAxis));
  INTERP_ASSIGN_OR_RETURN(const Shape out, BroadcastShapes(values, condition.shape, kTrailingAxis));
  ctx.SetShape(kOut, out);
  ctx.output(kOut).lod = x.lod;
  return absl::OkStatus();
}

// How the three operands lie along the dims of the result; 0 where one is repeated.
using Steps = std::array<DimStrides, 3>;

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

absl::Status BroadcastWhere(KernelContext& ctx) {
  Tensor& output = ctx.output(kOut);
  const Shape& shape = output.shape;
  const Steps steps = {BroadcastStrides(ctx.input(kCondition), shape.rank(), kTrailingAxis),
                       BroadcastStrides(ctx.input(kX), shape.rank(), kTrailingAxis),
                       BroadcastStrides(ctx.input(kY), shape.rank(), kTrailingAxis)};
  if (output.numel() == 0) return absl::OkStatus();
  const Rows rows = RowsOf(shape, steps);
  const auto* const condition = static_cast<const uint8_t*>(ctx.input(kCondition).raw_data());
  WithElementSize(output.dtype, [&](auto element) {
    using T = decltype(element);
    const T* const x = static_cast<const T*>(ctx.input(kX).raw_data());
    const T* const y = static_cast<const T*>(ctx.input(kY).raw_data());
    T* const out = static_cast<T*>(output.mutable_raw_data());
    const int64_t grain = kElementwiseGrain / rows.length + 1;
    ParallelFor(ctx.num_threads(), output.numel() / rows.length, grain,
                [&](int64_t begin, int64_t end) {
                  for (int64_t row = begin; row < end; ++row) {
                    std::array<int64_t, 3> at = {};
                    int64_t index = row;
                    for (int i = rows.first - 1; i >= 0; index /= shape[i--]) {
                      for (size_t operand = 0; operand < at.size(); ++operand) {
                        at[operand] += index % shape[i] * steps[operand][i];
                      }
                    }
                    SelectRow(rows, condition + at[kCondition], x + at[kX], y + at[kY],
                              out + row * rows.length);
                  }
                });
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "broadcast_where",
    .inputs = {{"Condition", kAnyDType}, {"X"}, {"Y"}},
    .outputs = {{"Out"}},
    .kernel_dtype = DTypeOfX,
    .infer = Infer,
    .kernels = {{DType::kUndefined, BroadcastWhere}},
    .inplace = {{kX, kOut}, {kY, kOut}},
});

}  // namespace
}  // namespace interp
