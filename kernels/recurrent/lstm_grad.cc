// lstm_grad, lstmp_grad: from the last step to the first, each step with its gates at once; then
// the gradients of weights and biases as products and sums over all steps.
//
// The formulas of the forward op are in lstm.cc. No gradient of Cell comes in, as in Paddle: what
// passes through the states of the cells does so within the op. A state or a projection on a clip
// limit gets no gradient.
#include <optional>

#include "kernels/recurrent/lstm_gradient.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/data_or_null.h"
#include "kernels/util/flops.h"
#include "kernels/util/gradient_shape.h"

namespace interp::recurrent {
namespace {

constexpr int kR = 5;  // Hidden, Projection in lstmp
constexpr int kCell = 6;
constexpr int kBatchGate = 7;
constexpr int kBatchCellPreAct = 8;
constexpr int kRGrad = 9;
constexpr int kProjWeight = 10;   // lstmp
constexpr int kBatchHidden = 11;  // lstmp
constexpr int kInputGrad = 0;
constexpr int kH0Grad = 1;
constexpr int kC0Grad = 2;
constexpr int kWeightGrad = 3;
constexpr int kBiasGrad = 4;
constexpr int kProjWeightGrad = 5;  // lstmp

absl::Status InferLstmGrad(InferContext& ctx) {
  const bool projected = ctx.attrs<LstmAttrs>().projected;
  INTERP_ASSIGN_OR_RETURN(const LstmSizes sizes,
                          CheckLstmInputs(ctx, projected ? &ctx.input(kProjWeight) : nullptr));
  const int64_t rows = ctx.input(kLstmInput).shape[0];
  const char* const r = projected ? "Projection" : "Hidden";
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx.input(kR), r, {rows, sizes.width}));
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx.input(kCell), "Cell", {rows, sizes.size}));
  INTERP_RETURN_IF_ERROR(
      CheckInputShape(ctx.input(kBatchGate), "BatchGate", {rows, 4 * sizes.size}));
  INTERP_RETURN_IF_ERROR(
      CheckInputShape(ctx.input(kBatchCellPreAct), "BatchCellPreAct", {rows, sizes.size}));
  INTERP_RETURN_IF_ERROR(
      CheckInputShape(ctx.input(kRGrad), absl::StrCat(r, "@GRAD"), {rows, sizes.width}));
  if (projected) {
    INTERP_RETURN_IF_ERROR(
        CheckInputShape(ctx.input(kBatchHidden), "BatchHidden", {rows, sizes.size}));
    ctx.ShareShape(kProjWeight, kProjWeightGrad);
  }
  ctx.ShareShape(kLstmInput, kInputGrad);
  ctx.ShareShape(kLstmWeight, kWeightGrad);
  ctx.ShareShape(kLstmBias, kBiasGrad);
  INTERP_RETURN_IF_ERROR(ShareOptionalShape(ctx, kLstmH0, "H0", kH0Grad));
  return ShareOptionalShape(ctx, kLstmC0, "C0", kC0Grad);
}

struct LstmGradState : KernelState {
  StepOrderCache order;
};

// Divides the memory up. Elements: those of MemoryOf.
template <typename T>
void SetMemory(T* memory, int64_t rows, LstmGradientRun<T>& run) {
  const int64_t live = run.order.rows();
  const int64_t size = run.cell.size;
  run.gates_grad = memory;
  run.dr = run.gates_grad + rows * 4 * size;
  run.dc = run.dr + live * run.width;
  std::fill_n(run.dr, live * (run.width + size), T{0});
  run.projection.dh = run.dc + live * size;
  run.projection.sums = run.projection.dh + live * size;
}

template <typename T>
int64_t MemoryOf(const LstmGradientRun<T>& run, int64_t rows) {
  const int64_t size = run.cell.size;
  const int64_t state = run.order.rows() * (run.width + size);
  if (run.projection.weight == nullptr) return rows * 4 * size + state;
  return rows * (4 * size + run.width) + state + run.order.rows() * size;
}

// Sums of the gates' gradients times the state of the cell, before the step for the input and the
// forget gate, behind it for the output gate.
template <typename T>
void PeepholeGradients(int threads, const LstmGradientRun<T>& run, T* out) {
  const StepOrder& order = run.order;
  const int64_t size = run.cell.size;
  const auto add = [&](int64_t t, int64_t p, int64_t begin, int64_t end) {
    const T* const grad = run.gates_grad + (order.starts[t] + p) * 4 * size;
    const T* const c = run.cells.states + order.row(t, p) * size;
    for (int64_t j = begin; j < end; ++j) out[2 * size + j] += grad[3 * size + j] * c[j];
    const T* const before = run.cells.Row(t, p);
    if (before == nullptr) return;
    for (int64_t j = begin; j < end; ++j) out[j] += grad[size + j] * before[j];
    for (int64_t j = begin; j < end; ++j) out[size + j] += grad[2 * size + j] * before[j];
  };
  std::fill_n(out, 3 * size, T{0});
  ParallelFor(threads, size, GrainFor(3 * order.starts.back()), [&](int64_t begin, int64_t end) {
    for (int64_t t = 0; t < order.steps(); ++t) {
      for (int64_t p = 0; p < order.live(t); ++p) add(t, p, begin, end);
    }
  });
}

