// Rows of gru and gru_unit and of their gradients: two products and two launches a step. Products
// of gru take the rows of all sequences, see lstm_rows.cc.
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

GruCells CellsOf(const KernelContext& ctx, const StepRows& rows) {
  const auto& attrs = ctx.attrs<GruAttrs>();
  return {.rows = rows,
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
                  .before = memory.data,
                  .h = memory.data,
                  .hidden = ctx.output(/*slot=*/0).mutable_raw_data()};
  if (ctx.attrs<GruAttrs>().test) return step;
  step.batch_gate = MemoryOrNull(ctx.optional_output(/*slot=*/1));
  step.batch_reset = MemoryOrNull(ctx.optional_output(/*slot=*/2));
  step.batch_hidden = MemoryOrNull(ctx.optional_output(/*slot=*/3));
  return step;
}

// One step, whose products take `rows` rows.
absl::Status StepForward(KernelContext& ctx, const GruCells& cells, const GruStep& step,
                         int64_t rows) {
  const DType dtype = ctx.input(kWeight).dtype;
  const int64_t size = cells.size;
  const Elements weight = ElementsOf(dtype, ctx.input(kWeight).raw_data());
  if (step.has_state) {
    INTERP_RETURN_IF_ERROR(Multiply(ctx, dtype, {.m = rows, .n = 2 * size, .k = size},
                                    ElementsOf(dtype, step.before), weight,
                                    ElementsOf(dtype, step.gates)));
  }
  INTERP_RETURN_IF_ERROR(StepGruGates(dtype, cells, step, StreamOf(ctx)));
  if (step.has_state) {
    INTERP_RETURN_IF_ERROR(Multiply(ctx, dtype, {.m = rows, .n = size, .k = size},
                                    ElementsOf(dtype, step.reset), weight + 2 * size * size,
                                    ElementsOf(dtype, step.sums)));
  }
  return StepGruState(dtype, cells, step, StreamOf(ctx));
}

// Input, H0, Weight, Bias -> Hidden, BatchGate, BatchResetHiddenPrev, BatchHidden.
absl::Status Gru(KernelContext& ctx) {
  const Tensor& input = ctx.input(kInput);
  if (input.numel() == 0) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(const SortedSequences sorted, Sort(ctx));
  const StepOrder& order = sorted.order();
  GruCells cells = CellsOf(ctx, sorted.rows());
  if (const Tensor* const bias = ctx.optional_input(kBias)) cells.bias = bias->raw_data();
  const int64_t size = cells.size;
  const int64_t states = order.rows() * size;
  INTERP_ASSIGN_OR_RETURN(const Workspace memory,
                          ctx.workspace(static_cast<size_t>(5 * states) * SizeOf(input.dtype)));
  const Elements h = ElementsOf(input.dtype, memory.data());
  const Tensor* const h0 = ctx.optional_input(kH0);
  if (h0 != nullptr) INTERP_RETURN_IF_ERROR(sorted.GatherStates(ctx, *h0, h.data));
  GruStep step = FirstStep(ctx, h, states);
  for (step.t = 0; step.t < order.steps(); ++step.t) {
    step.live = order.live(step.t);
    step.batch_row = order.starts[step.t];
    step.has_state = step.t > 0 || h0 != nullptr;
    INTERP_RETURN_IF_ERROR(StepForward(ctx, cells, step, order.rows()));
  }
  return absl::OkStatus();
}

// Input, HiddenPrev, Weight, Bias -> Gate, ResetHiddenPrev, Hidden.
absl::Status GruUnit(KernelContext& ctx) {
  const Tensor& state = ctx.input(kH0);
  if (state.numel() == 0) return absl::OkStatus();
  GruCells cells = CellsOf(ctx, /*rows=*/{});
  if (const Tensor* const bias = ctx.optional_input(kBias)) cells.bias = bias->raw_data();
  INTERP_ASSIGN_OR_RETURN(
      const Workspace memory,
      ctx.workspace(static_cast<size_t>(3 * state.numel()) * SizeOf(state.dtype)));
  const Elements gates = ElementsOf(state.dtype, memory.data());
  void* const hidden = ctx.output(/*slot=*/2).mutable_raw_data();
  return StepForward(ctx, cells,
                     {.live = state.shape[0],
                      .has_state = true,
                      .input = ctx.input(kInput).raw_data(),
                      .gates = gates.data,
                      .reset = ctx.output(/*slot=*/1).mutable_raw_data(),
                      .sums = (gates + 2 * state.numel()).data,
                      .before = state.raw_data(),
                      .h = hidden,
                      .hidden = hidden,
                      .batch_gate = ctx.output(/*slot=*/0).mutable_raw_data()},
                     /*rows=*/state.shape[0]);
}

