// gru_grad: from the last step to the first, each step with its gates at once; then the gradients
// of weights and biases as products and sums over all steps. The formulas are in gru.cc.
#include "kernels/recurrent/gru_attrs.h"
#include "kernels/recurrent/gru_gradient.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/flops.h"
#include "kernels/util/gradient_shape.h"

namespace interp::recurrent {
namespace {

constexpr int kInput = 0;
constexpr int kH0 = 1;
constexpr int kWeight = 2;
constexpr int kBatchGate = 4;
constexpr int kBatchResetHiddenPrev = 5;
constexpr int kHidden = 7;
constexpr int kHiddenGrad = 8;
constexpr int kInputGrad = 0;
constexpr int kH0Grad = 1;
constexpr int kWeightGrad = 2;
constexpr int kBiasGrad = 3;

absl::Status InferGruGrad(InferContext& ctx) {
  const Tensor& input = ctx.input(kInput);
  INTERP_ASSIGN_OR_RETURN(const Offsets offsets, GateSequences(input, 3));
  const int64_t rows = input.shape[0];
  const int64_t size = input.shape[1] / 3;
  const Shape state = {rows, size};
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx.input(kWeight), "Weight", {size, 3 * size}));
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx.input(kBatchGate), "BatchGate", input.shape));
  INTERP_RETURN_IF_ERROR(
      CheckInputShape(ctx.input(kBatchResetHiddenPrev), "BatchResetHiddenPrev", state));
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx.input(kHidden), "Hidden", state));
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx.input(kHiddenGrad), "Hidden@GRAD", state));
  INTERP_RETURN_IF_ERROR(CheckOptionalShape(ctx, kH0, "H0", {SequenceCount(offsets), size}));
  INTERP_RETURN_IF_ERROR(ShareOptionalShape(ctx, kH0, "H0", kH0Grad));
  ctx.ShareShape(kInput, kInputGrad);
  ctx.ShareShape(kWeight, kWeightGrad);
  ctx.SetShape(kBiasGrad, {1, 3 * size});
  return absl::OkStatus();
}

struct GruGradState : KernelState {
  StepOrderCache order;
};

// One run. Sequences are independent, so threads share them out.
template <typename T>
struct GruGradientRun {
  const StepOrder& order;
  const GruCellGradient<T>& cell;
  StatesBefore<T> before;
  const T* gates = nullptr;   // [T, 3 size], batch rows
  const T* h_grad = nullptr;  // [T, size], in the order of the input
  // By sorted sequence.
  T* dh = nullptr;          // [rows, size]; 0 before the run, then the gradient of H0
  T* reset_grad = nullptr;  // [rows, size], scratch
  // Results.
  GruGateGradients<T> grad = {};  // batch rows
  T* input_grad = nullptr;        // [T, 3 size], in the order of the input; may be null

  void Run(int threads) const {
    ForEachStepBack(order, threads,
                    [this](int64_t t, int64_t begin, int64_t count) { Step(t, begin, count); });
  }

 private:
  void Step(int64_t t, int64_t begin, int64_t count) const {
    const int64_t size = cell.size;
    const int64_t batch_row = order.starts[t] + begin;
    T* const state = dh + begin * size;
    AddOfStep(order, t, begin, count, h_grad, size, state);
    cell.StepBack(
        count, [&](int64_t i) { return before.Row(t, begin + i); }, gates + batch_row * 3 * size,
        state, reset_grad + begin * size, grad.From(batch_row, size));
    if (input_grad == nullptr) return;
    for (int64_t i = 0; i < count; ++i) {
      grad.CopyRow(batch_row + i, size, input_grad + order.row(t, begin + i) * 3 * size);
    }
  }
};

template <typename T>
absl::Status ParameterGradients(KernelContext& ctx, const GruGradientRun<T>& run) {
  const int64_t rows = run.order.starts.back();
  const int64_t size = run.cell.size;
  if (Tensor* bias = ctx.optional_output(kBiasGrad)) {
    GruBiasGradient(ctx.num_threads(), run.grad, rows, size, bias->mutable_data<T>());
  }
  Tensor* const weight = ctx.optional_output(kWeightGrad);
  if (weight == nullptr) return absl::OkStatus();
  T* const out = weight->mutable_data<T>();
  INTERP_RETURN_IF_ERROR(RecurrentWeightGradient(ctx, run.before, run.grad.gates, 2 * size, out));
  return WeightGradient(ctx, rows, ctx.input(kBatchResetHiddenPrev).data<T>(), size,
                        run.grad.candidate, size, out + 2 * size * size);
}

template <typename T>
absl::Status GruGrad(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<GruAttrs>();
  const int64_t rows = ctx.input(kInput).shape[0];
  const int64_t size = ctx.input(kWeight).shape[0];
  INTERP_ASSIGN_OR_RETURN(const auto weights,
                          GruTransposedWeights<T>::Pack(ctx, ctx.input(kWeight).data<T>(), size));
  const GruCellGradient<T> cell = weights.Cell(attrs, size);
  const StepOrder& order =
      ctx.state<GruGradState>().order.Get(ctx.input(kInput).lod[0], attrs.reverse);
  GruGradientRun<T> run = {order, cell, {order, size, ctx.input(kHidden).data<T>()}};
  if (const Tensor* h0 = ctx.optional_input(kH0)) run.before.initial = h0->data<T>();
  run.gates = ctx.input(kBatchGate).data<T>();
  run.h_grad = ctx.input(kHiddenGrad).data<T>();
  if (Tensor* out = ctx.optional_output(kInputGrad)) run.input_grad = out->mutable_data<T>();
  const int64_t elements = (3 * rows + 2 * order.rows()) * size;
  INTERP_ASSIGN_OR_RETURN(const Workspace memory,
                          ctx.workspace(static_cast<size_t>(elements) * sizeof(T)));
  run.grad.gates = memory.data<T>();
  run.grad.candidate = run.grad.gates + rows * 2 * size;
  run.dh = run.grad.candidate + rows * size;
  run.reset_grad = run.dh + order.rows() * size;
  std::fill_n(run.dh, order.rows() * size, T{0});
  run.Run(ctx.num_threads());
  if (Tensor* out = ctx.optional_output(kH0Grad)) {
    ScatterStates(order, run.dh, size, out->mutable_data<T>());
  }
  return ParameterGradients(ctx, run);
}

INTERP_REGISTER_OP(OpDef{
    .type = "gru_grad",
    .inputs = {{"Input", kNoNeedBuffer},
               {"H0", kOptional},
               {"Weight"},
               {"Bias", kOptional | kNoNeedBuffer},
               {"BatchGate"},
               {"BatchResetHiddenPrev"},
               {"BatchHidden", kOptional | kNoNeedBuffer},
               {"Hidden"},
               {"Hidden@GRAD"}},
    .outputs = {{"Input@GRAD", kOptional},
                {"H0@GRAD", kOptional},
                {"Weight@GRAD", kOptional},
                {"Bias@GRAD", kOptional}},
    .parse = ParseAttrs<GruAttrs, ReadGru>,
    .infer = InferGruGrad,
    .kernels = {{DType::kFloat32, GruGrad<float>}, {DType::kFloat64, GruGrad<double>}},
    .flops = ProductFlops<kInput, kWeight, 2>,
});

}  // namespace
}  // namespace interp::recurrent
