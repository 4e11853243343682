// Rows of gru and gru_grad: two products and two launches a step. Products take the rows of all
// sequences, see lstm_rows.cc.
#include "kernels/cuda/elements.h"
#include "kernels/cuda/gru.h"
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/row.h"
#include "kernels/cuda/sorted_sequences.h"
#include "kernels/recurrent/gru_attrs.h"

namespace interp::cuda {
namespace {

using recurrent::GruAttrs;
using recurrent::StepOrder;

constexpr int kInput = 0;
constexpr int kH0 = 1;
constexpr int kWeight = 2;
constexpr int kBias = 3;

GruCells CellsOf(const KernelContext& ctx, const SortedSequences& sorted) {
  const auto& attrs = ctx.attrs<GruAttrs>();
  return {.rows = sorted.rows(),
          .size = ctx.input(kInput).shape[1] / 3,
          .gate = static_cast<GateActivation>(attrs.gate),
          .candidate = static_cast<GateActivation>(attrs.candidate),
          .origin_mode = attrs.origin_mode};
}

absl::StatusOr<SortedSequences> Sort(KernelContext& ctx) {
  return SortedSequences::Make(ctx, ctx.input(kInput), ctx.attrs<GruAttrs>().reverse);
}

// Without sizes; `memory` has 5 elements for each of the states: h, gates, reset, sums.
GruStep FirstStep(const KernelContext& ctx, Elements memory, int64_t states) {
  GruStep step = {.input = ctx.input(kInput).raw_data(),
                  .gates = (memory + states).data,
                  .reset = (memory + 3 * states).data,
                  .sums = (memory + 4 * states).data,
                  .h = memory.data,
                  .hidden = ctx.output(/*slot=*/0).mutable_raw_data()};
  if (ctx.attrs<GruAttrs>().test) return step;
  step.batch_gate = MemoryOrNull(ctx.optional_output(/*slot=*/1));
  step.batch_reset = MemoryOrNull(ctx.optional_output(/*slot=*/2));
  step.batch_hidden = MemoryOrNull(ctx.optional_output(/*slot=*/3));
  return step;
}

// Input, H0, Weight, Bias -> Hidden, BatchGate, BatchResetHiddenPrev, BatchHidden.
absl::Status Gru(KernelContext& ctx) {
  const Tensor& input = ctx.input(kInput);
  if (input.numel() == 0) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(const SortedSequences sorted, Sort(ctx));
  const StepOrder& order = sorted.order();
  GruCells cells = CellsOf(ctx, sorted);
  if (const Tensor* const bias = ctx.optional_input(kBias)) cells.bias = bias->raw_data();
  const int64_t size = cells.size;
  const int64_t states = order.rows() * size;
  INTERP_ASSIGN_OR_RETURN(const Workspace memory,
                          ctx.workspace(static_cast<size_t>(5 * states) * SizeOf(input.dtype)));
  const Elements h = ElementsOf(input.dtype, memory.data());
  const Tensor* const h0 = ctx.optional_input(kH0);
  if (h0 != nullptr) INTERP_RETURN_IF_ERROR(sorted.GatherStates(ctx, *h0, h.data));
  GruStep step = FirstStep(ctx, h, states);
  const Elements weight = ElementsOf(input.dtype, ctx.input(kWeight).raw_data());
  const LayerProduct gates = {.m = order.rows(), .n = 2 * size, .k = size};
  const LayerProduct candidate = {.m = order.rows(), .n = size, .k = size};
  for (step.t = 0; step.t < order.steps(); ++step.t) {
    step.live = order.live(step.t);
    step.batch_row = order.starts[step.t];
    step.has_state = step.t > 0 || h0 != nullptr;
    if (step.has_state) {
      INTERP_RETURN_IF_ERROR(Multiply(ctx, input.dtype, gates, h, weight, h + states));
    }
    INTERP_RETURN_IF_ERROR(StepGruGates(input.dtype, cells, step, StreamOf(ctx)));
    if (step.has_state) {
      INTERP_RETURN_IF_ERROR(Multiply(ctx, input.dtype, candidate, h + 3 * states,
                                      weight + 2 * size * size, h + 4 * states));
    }
    INTERP_RETURN_IF_ERROR(StepGruState(input.dtype, cells, step, StreamOf(ctx)));
  }
  return absl::OkStatus();
}

constexpr int kBatchGate = 4;  // of gru_grad, as those that follow
constexpr int kBatchResetHiddenPrev = 5;
constexpr int kHidden = 7;
constexpr int kHiddenGrad = 8;
constexpr int kInputGrad = 0;
constexpr int kH0Grad = 1;
constexpr int kWeightGrad = 2;
constexpr int kBiasGrad = 3;

class GruBackward {
 public:
  GruBackward(KernelContext& ctx, const SortedSequences& sorted)
      : ctx_(ctx),
        sorted_(sorted),
        order_(sorted.order()),
        cells_(CellsOf(ctx, sorted)),
        dtype_(ctx.input(kHidden).dtype),
        rows_(order_.starts.back()),
        weight_(ElementsOf(dtype_, ctx.input(kWeight).raw_data())) {}