constexpr int kBatchGate = 4;  // of gru_grad, as those that follow
constexpr int kBatchResetHiddenPrev = 5;
constexpr int kHidden = 7;
constexpr int kHiddenGrad = 8;
constexpr int kInputGrad = 0;
constexpr int kH0Grad = 1;
constexpr int kWeightGrad = 2;
constexpr int kBiasGrad = 3;

// What reaches the state before a step by the weights; products take `rows` rows.
absl::Status StateBack(KernelContext& ctx, const GruCells& cells, const GruStepBack& step,
                       int64_t rows) {
  const DType dtype = ctx.input(kWeight).dtype;
  const int64_t size = cells.size;
  const Elements weight = ElementsOf(dtype, ctx.input(kWeight).raw_data());
  INTERP_RETURN_IF_ERROR(Multiply(ctx, dtype, {.m = rows, .n = size, .k = size, .trans_y = true},
                                  ElementsOf(dtype, step.candidate_grad) + step.batch_row * size,
                                  weight + 2 * size * size, ElementsOf(dtype, step.reset_grad)));
  INTERP_RETURN_IF_ERROR(StepGruResetBack(dtype, cells, step, StreamOf(ctx)));
  return Multiply(ctx, dtype, {.m = rows, .n = size, .k = 2 * size, .trans_y = true, .beta = 1},
                  ElementsOf(dtype, step.gates_grad) + step.batch_row * 2 * size, weight,
                  ElementsOf(dtype, step.dh));
}

// What the gradients of Weight and Bias are made of, in rows: the states before, those behind the
// reset gate, and the gradients of the gates (update and reset) and of the candidate. The first
// `stateless` rows have no state before them: not even 0, which makes NaN of infinite gradients.
struct GruRows {
  int64_t rows = 0;
  int64_t stateless = 0;
  int64_t size = 0;
  Elements before;
  Elements reset;
  Elements gates;
  Elements candidate;
};
absl::Status GruParameterGradients(KernelContext& ctx, const GruRows& of) {
  const DType dtype = ctx.input(kWeight).dtype;
  const int64_t size = of.size;
  if (Tensor* const out = ctx.optional_output(kWeightGrad)) {
    const Elements to = ElementsOf(dtype, out->mutable_raw_data());
    INTERP_RETURN_IF_ERROR(Multiply(
        ctx, dtype, {.m = size, .n = 2 * size, .k = of.rows - of.stateless, .trans_x = true},
        of.before + of.stateless * size, of.gates + of.stateless * 2 * size, to));
    INTERP_RETURN_IF_ERROR(Multiply(ctx, dtype,
                                    {.m = size, .n = size, .k = of.rows, .trans_x = true}, of.reset,
                                    of.candidate, to + 2 * size * size));
  }
  Tensor* const out = ctx.optional_output(kBiasGrad);
  if (out == nullptr) return absl::OkStatus();
  const Elements to = ElementsOf(dtype, out->mutable_raw_data());
  INTERP_RETURN_IF_ERROR(Reduce(dtype, ReduceOp::kSum, of.gates.data, {of.rows, 2 * size},
                                /*reduced=*/1, to.data, WorkspaceOf(ctx), StreamOf(ctx)));
  return Reduce(dtype, ReduceOp::kSum, of.candidate.data, {of.rows, size}, /*reduced=*/1,
                (to + 2 * size).data, WorkspaceOf(ctx), StreamOf(ctx));
}

