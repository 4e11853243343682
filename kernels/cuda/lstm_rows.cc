// Rows of lstm and lstmp and of their gradients: for each step a product with the weight and one
// launch for the cells of all live sequences, and as much for the projection of lstmp. Products
// take the rows of all sequences, those that have ended too, so that one plan of the library serves
// every step; what they give for these is not read.
#include <utility>

#include "kernels/cuda/elements.h"
#include "kernels/cuda/lstm.h"
#include "kernels/cuda/lstm_projection.h"
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/row.h"
#include "kernels/cuda/sorted_sequences.h"
#include "kernels/recurrent/lstm_attrs.h"

namespace interp::cuda {
namespace {

using recurrent::kLstmBias;
using recurrent::kLstmC0;
using recurrent::kLstmH0;
using recurrent::kLstmInput;
using recurrent::kLstmWeight;
using recurrent::LstmAttrs;
using recurrent::StepOrder;

LstmCells CellsOf(const KernelContext& ctx, const SortedSequences& sorted) {
  const auto& attrs = ctx.attrs<LstmAttrs>();
  return {.rows = sorted.rows(),
          .size = ctx.input(kLstmInput).shape[1] / 4,
          .gate = static_cast<GateActivation>(attrs.gate),
          .cell = static_cast<GateActivation>(attrs.cell),
          .candidate = static_cast<GateActivation>(attrs.candidate),
          .bias = ctx.input(kLstmBias).raw_data(),
          .peepholes = attrs.peepholes,
          .clip = attrs.cell_clip};
}

// Of lstmp.
LstmProjection ProjectionOf(const KernelContext& ctx, const SortedSequences& sorted) {
  const auto& attrs = ctx.attrs<LstmAttrs>();
  return {.rows = sorted.rows(),
          .width = ctx.input(kLstmWeight).shape[0],
          .activation = static_cast<GateActivation>(attrs.projection),
          .clip = attrs.projection_clip};
}

absl::StatusOr<SortedSequences> Sort(KernelContext& ctx) {
  return SortedSequences::Make(ctx, ctx.input(kLstmInput), ctx.attrs<LstmAttrs>().reverse);
}

// Memory by sorted sequence: the states r and c, the products with the weight, and h, which is r
// without a projection.
struct LstmMemory {
  Elements r = {};
  Elements c = {};
  Elements sums = {};
  Elements h = {};
};

// Without sizes. Tests keep no Batch* outputs.
LstmStep FirstStep(const KernelContext& ctx, const LstmMemory& memory) {
  const auto& attrs = ctx.attrs<LstmAttrs>();
  const auto kept = [&](int slot) {
    return attrs.test ? nullptr : MemoryOrNull(ctx.optional_output(slot));
  };
  return {.input = ctx.input(kLstmInput).raw_data(),
          .c = memory.c.data,
          .h = memory.h.data,
          .hidden = attrs.projected ? nullptr : ctx.output(/*slot=*/0).mutable_raw_data(),
          .cell_out = MemoryOrNull(ctx.optional_output(/*slot=*/1)),
          .batch_gate = kept(/*slot=*/2),
          .batch_active = kept(/*slot=*/3),
          .batch_hidden = attrs.projected ? kept(/*slot=*/4) : nullptr};
}

// r of lstmp, from h.
absl::Status Project(KernelContext& ctx, const LstmProjection& projection, const LstmStep& step,
                     int64_t rows, const LstmMemory& memory) {
  const Tensor& weight = ctx.input(/*slot=*/5);
  INTERP_RETURN_IF_ERROR(Multiply(ctx, weight.dtype,
                                  {.m = rows, .n = weight.shape[1], .k = weight.shape[0]}, memory.h,
                                  ElementsOf(weight.dtype, weight.raw_data()), memory.r));
  return StepProjection(weight.dtype, projection,
                        {.t = step.t,
                         .live = step.live,
                         .r = memory.r.data,
                         .out = ctx.output(/*slot=*/0).mutable_raw_data()},
                        StreamOf(ctx));
}

absl::Status RunSteps(KernelContext& ctx, const SortedSequences& sorted, const LstmMemory& memory) {
  const StepOrder& order = sorted.order();
  const LstmCells cells = CellsOf(ctx, sorted);
  const Tensor& weight = ctx.input(kLstmWeight);
  const LayerProduct product = {.m = order.rows(), .n = weight.shape[1], .k = weight.shape[0]};
  LstmStep step = FirstStep(ctx, memory);
  for (step.t = 0; step.t < order.steps(); ++step.t) {
    step.live = order.live(step.t);
    step.batch_row = order.starts[step.t];
    if (step.t > 0 || ctx.has_input(kLstmH0)) {
      INTERP_RETURN_IF_ERROR(Multiply(ctx, weight.dtype, product, memory.r,
                                      ElementsOf(weight.dtype, weight.raw_data()), memory.sums));
      step.sums = memory.sums.data;
    }
    INTERP_RETURN_IF_ERROR(StepLstm(weight.dtype, cells, step, StreamOf(ctx)));
    if (!ctx.attrs<LstmAttrs>().projected) continue;
    INTERP_RETURN_IF_ERROR(Project(ctx, ProjectionOf(ctx, sorted), step, order.rows(), memory));
  }
  return absl::OkStatus();
}

// Input, H0, C0, Weight, Bias -> Hidden, Cell, BatchGate, BatchCellPreAct; of lstmp also
// ProjWeight, Projection in place of Hidden, BatchHidden and OrderedP0, which is empty.
absl::Status Lstm(KernelContext& ctx) {
  const Tensor& input = ctx.input(kLstmInput);
  if (input.numel() == 0) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(const SortedSequences sorted, Sort(ctx));
  const int64_t rows = sorted.order().rows();
  const int64_t cells = rows * (input.shape[1] / 4);
  const int64_t states = rows * ctx.input(kLstmWeight).shape[0];
  INTERP_ASSIGN_OR_RETURN(
      const Workspace workspace,
      ctx.workspace(static_cast<size_t>(states + 6 * cells) * SizeOf(input.dtype)));
  LstmMemory memory = {.r = ElementsOf(input.dtype, workspace.data())};
  memory.c = memory.r + states;
  memory.sums = memory.c + cells;
  memory.h = ctx.attrs<LstmAttrs>().projected ? memory.sums + 4 * cells : memory.r;
  if (const Tensor* const h0 = ctx.optional_input(kLstmH0)) {
    INTERP_RETURN_IF_ERROR(sorted.GatherStates(ctx, *h0, memory.r.data));
  }
  const Tensor* const c0 = ctx.optional_input(kLstmC0);
  INTERP_RETURN_IF_ERROR(c0 != nullptr ? sorted.GatherStates(ctx, *c0, memory.c.data)
                                       : Zero(ctx, memory.c, cells));
  return RunSteps(ctx, sorted, memory);
}

constexpr int kHidden = 5;  // of lstm_grad, as those that follow
constexpr int kCell = 6;
constexpr int kBatchGate = 7;
constexpr int kBatchCellPreAct = 8;
constexpr int kHiddenGrad = 9;
constexpr int kProjWeight = 10;  // of lstmp_grad
constexpr int kBatchHidden = 11;
constexpr int kInputGrad = 0;
constexpr int kH0Grad = 1;
constexpr int kC0Grad = 2;
constexpr int kWeightGrad = 3;
constexpr int kBiasGrad = 4;
constexpr int kProjWeightGrad = 5;  // of lstmp_grad

class LstmBackward {
 public:
  LstmBackward(KernelContext& ctx, const SortedSequences& sorted)
      : ctx_(ctx),
        sorted_(sorted),
        order_(sorted.order()),
        cells_(CellsOf(ctx, sorted)),
        projected_(ctx.attrs<LstmAttrs>().projected),
        projection_(ProjectionOf(ctx, sorted)),
        dtype_(ctx.input(kHidden).dtype),
        rows_(order_.starts.back()) {}

