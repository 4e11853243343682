// gru: gated recurrent units over the sequences of Input, which holds x W already.
//
//   [u r] = gate(Input[t] + h W + b)         W is the first 2 D D numbers of Weight, as [D, 2 D]
//   c = activation(Input[t] + (r h) V + b)   V the others, as [D, D]
//   h = (1 - u) h + u c, or u h + (1 - u) c in origin_mode
//
// Batch* outputs are in batch rows (step_order.h) and left out in test mode; only gradients read
// them. BatchGate holds activated gates. It has no LoD, see lstm.cc.
#include <optional>

#include "kernels/recurrent/gru_attrs.h"
#include "kernels/recurrent/gru_layer.h"
#include "kernels/recurrent/step_order.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/data_or_null.h"
#include "kernels/util/flops.h"
#include "kernels/util/gradient_op.h"

namespace interp::recurrent {
namespace {

constexpr int kInput = 0;
constexpr int kH0 = 1;
constexpr int kWeight = 2;
constexpr int kBias = 3;
constexpr int kHidden = 0;
constexpr int kBatchGate = 1;
constexpr int kBatchResetHiddenPrev = 2;
constexpr int kBatchHidden = 3;

absl::Status InferGru(InferContext& ctx) {
  const Tensor& input = ctx.input(kInput);
  INTERP_ASSIGN_OR_RETURN(const Offsets offsets, GateSequences(input, 3));
  const int64_t size = input.shape[1] / 3;
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx.input(kWeight), "Weight", {size, 3 * size}));
  INTERP_RETURN_IF_ERROR(CheckOptionalShape(ctx, kBias, "Bias", {1, 3 * size}));
  INTERP_RETURN_IF_ERROR(CheckOptionalShape(ctx, kH0, "H0", {SequenceCount(offsets), size}));
  const int64_t rows = input.shape[0];
  const int64_t kept = ctx.attrs<GruAttrs>().test ? 0 : rows;
  ctx.SetShape(kHidden, {rows, size});
  ctx.output(kHidden).lod = input.lod;
  ctx.SetShape(kBatchGate, {kept, 3 * size});
  ctx.SetShape(kBatchResetHiddenPrev, {kept, size});
  ctx.SetShape(kBatchHidden, {kept, size});
  return absl::OkStatus();
}

template <typename T>
struct GruState : KernelState {
  StepOrderCache order;
  PackedWeights<T> weight;
};

// The memory of a Batch* output, or null when it is not kept.
template <typename T>
T* Kept(const KernelContext& ctx, int slot) {
  Tensor* out = ctx.attrs<GruAttrs>().test ? nullptr : ctx.optional_output(slot);
  return DataOrNull<T>(out);
}

template <typename T>
void SetInputsAndOutputs(KernelContext& ctx, GruRun<T>& run) {
  run.input = ctx.input(kInput).data<T>();
  if (const Tensor* bias = ctx.optional_input(kBias)) run.bias = bias->data<T>();
  run.hidden = ctx.output(kHidden).mutable_data<T>();
  run.batch_gate = Kept<T>(ctx, kBatchGate);
  run.batch_reset = Kept<T>(ctx, kBatchResetHiddenPrev);
  run.batch_hidden = Kept<T>(ctx, kBatchHidden);
}

template <typename T>
absl::Status Gru(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<GruAttrs>();
  auto& state = ctx.state<GruState<T>>();
  const int64_t size = ctx.input(kWeight).shape[0];
  std::optional<Workspace> packed;
  INTERP_ASSIGN_OR_RETURN(const T* weight,
                          state.weight.Get(ctx, kWeight, GruCell<T>::Parts(size), packed));
  GruCell<T> cell = {size, attrs.gate, attrs.candidate, attrs.origin_mode};
  cell.SetWeights(weight);
  const StepOrder& order = state.order.Get(ctx.input(kInput).lod[0], attrs.reverse);
  GruRun<T> run = {order, cell};
  SetInputsAndOutputs(ctx, run);
  INTERP_ASSIGN_OR_RETURN(const Workspace memory, StartGru(ctx, ctx.optional_input(kH0), run));
  run.Run(ctx.num_threads());
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "gru",
    .inputs = {{"Input"}, {"H0", kOptional}, {"Weight", kMayBeUnaligned}, {"Bias", kOptional}},
    .outputs = {{"Hidden"},
                {"BatchGate", kOptional},
                {"BatchResetHiddenPrev", kOptional},
                {"BatchHidden", kOptional}},
    .parse = ParseAttrs<GruAttrs, ReadGru>,
    .infer = InferGru,
    .kernels = {{DType::kFloat32, Gru<float>}, {DType::kFloat64, Gru<double>}},
    .gradient = {.inputs = {"Input", "H0", "Bias", "Weight", "BatchGate", "BatchResetHiddenPrev",
                            "BatchHidden", "Hidden", "Hidden@GRAD"},
                 .outputs = {"H0@GRAD", "Input@GRAD", "Weight@GRAD", "Bias@GRAD"},
                 .make = AddTrainingGradient},
    .flops = ProductFlops<kInput, kWeight>,
});

}  // namespace
}  // namespace interp::recurrent
