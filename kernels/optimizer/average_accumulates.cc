// average_accumulates: sums of a parameter over a window of steps, for ModelAverage.
//
// sum_1 += param. Every 16384 steps sum_2 takes sum_1 over, which keeps sums of floats accurate.
// Once the window is full, sum_3 takes both over, and a new window starts.
#include <algorithm>
#include <limits>

#include "core/op_def.h"
#include "kernels/optimizer/chunk.h"
#include "kernels/util/arithmetic.h"
#include "kernels/util/parallel_for.h"

namespace interp::optimizer {
namespace {

constexpr int kParam = 0;
constexpr int kInSum1 = 1;
constexpr int kInNumAccumulates = 4;
constexpr int kInOldNumAccumulates = 5;
constexpr int kInNumUpdates = 6;
constexpr int kOutSum1 = 0;
constexpr int kOutNumAccumulates = 3;
constexpr int kOutOldNumAccumulates = 4;
constexpr int kOutNumUpdates = 5;
constexpr int kNumSums = 3;
constexpr int kNumOutputs = 6;
constexpr int64_t kMaxSteps = 16384;  // that sum_1 takes in

struct Attrs {
  float window;
  int64_t max_window;
  int64_t min_window;
};

Attrs ReadAttrs(AttrReader& reader) {
  const Attrs attrs{
      .window = reader.Float("average_window", 0),
      .max_window = reader.Long("max_average_window", std::numeric_limits<int64_t>::max()),
      .min_window = reader.Long("min_average_window", 10000)};
  if (attrs.min_window > attrs.max_window) {
    reader.Fail(absl::StrCat("attribute 'min_average_window' is ", attrs.min_window,
                             ", more than 'max_average_window', ", attrs.max_window));
  }
  return attrs;
}

absl::Status Infer(InferContext& ctx) {
  const Tensor& param = ctx.input(kParam);
  for (int i = 0; i < kNumSums; ++i) {
    const Tensor& sum = ctx.input(kInSum1 + i);
    if (sum.shape != param.shape) {
      return InvalidArgument("'in_sum_", i + 1, "' has shape ", ToString(sum.shape),
                             ", expected that of 'param', ", ToString(param.shape));
    }
  }
  for (const int slot : {kInNumAccumulates, kInOldNumAccumulates, kInNumUpdates}) {
    const Tensor& count = ctx.input(slot);
    if (count.dtype == DType::kInt64 && count.numel() == 1) continue;
    return InvalidArgument("a count is ", DescribeType(count), ", expected one int64");
  }
  for (int out = 0; out < kNumOutputs; ++out) ctx.ShareShape(out + 1, out);
  return absl::OkStatus();
}

enum class Move { kNone, kToSum2, kToSum3 };

// One pass over the sums. The pragma allows outputs to be inputs.
template <typename T>
void AddUp(const T* param, const std::array<const T*, kNumSums>& in, Move move, int64_t begin,
           int64_t end, const std::array<T*, kNumSums>& out) {
  const T* const in1 = in[0];
  const T* const in2 = in[1];
  const T* const in3 = in[2];
  T* const out1 = out[0];
  T* const out2 = out[1];
  T* const out3 = out[2];
#pragma GCC ivdep
  for (int64_t i = begin; i < end; ++i) {
    const T sum1 = in1[i] + param[i];
    const T sum2 = in2[i];
    out1[i] = move == Move::kNone ? sum1 : T{0};
    out2[i] = move == Move::kNone ? sum2 : move == Move::kToSum2 ? sum2 + sum1 : T{0};
    out3[i] = move == Move::kToSum3 ? sum1 + sum2 : in3[i];
  }
}

template <typename T>
absl::Status AverageAccumulates(KernelContext& ctx) {
  const Attrs& attrs = ctx.attrs<Attrs>();
  const auto count = [&](int slot) { return *ctx.input(slot).data<int64_t>(); };
  const int64_t updates = WrapAdd<int64_t>(count(kInNumUpdates), 1);
  int64_t accumulated = WrapAdd<int64_t>(count(kInNumAccumulates), 1);
  int64_t before = count(kInOldNumAccumulates);
  const float window = static_cast<float>(updates) * attrs.window;
  Move move = updates % kMaxSteps == 0 ? Move::kToSum2 : Move::kNone;
  if (accumulated >= attrs.min_window &&
      accumulated >= std::min(attrs.max_window, Convert<int64_t>(window))) {
    move = Move::kToSum3;
    before = accumulated;
    accumulated = 0;
  }
  const T* param = ctx.input(kParam).data<T>();
  std::array<const T*, kNumSums> in;
  std::array<T*, kNumSums> out;
  for (int i = 0; i < kNumSums; ++i) {
    in[i] = ctx.input(kInSum1 + i).data<T>();
    out[i] = ctx.output(kOutSum1 + i).mutable_data<T>();
  }
  ParallelFor(ctx.num_threads(), ctx.input(kParam).numel(), kElementwiseGrain,
              [&](int64_t begin, int64_t end) { AddUp(param, in, move, begin, end, out); });
  *ctx.output(kOutNumAccumulates).mutable_data<int64_t>() = accumulated;
  *ctx.output(kOutOldNumAccumulates).mutable_data<int64_t>() = before;
  *ctx.output(kOutNumUpdates).mutable_data<int64_t>() = updates;
  return absl::OkStatus();
}

OpDef AverageAccumulatesDef() {
  OpDef def{
      .type = "average_accumulates",
      .inputs = {{"param"},
                 {"in_sum_1"},
                 {"in_sum_2"},
                 {"in_sum_3"},
                 {"in_num_accumulates", kAnyDType},
                 {"in_old_num_accumulates", kAnyDType},
                 {"in_num_updates", kAnyDType}},
      .outputs = {{"out_sum_1"},
                  {"out_sum_2"},
                  {"out_sum_3"},
                  {"out_num_accumulates"},
                  {"out_old_num_accumulates"},
                  {"out_num_updates"}},
      .parse = ParseAttrs<Attrs, ReadAttrs>,
      .infer_dtype =
          [](DTypeContext& ctx) {
            for (int out = kNumSums; out < kNumOutputs; ++out) ctx.Set(out, DType::kInt64);
          },
      .infer = Infer,
      .kernels = {{DType::kFloat32, AverageAccumulates<float>},
                  {DType::kFloat64, AverageAccumulates<double>}},
  };
  for (int out = 0; out < kNumOutputs; ++out) def.inplace.push_back({out + 1, out});
  return def;
}

INTERP_REGISTER_OP(AverageAccumulatesDef());

}  // namespace
}  // namespace interp::optimizer