  absl::Status Run() {
    const int64_t states = order_.rows() * cells_.size;
    const int64_t all = rows_ * cells_.size + states;  // the last products read behind their rows
    INTERP_ASSIGN_OR_RETURN(
        const Workspace memory,
        ctx_.workspace(static_cast<size_t>(4 * all + 3 * states) * SizeOf(dtype_)));
    gates_grad_ = ElementsOf(dtype_, memory.data());
    candidate_grad_ = gates_grad_ + 2 * all;
    before_ = candidate_grad_ + all;
    dh_ = before_ + all;
    reset_grad_ = dh_ + states;
    first_ = reset_grad_ + states;
    INTERP_RETURN_IF_ERROR(Zero(ctx_, gates_grad_, 3 * all));
    INTERP_RETURN_IF_ERROR(Zero(ctx_, dh_, states));
    if (const Tensor* const h0 = ctx_.optional_input(kH0)) {
      INTERP_RETURN_IF_ERROR(sorted_.GatherStates(ctx_, *h0, first_.data));
    }
    INTERP_RETURN_IF_ERROR(StepsBack());
    if (Tensor* const out = ctx_.optional_output(kH0Grad)) {
      INTERP_RETURN_IF_ERROR(sorted_.ScatterStates(ctx_, dh_.data, *out));
    }
    INTERP_RETURN_IF_ERROR(WeightGradients());
    return BiasGradient();
  }

 private:
  absl::Status StepsBack() {
    GruStepBack step = {.gates = ctx_.input(kBatchGate).raw_data(),
                        .hidden = ctx_.input(kHidden).raw_data(),
                        .first = ctx_.has_input(kH0) ? first_.data : nullptr,
                        .hidden_grad = ctx_.input(kHiddenGrad).raw_data(),
                        .reset_grad = reset_grad_.data,
                        .dh = dh_.data,
                        .gates_grad = gates_grad_.data,
                        .candidate_grad = candidate_grad_.data,
                        .input_grad = MemoryOrNull(ctx_.optional_output(kInputGrad))};
    for (step.t = order_.steps() - 1; step.t >= 0; --step.t) {
      step.live_behind = step.live;
      step.live = order_.live(step.t);
      step.batch_row = order_.starts[step.t];
      INTERP_RETURN_IF_ERROR(StepGruStateBack(dtype_, cells_, step, StreamOf(ctx_)));
      if (step.t > 0 || ctx_.has_input(kH0)) INTERP_RETURN_IF_ERROR(StateBack(step));
    }
    return absl::OkStatus();
  }

  // What reaches the state before the step by the weights.
  absl::Status StateBack(const GruStepBack& step) {
    const int64_t size = cells_.size;
    INTERP_RETURN_IF_ERROR(
        Multiply(ctx_, dtype_, {.m = order_.rows(), .n = size, .k = size, .trans_y = true},
                 candidate_grad_ + step.batch_row * size, weight_ + 2 * size * size, reset_grad_));
    INTERP_RETURN_IF_ERROR(StepGruResetBack(dtype_, cells_, step, StreamOf(ctx_)));
    return Multiply(ctx_, dtype_,
                    {.m = order_.rows(), .n = size, .k = 2 * size, .trans_y = true, .beta = 1},
                    gates_grad_ + step.batch_row * 2 * size, weight_, dh_);
  }

  absl::Status WeightGradients() {
    Tensor* const out = ctx_.optional_output(kWeightGrad);
    if (out == nullptr) return absl::OkStatus();
    const int64_t size = cells_.size;
    const Elements to = ElementsOf(dtype_, out->mutable_raw_data());
    INTERP_RETURN_IF_ERROR(StatesBeforeBatchRows(
        dtype_, cells_.rows, rows_, size, ctx_.input(kHidden).raw_data(),
        ctx_.has_input(kH0) ? first_.data : nullptr, before_.data, StreamOf(ctx_)));
    INTERP_RETURN_IF_ERROR(Multiply(ctx_, dtype_,
                                    {.m = size, .n = 2 * size, .k = rows_, .trans_x = true},
                                    before_, gates_grad_, to));
    return Multiply(ctx_, dtype_, {.m = size, .n = size, .k = rows_, .trans_x = true},
                    ElementsOf(dtype_, ctx_.input(kBatchResetHiddenPrev).raw_data()),
                    candidate_grad_, to + 2 * size * size);
  }

  absl::Status BiasGradient() const {
    Tensor* const out = ctx_.optional_output(kBiasGrad);
    if (out == nullptr) return absl::OkStatus();
    const int64_t size = cells_.size;
    const Elements to = ElementsOf(dtype_, out->mutable_raw_data());
    INTERP_RETURN_IF_ERROR(Reduce(dtype_, ReduceOp::kSum, gates_grad_.data, {rows_, 2 * size},
                                  /*reduced=*/1, to.data, StreamOf(ctx_)));
    return Reduce(dtype_, ReduceOp::kSum, candidate_grad_.data, {rows_, size}, /*reduced=*/1,
                  (to + 2 * size).data, StreamOf(ctx_));
  }

  KernelContext& ctx_;
  const SortedSequences& sorted_;
  const StepOrder& order_;
  const GruCells cells_;
  const DType dtype_;
  const int64_t rows_;  // of all sequences
  const Elements weight_;
  Elements gates_grad_;      // [rows and those of one step, 2 size]
  Elements candidate_grad_;  // [the same, size]
  Elements before_;
  Elements dh_;
  Elements reset_grad_;
  Elements first_;
};

absl::Status GruGrad(KernelContext& ctx) {
  if (ctx.input(kHidden).numel() == 0) {
    return ZeroOutputs(ctx, {kInputGrad, kH0Grad, kWeightGrad, kBiasGrad});
  }
  INTERP_ASSIGN_OR_RETURN(const SortedSequences sorted, Sort(ctx));
  return GruBackward(ctx, sorted).Run();
}

constexpr std::initializer_list<DType> kStepped = {DType::kFloat32, DType::kFloat64};

INTERP_REGISTER_KERNELS("gru", RowsFor(kStepped, Gru));
INTERP_REGISTER_KERNELS("gru_grad", RowsFor(kStepped, GruGrad));

}  // namespace
}  // namespace interp::cuda