// The gradients that are products and sums over all steps.
template <typename T>
absl::Status ParameterGradients(KernelContext& ctx, const LstmGradientRun<T>& run) {
  const int64_t rows = run.order.starts.back();
  const int64_t size = run.cell.size;
  if (T* out = OutputOrNull<T>(ctx, kWeightGrad)) {
    const StatesBefore<T> before = {run.order, run.width, ctx.input(kR).data<T>(),
                                    InputOrNull<T>(ctx, kLstmH0)};
    INTERP_RETURN_IF_ERROR(RecurrentWeightGradient(ctx, before, run.gates_grad, 4 * size, out));
  }
  if (T* out = OutputOrNull<T>(ctx, kBiasGrad)) {
    SumRows(ctx.num_threads(), run.gates_grad, rows, 4 * size, out);
    if (run.cell.peepholes != nullptr) {
      PeepholeGradients(ctx.num_threads(), run, out + 4 * size);
    }
  }
  if (run.projection.weight == nullptr) return absl::OkStatus();
  T* const out = OutputOrNull<T>(ctx, kProjWeightGrad);
  if (out == nullptr) return absl::OkStatus();
  return WeightGradient(ctx, rows, ctx.input(kBatchHidden).data<T>(), size, run.projection.sums,
                        run.width, out);
}

template <typename T>
absl::Status LstmGrad(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<LstmAttrs>();
  const int64_t rows = ctx.input(kLstmInput).shape[0];
  const int64_t size = ctx.input(kLstmInput).shape[1] / 4;
  const int64_t width = ctx.input(kLstmWeight).shape[0];
  INTERP_ASSIGN_OR_RETURN(const Workspace weight,
                          PackTransposed(ctx, ctx.input(kLstmWeight).data<T>(), width, 4 * size));
  LstmProjectionGradient<T> projection = {.activation = attrs.projection,
                                          .clip = static_cast<T>(attrs.projection_clip),
                                          .r = ctx.input(kR).data<T>()};
  std::optional<Workspace> projection_weight;
  if (attrs.projected) {
    INTERP_ASSIGN_OR_RETURN(projection_weight,
                            PackTransposed(ctx, ctx.input(kProjWeight).data<T>(), size, width));
    projection.weight = projection_weight->template data<T>();
  }
  const LstmCell<T> cell = MakeLstmCell(attrs, size, ctx.input(kLstmBias).data<T>());
  const StepOrder& order =
      ctx.state<LstmGradState>().order.Get(ctx.input(kLstmInput).lod[0], attrs.reverse);
  const StatesBefore<T> cells = {order, size, ctx.input(kCell).data<T>(),
                                 InputOrNull<T>(ctx, kLstmC0)};
  LstmGradientRun<T> run = {order, cell, projection, cells, width};
  run.gates = ctx.input(kBatchGate).data<T>();
  run.active = ctx.input(kBatchCellPreAct).data<T>();
  run.r_grad = ctx.input(kRGrad).data<T>();
  run.weight = weight.data<T>();
  run.wants_first_state = ctx.has_output(kH0Grad);
  run.input_grad = OutputOrNull<T>(ctx, kInputGrad);
  INTERP_ASSIGN_OR_RETURN(const Workspace memory,
                          ctx.workspace(static_cast<size_t>(MemoryOf(run, rows)) * sizeof(T)));
  SetMemory(memory.data<T>(), rows, run);
  run.Run(ctx.num_threads());
  if (T* out = OutputOrNull<T>(ctx, kH0Grad)) {
    ScatterStates(order, run.dr, width, out);
  }
  if (T* out = OutputOrNull<T>(ctx, kC0Grad)) {
    ScatterStates(order, run.dc, size, out);
  }
  return ParameterGradients(ctx, run);
}

// The products of every row with the weights, and those that give the gradients of the weights.
int64_t Flops(const OpContext& ctx) {
  double per_row = static_cast<double>(ctx.input(kLstmWeight).numel());
  if (ctx.attrs<LstmAttrs>().projected) {
    per_row += static_cast<double>(ctx.input(kProjWeight).numel());
  }
  return ToFlops(4 * per_row * static_cast<double>(ctx.input(kLstmInput).shape[0]));
}

INTERP_REGISTER_OP(OpDef{
    .type = "lstm_grad",
    .inputs = {{"Input", kNoNeedBuffer},
               {"H0", kOptional},
               {"C0", kOptional},
               {"Weight"},
               {"Bias"},
               {"Hidden"},
               {"Cell"},
               {"BatchGate"},
               {"BatchCellPreAct"},
               {"Hidden@GRAD"}},
    .outputs = {{"Input@GRAD", kOptional},
                {"H0@GRAD", kOptional},
                {"C0@GRAD", kOptional},
                {"Weight@GRAD", kOptional},
                {"Bias@GRAD", kOptional}},
    .parse = ParseAttrs<LstmAttrs, ReadLstm>,
    .infer = InferLstmGrad,
    .kernels = {{DType::kFloat32, LstmGrad<float>}, {DType::kFloat64, LstmGrad<double>}},
    .flops = Flops,
});

INTERP_REGISTER_OP(OpDef{
    .type = "lstmp_grad",
    .inputs = {{"Input", kNoNeedBuffer},
               {"H0", kOptional},
               {"C0", kOptional},
               {"Weight"},
               {"Bias"},
               {"Projection"},
               {"Cell"},
               {"BatchGate"},
               {"BatchCellPreAct"},
               {"Projection@GRAD"},
               {"ProjWeight"},
               {"BatchHidden"}},
    .outputs = {{"Input@GRAD", kOptional},
                {"H0@GRAD", kOptional},
                {"C0@GRAD", kOptional},
                {"Weight@GRAD", kOptional},
                {"Bias@GRAD", kOptional},
                {"ProjWeight@GRAD", kOptional}},
    .parse = ParseAttrs<LstmAttrs, ReadLstmp>,
    .infer = InferLstmGrad,
    .kernels = {{DType::kFloat32, LstmGrad<float>}, {DType::kFloat64, LstmGrad<double>}},
    .flops = Flops,
});

}  // namespace
}  // namespace interp::recurrent