  absl::Status Run() {
    INTERP_ASSIGN_OR_RETURN(const Workspace memory,
                            ctx_.workspace(static_cast<size_t>(Divide({})) * SizeOf(dtype_)));
    Divide(ElementsOf(dtype_, memory.data()));
    if (const Tensor* const c0 = ctx_.optional_input(kLstmC0)) {
      INTERP_RETURN_IF_ERROR(sorted_.GatherStates(ctx_, *c0, c_first_.data));
    }
    if (const Tensor* const h0 = ctx_.optional_input(kLstmH0)) {
      INTERP_RETURN_IF_ERROR(sorted_.GatherStates(ctx_, *h0, r_first_.data));
    }
    INTERP_RETURN_IF_ERROR(StepBack());
    if (Tensor* const out = ctx_.optional_output(kH0Grad)) {
      INTERP_RETURN_IF_ERROR(sorted_.ScatterStates(ctx_, dr_.data, *out));
    }
    if (Tensor* const out = ctx_.optional_output(kC0Grad)) {
      INTERP_RETURN_IF_ERROR(sorted_.ScatterStates(ctx_, dc_.data, *out));
    }
    INTERP_RETURN_IF_ERROR(WeightGradients());
    return BiasGradients();
  }

 private:
  // Divides the memory up and returns how many elements are needed.
  int64_t Divide(Elements memory) {
    int64_t used = 0;
    const auto take = [&](int64_t count) { return memory + std::exchange(used, used + count); };
    const int64_t states = order_.rows() * cells_.size;
    gates_grad_ = take(4 * (rows_ * cells_.size + states));
    peephole_grads_ = take(3 * rows_ * cells_.size);
    before_ = take(rows_ * projection_.width);
    dr_ = take(order_.rows() * projection_.width);
    dc_ = take(states);
    c_first_ = take(states);
    r_first_ = take(order_.rows() * projection_.width);
    if (projected_) {
      sums_grad_ = take((rows_ + order_.rows()) * projection_.width);
      dh_ = take(states);
    }
    return used;
  }