class GruBackward {
 public:
  GruBackward(KernelContext& ctx, const SortedSequences& sorted)
      : ctx_(ctx),
        sorted_(sorted),
        order_(sorted.order()),
        cells_(CellsOf(ctx, sorted.rows())),
        dtype_(ctx.input(kHidden).dtype),
        rows_(order_.starts.back()) {}

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
    return ParameterGradients();
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
      if (step.t > 0 || ctx_.has_input(kH0)) {
        INTERP_RETURN_IF_ERROR(StateBack(ctx_, cells_, step, order_.rows()));
      }
    }
    return absl::OkStatus();
  }

  absl::Status ParameterGradients() {
    if (ctx_.optional_output(kWeightGrad) != nullptr) {
      INTERP_RETURN_IF_ERROR(StatesBeforeBatchRows(
          dtype_, cells_.rows, rows_, cells_.size, ctx_.input(kHidden).raw_data(),
          ctx_.has_input(kH0) ? first_.data : nullptr, before_.data, StreamOf(ctx_)));
    }
    return GruParameterGradients(
        ctx_, {.rows = rows_,
               .stateless = ctx_.has_input(kH0) ? 0 : order_.starts[1],
               .size = cells_.size,
               .before = before_,
               .reset = ElementsOf(dtype_, ctx_.input(kBatchResetHiddenPrev).raw_data()),
               .gates = gates_grad_,
               .candidate = candidate_grad_});
  }

  KernelContext& ctx_;
  const SortedSequences& sorted_;
  const StepOrder& order_;
  const GruCells cells_;
  const DType dtype_;
  const int64_t rows_;       // of all sequences
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

constexpr int kGate = 4;  // of gru_unit_grad, as those that follow
constexpr int kResetHiddenPrev = 5;
constexpr int kUnitHiddenGrad = 6;

absl::Status GruUnitGrad(KernelContext& ctx) {
  const Tensor& state = ctx.input(kH0);
  const int64_t states = state.numel();
  if (states == 0) return ZeroOutputs(ctx, {kWeightGrad, kBiasGrad});
  const int64_t batch = state.shape[0];
  const GruCells cells = CellsOf(ctx, /*rows=*/{});
  INTERP_ASSIGN_OR_RETURN(const Workspace memory,
                          ctx.workspace(static_cast<size_t>(5 * states) * SizeOf(state.dtype)));
  const Elements gates_grad = ElementsOf(state.dtype, memory.data());
  const Elements candidate_grad = gates_grad + 2 * states;
  const Elements reset_grad = candidate_grad + states;
  Tensor* const h_grad = ctx.optional_output(kH0Grad);
  const GruStepBack step = {
      .live = batch,
      .gates = ctx.input(kGate).raw_data(),
      .first = state.raw_data(),
      .hidden_grad = ctx.input(kUnitHiddenGrad).raw_data(),
      .reset_grad = reset_grad.data,
      .dh = h_grad != nullptr ? h_grad->mutable_raw_data() : (reset_grad + states).data,
      .gates_grad = gates_grad.data,
      .candidate_grad = candidate_grad.data,
      .input_grad = MemoryOrNull(ctx.optional_output(kInputGrad))};
  INTERP_RETURN_IF_ERROR(StepGruStateBack(state.dtype, cells, step, StreamOf(ctx)));
  INTERP_RETURN_IF_ERROR(StateBack(ctx, cells, step, batch));
  return GruParameterGradients(
      ctx, {.rows = batch,
            .size = cells.size,
            .before = ElementsOf(state.dtype, state.raw_data()),
            .reset = ElementsOf(state.dtype, ctx.input(kResetHiddenPrev).raw_data()),
            .gates = gates_grad,
            .candidate = candidate_grad});
}

constexpr std::initializer_list<DType> kStepped = {DType::kFloat32, DType::kFloat64};

INTERP_REGISTER_KERNELS("gru", RowsFor(kStepped, Gru));
INTERP_REGISTER_KERNELS("gru_grad", RowsFor(kStepped, GruGrad));
INTERP_REGISTER_KERNELS("gru_unit", RowsFor(kStepped, GruUnit));
INTERP_REGISTER_KERNELS("gru_unit_grad", RowsFor(kStepped, GruUnitGrad));

}  // namespace
}  // namespace interp::cuda
