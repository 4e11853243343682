// gru_unit_grad: one step of gru_grad (see there) for a batch of states.
#include "kernels/recurrent/gru_attrs.h"
#include "kernels/recurrent/gru_gradient.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/flops.h"

namespace interp::recurrent {
namespace {

constexpr int kInput = kGruUnitInput;
constexpr int kHiddenPrev = kGruUnitHiddenPrev;
constexpr int kWeight = kGruUnitWeight;
constexpr int kGate = 4;
constexpr int kResetHiddenPrev = 5;
constexpr int kHiddenGrad = 6;
constexpr int kInputGrad = 0;
constexpr int kHiddenPrevGrad = 1;
constexpr int kWeightGrad = 2;
constexpr int kBiasGrad = 3;

absl::Status InferGruUnitGrad(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape state, CheckGruUnitInputs(ctx));
  const Shape& gates = ctx.input(kInput).shape;
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx.input(kGate), "Gate", gates));
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx.input(kResetHiddenPrev), "ResetHiddenPrev", state));
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx.input(kHiddenGrad), "Hidden@GRAD", state));
  ctx.SetShape(kInputGrad, ctx.input(kInput).shape);
  ctx.SetShape(kHiddenPrevGrad, ctx.input(kHiddenPrev).shape);
  ctx.SetShape(kWeightGrad, ctx.input(kWeight).shape);
  ctx.SetShape(kBiasGrad, {1, gates[1]});
  return absl::OkStatus();
}

// Steps back all rows. `dh` and `reset_grad` are [batch, size].
template <typename T>
void StepBackRows(KernelContext& ctx, const GruCellGradient<T>& cell, T* dh, T* reset_grad,
                  const GruGateGradients<T>& grad) {
  const int64_t size = cell.size;
  const int64_t batch = ctx.input(kHiddenPrev).shape[0];
  const T* const h = ctx.input(kHiddenPrev).data<T>();
  const T* const gates = ctx.input(kGate).data<T>();
  Tensor* const input_grad = ctx.optional_output(kInputGrad);
  std::copy_n(ctx.input(kHiddenGrad).data<T>(), batch * size, dh);
  constexpr int64_t kGrain = 4;  // rows; products of fewer wait for memory
  ParallelFor(ctx.num_threads(), batch, kGrain, [&](int64_t begin, int64_t end) {
    cell.StepBack(
        end - begin, [&](int64_t i) { return h + (begin + i) * size; }, gates + begin * 3 * size,
        dh + begin * size, reset_grad + begin * size, grad.From(begin, size));
    if (input_grad == nullptr) return;
    for (int64_t i = begin; i < end; ++i) {
      grad.CopyRow(i, size, input_grad->mutable_data<T>() + i * 3 * size);
    }
  });
}

template <typename T>
absl::Status GruUnitGrad(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<GruAttrs>();
  const int64_t batch = ctx.input(kHiddenPrev).shape[0];
  const int64_t size = ctx.input(kHiddenPrev).shape[1];
  INTERP_ASSIGN_OR_RETURN(const auto weights,
                          GruTransposedWeights<T>::Pack(ctx, ctx.input(kWeight).data<T>(), size));
  const GruCellGradient<T> cell = weights.Cell(attrs, size);
  INTERP_ASSIGN_OR_RETURN(const Workspace memory,
                          ctx.workspace(static_cast<size_t>(batch * 5 * size) * sizeof(T)));
  const GruGateGradients<T> grad = {memory.data<T>(), memory.data<T>() + batch * 2 * size};
  T* const reset_grad = grad.candidate + batch * size;
  Tensor* const h_grad = ctx.optional_output(kHiddenPrevGrad);
  T* const dh = h_grad != nullptr ? h_grad->mutable_data<T>() : reset_grad + batch * size;
  StepBackRows(ctx, cell, dh, reset_grad, grad);
  if (Tensor* bias = ctx.optional_output(kBiasGrad)) {
    GruBiasGradient(ctx.num_threads(), grad, batch, size, bias->mutable_data<T>());
  }
  Tensor* const weight = ctx.optional_output(kWeightGrad);
  if (weight == nullptr) return absl::OkStatus();
  T* const out = weight->mutable_data<T>();
  INTERP_RETURN_IF_ERROR(WeightGradient(ctx, batch, ctx.input(kHiddenPrev).data<T>(), size,
                                        grad.gates, 2 * size, out));
  return WeightGradient(ctx, batch, ctx.input(kResetHiddenPrev).data<T>(), size, grad.candidate,
                        size, out + 2 * size * size);
}

INTERP_REGISTER_OP(OpDef{
    .type = "gru_unit_grad",
    .inputs = {{"Input", kNoNeedBuffer},
               {"HiddenPrev"},
               {"Weight"},
               {"Bias", kOptional | kNoNeedBuffer},
               {"Gate"},
               {"ResetHiddenPrev"},
               {"Hidden@GRAD"}},
    .outputs = {{"Input@GRAD", kOptional},
                {"HiddenPrev@GRAD", kOptional},
                {"Weight@GRAD", kOptional},
                {"Bias@GRAD", kOptional}},
    .parse = ParseAttrs<GruAttrs, ReadGruUnit>,
    .infer = InferGruUnitGrad,
    .kernels = {{DType::kFloat32, GruUnitGrad<float>}, {DType::kFloat64, GruUnitGrad<double>}},
    .flops = ProductFlops<kHiddenPrev, kWeight, 2>,
});

}  // namespace
}  // namespace interp::recurrent