  bool Peeps() const { return cells_.peepholes && ctx_.has_output(kBiasGrad); }

  absl::Status StepBack() {
    const int64_t size = cells_.size;
    // The products of the last step read behind its own rows.
    INTERP_RETURN_IF_ERROR(Zero(ctx_, gates_grad_ + rows_ * 4 * size, order_.rows() * 4 * size));
    if (projected_) {
      INTERP_RETURN_IF_ERROR(
          Zero(ctx_, sums_grad_ + rows_ * projection_.width, order_.rows() * projection_.width));
    }
    LstmStepBack step = {.gates = ctx_.input(kBatchGate).raw_data(),
                         .active = ctx_.input(kBatchCellPreAct).raw_data(),
                         .c = ctx_.input(kCell).raw_data(),
                         .c_first = ctx_.has_input(kLstmC0) ? c_first_.data : nullptr,
                         .dh = dh_.data,
                         .r_grad = ctx_.input(kHiddenGrad).raw_data(),
                         .dr = dr_.data,
                         .dc = dc_.data,
                         .gates_grad = gates_grad_.data,
                         .input_grad = MemoryOrNull(ctx_.optional_output(kInputGrad)),
                         .peephole_grads = Peeps() ? peephole_grads_.data : nullptr};
    const LayerProduct product = {
        .m = order_.rows(), .n = projection_.width, .k = 4 * size, .trans_y = true};
    const Elements weight = ElementsOf(dtype_, ctx_.input(kLstmWeight).raw_data());
    for (step.t = order_.steps() - 1; step.t >= 0; --step.t) {
      step.live_behind = step.live;
      step.live = order_.live(step.t);
      step.batch_row = order_.starts[step.t];
      if (projected_) INTERP_RETURN_IF_ERROR(ProjectBack(step));
      INTERP_RETURN_IF_ERROR(StepLstmBack(dtype_, cells_, step, StreamOf(ctx_)));
      if (step.t == 0 && !ctx_.has_output(kH0Grad)) break;
      INTERP_RETURN_IF_ERROR(
          Multiply(ctx_, dtype_, product, gates_grad_ + step.batch_row * 4 * size, weight, dr_));
    }
    return absl::OkStatus();
  }

  // The gradient of h, from that of r.
  absl::Status ProjectBack(const LstmStepBack& step) {
    const int64_t width = projection_.width;
    INTERP_RETURN_IF_ERROR(StepProjectionBack(dtype_, projection_,
                                              {.t = step.t,
                                               .live = step.live,
                                               .live_behind = step.live_behind,
                                               .batch_row = step.batch_row,
                                               .r = ctx_.input(kHidden).raw_data(),
                                               .r_grad = step.r_grad,
                                               .dr = dr_.data,
                                               .sums_grad = sums_grad_.data},
                                              StreamOf(ctx_)));
    return Multiply(ctx_, dtype_,
                    {.m = order_.rows(), .n = cells_.size, .k = width, .trans_y = true},
                    sums_grad_ + step.batch_row * width,
                    ElementsOf(dtype_, ctx_.input(kProjWeight).raw_data()), dh_);
  }

  absl::Status WeightGradients() {
    const int64_t width = projection_.width;
    if (Tensor* const out = ctx_.optional_output(kWeightGrad)) {
      INTERP_RETURN_IF_ERROR(StatesBeforeBatchRows(
          dtype_, cells_.rows, rows_, width, ctx_.input(kHidden).raw_data(),
          ctx_.has_input(kLstmH0) ? r_first_.data : nullptr, before_.data, StreamOf(ctx_)));
      // Without first states, step 0 has none before it: not even 0, which makes NaN of infinity.
      const int64_t first = ctx_.has_input(kLstmH0) ? 0 : order_.starts[1];
      INTERP_RETURN_IF_ERROR(Multiply(
          ctx_, dtype_, {.m = width, .n = 4 * cells_.size, .k = rows_ - first, .trans_x = true},
          before_ + first * width, gates_grad_ + first * 4 * cells_.size,
          ElementsOf(dtype_, out->mutable_raw_data())));
    }
    Tensor* const out = projected_ ? ctx_.optional_output(kProjWeightGrad) : nullptr;
    if (out == nullptr) return absl::OkStatus();
    return Multiply(ctx_, dtype_, {.m = cells_.size, .n = width, .k = rows_, .trans_x = true},
                    ElementsOf(dtype_, ctx_.input(kBatchHidden).raw_data()), sums_grad_,
                    ElementsOf(dtype_, out->mutable_raw_data()));
  }

  absl::Status BiasGradients() const {
    Tensor* const out = ctx_.optional_output(kBiasGrad);
    if (out == nullptr) return absl::OkStatus();
    const Elements to = ElementsOf(dtype_, out->mutable_raw_data());
    const int64_t size = cells_.size;
    INTERP_RETURN_IF_ERROR(Reduce(dtype_, ReduceOp::kSum, gates_grad_.data, {rows_, 4 * size},
                                  /*reduced=*/1, to.data, WorkspaceOf(ctx_), StreamOf(ctx_)));
    if (!Peeps()) return absl::OkStatus();
    return Reduce(dtype_, ReduceOp::kSum, peephole_grads_.data, {rows_, 3 * size}, /*reduced=*/1,
                  (to + 4 * size).data, WorkspaceOf(ctx_), StreamOf(ctx_));
  }

  KernelContext& ctx_;
  const SortedSequences& sorted_;
  const StepOrder& order_;
  const LstmCells cells_;
  const bool projected_;
  const LstmProjection projection_;
  const DType dtype_;
  const int64_t rows_;   // of all sequences
  Elements gates_grad_;  // [rows and those of one step, 4 size]
  Elements peephole_grads_;
  Elements before_;
  Elements dr_;
  Elements dc_;
  Elements c_first_;
  Elements r_first_;
  Elements sums_grad_;  // of lstmp, [rows and those of one step, width]
  Elements dh_;         // of lstmp
};

absl::Status LstmGrad(KernelContext& ctx) {
  if (ctx.input(kHidden).numel() == 0) {
    if (ctx.attrs<LstmAttrs>().projected) {
      INTERP_RETURN_IF_ERROR(ZeroOutputs(ctx, {kProjWeightGrad}));
    }
    return ZeroOutputs(ctx, {kInputGrad, kH0Grad, kC0Grad, kWeightGrad, kBiasGrad});
  }
  INTERP_ASSIGN_OR_RETURN(const SortedSequences sorted, Sort(ctx));
  return LstmBackward(ctx, sorted).Run();
}

constexpr std::initializer_list<DType> kStepped = {DType::kFloat32, DType::kFloat64};

INTERP_REGISTER_KERNELS("lstm", RowsFor(kStepped, Lstm));
INTERP_REGISTER_KERNELS("lstm_grad", RowsFor(kStepped, LstmGrad));
INTERP_REGISTER_KERNELS("lstmp", RowsFor(kStepped, Lstm));
INTERP_REGISTER_KERNELS("lstmp_grad", RowsFor(kStepped, LstmGrad));

}  // namespace
}  // namespace interp::cuda
