// lstm, lstmp: a long short-term memory over the sequences of Input, which holds x W already.
//
//   [a i f o] = Input[t] + r W + b          W is Weight, b the first part of Bias
//   a = candidate(a), i = gate(i + p_i c), f = gate(f + p_f c)
//   c = clip(a i + f c), o = gate(o + p_o c), h = o cell(c)
//   r = h                                   lstm
//   r = clip(projection(h ProjWeight))      lstmp
//
// The peepholes p are the last part of Bias. In Paddle the projection's activation is
// cell_activation unless proj_activation is identity, whatever else proj_activation names.
//
// Batch* outputs are in batch rows (step_order.h) and left out in test mode; only gradients read
// them. BatchGate holds activated gates, BatchCellPreAct cell(c). Paddle gives BatchGate a LoD of
// steps, rows and sequences; here it has none, since a LoD is an index that is not checked again.
#include <optional>

#include "kernels/recurrent/lstm_attrs.h"
#include "kernels/recurrent/lstm_layer.h"
#include "kernels/recurrent/packed_weights.h"
#include "kernels/util/data_or_null.h"
#include "kernels/util/flops.h"
#include "kernels/util/gradient_op.h"

namespace interp::recurrent {
namespace {

constexpr int kInput = kLstmInput;
constexpr int kH0 = kLstmH0;
constexpr int kC0 = kLstmC0;
constexpr int kWeight = kLstmWeight;
constexpr int kBias = kLstmBias;
constexpr int kProjWeight = 5;  // lstmp
constexpr int kHidden = 0;      // Projection in lstmp
constexpr int kCell = 1;
constexpr int kBatchGate = 2;
constexpr int kBatchCellPreAct = 3;
constexpr int kBatchHidden = 4;  // lstmp
constexpr int kOrderedP0 = 5;    // lstmp

// Sets all outputs but those of lstmp alone.
void SetOutputs(InferContext& ctx, const LstmSizes& sizes) {
  const Tensor& input = ctx.input(kInput);
  const int64_t rows = input.shape[0];
  const int64_t kept = ctx.attrs<LstmAttrs>().test ? 0 : rows;
  ctx.SetShape(kHidden, {rows, sizes.width});
  ctx.output(kHidden).lod = input.lod;
  ctx.SetShape(kCell, {rows, sizes.size});
  if (Tensor* cell = ctx.optional_output(kCell)) cell->lod = input.lod;
  ctx.SetShape(kBatchGate, {kept, 4 * sizes.size});
  ctx.SetShape(kBatchCellPreAct, {kept, sizes.size});
}

absl::Status InferLstm(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const LstmSizes sizes, CheckLstmInputs(ctx, /*projection=*/nullptr));
  SetOutputs(ctx, sizes);
  return absl::OkStatus();
}

absl::Status InferLstmp(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const LstmSizes sizes, CheckLstmInputs(ctx, &ctx.input(kProjWeight)));
  // Programs with this output are older than the width of H0 that is read here.
  if (ctx.has_output(kOrderedP0) && ctx.has_input(kH0)) {
    return Unimplemented("output 'OrderedP0' together with input 'H0' is not supported");
  }
  ctx.SetShape(kOrderedP0, {0, sizes.width});
  const int64_t rows = ctx.attrs<LstmAttrs>().test ? 0 : ctx.input(kInput).shape[0];
  ctx.SetShape(kBatchHidden, {rows, sizes.size});
  SetOutputs(ctx, sizes);
  return absl::OkStatus();
}

template <typename T>
struct LstmState : KernelState {
  StepOrderCache order;
  PackedWeights<T> weight;
  PackedWeights<T> projection;
};

// The memory of a Batch* output, or null when it is not kept.
template <typename T>
T* Kept(const KernelContext& ctx, int slot) {
  Tensor* out = ctx.attrs<LstmAttrs>().test ? nullptr : ctx.optional_output(slot);
  return DataOrNull<T>(out);
}

template <typename T>
void SetInputsAndOutputs(KernelContext& ctx, LstmRun<T>& run) {
  run.input = ctx.input(kInput).data<T>();
  run.bias = ctx.input(kBias).data<T>();
  run.r_out = ctx.output(kHidden).mutable_data<T>();
  if (Tensor* cell = ctx.optional_output(kCell)) run.c_out = cell->mutable_data<T>();
  run.batch_gate = Kept<T>(ctx, kBatchGate);
  run.batch_active = Kept<T>(ctx, kBatchCellPreAct);
  if (run.projection.weight != nullptr) run.batch_hidden = Kept<T>(ctx, kBatchHidden);
}

// Elements of state and scratch memory per sequence.
template <typename T>
int64_t MemoryPerRow(const LstmRun<T>& run) {
  const int64_t h = run.projection.weight == nullptr ? 0 : run.cell.size;
  const int64_t gates = run.batch_gate == nullptr ? 4 * run.cell.size : 0;
  return run.width + run.cell.size + h + gates;
}

// Divides the memory up and puts the states before step 0 there.
template <typename T>
void SetState(const KernelContext& ctx, T* memory, LstmRun<T>& run) {
  const int64_t rows = run.order.rows();
  const int64_t size = run.cell.size;
  run.r = memory;
  run.c = run.r + rows * run.width;
  run.projection.h = run.c + rows * size;
  run.gates = run.projection.h + (run.projection.weight == nullptr ? 0 : rows * size);
  if (const Tensor* h0 = ctx.optional_input(kH0)) {
    run.has_state = true;
    GatherStates(run.order, h0->data<T>(), run.width, run.r);
  }
  if (const Tensor* c0 = ctx.optional_input(kC0)) {
    GatherStates(run.order, c0->data<T>(), size, run.c);
  } else {
    std::fill_n(run.c, rows * size, T{0});
  }
}

template <typename T>
absl::Status Lstm(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<LstmAttrs>();
  auto& state = ctx.state<LstmState<T>>();
  const int64_t size = ctx.input(kInput).shape[1] / 4;
  const int64_t width = ctx.input(kWeight).shape[0];
  std::optional<Workspace> packed[2];
  INTERP_ASSIGN_OR_RETURN(const T* weight,
                          state.weight.Get(ctx, kWeight, {{{width, 4 * size}}}, packed[0]));
  LstmProjection<T> projection = {.activation = attrs.projection,
                                  .clip = static_cast<T>(attrs.projection_clip)};
  if (attrs.projected) {
    INTERP_ASSIGN_OR_RETURN(projection.weight,
                            state.projection.Get(ctx, kProjWeight, {{{size, width}}}, packed[1]));
  }
  const LstmCell<T> cell = MakeLstmCell(attrs, size, ctx.input(kBias).data<T>());
  const StepOrder& order = state.order.Get(ctx.input(kInput).lod[0], attrs.reverse);
  LstmRun<T> run = {order, cell, projection, width};
  run.weight = weight;
  SetInputsAndOutputs(ctx, run);
  const int64_t elements = order.rows() * MemoryPerRow(run);
  INTERP_ASSIGN_OR_RETURN(const Workspace memory,
                          ctx.workspace(static_cast<size_t>(elements) * sizeof(T)));
  SetState(ctx, memory.data<T>(), run);
  run.Run(ctx.num_threads());
  return absl::OkStatus();
}

// The products of every row with the weights.
int64_t Flops(const OpContext& ctx) {
  double per_row = static_cast<double>(ctx.input(kWeight).numel());
  if (ctx.attrs<LstmAttrs>().projected) {
    per_row += static_cast<double>(ctx.input(kProjWeight).numel());
  }
  return ToFlops(2 * per_row * static_cast<double>(ctx.input(kInput).shape[0]));
}

INTERP_REGISTER_OP(OpDef{
    .type = "lstm",
    .inputs =
        {{"Input"}, {"H0", kOptional}, {"C0", kOptional}, {"Weight", kMayBeUnaligned}, {"Bias"}},
    .outputs =
        {{"Hidden"}, {"Cell", kOptional}, {"BatchGate", kOptional}, {"BatchCellPreAct", kOptional}},
    .parse = ParseAttrs<LstmAttrs, ReadLstm>,
    .infer = InferLstm,
    .kernels = {{DType::kFloat32, Lstm<float>}, {DType::kFloat64, Lstm<double>}},
    .gradient = {.inputs = {"Input", "H0", "C0", "Weight", "Bias", "Hidden", "Cell", "BatchGate",
                            "BatchCellPreAct", "Hidden@GRAD"},
                 .outputs = {"Input@GRAD", "H0@GRAD", "C0@GRAD", "Weight@GRAD", "Bias@GRAD"},
                 .make = AddTrainingGradient},
    .flops = Flops,
});

INTERP_REGISTER_OP(OpDef{
    .type = "lstmp",
    .inputs = {{"Input"},
               {"H0", kOptional},
               {"C0", kOptional},
               {"Weight", kMayBeUnaligned},
               {"Bias"},
               {"ProjWeight", kMayBeUnaligned}},
    .outputs = {{"Projection"},
                {"Cell", kOptional},
                {"BatchGate", kOptional},
                {"BatchCellPreAct", kOptional},
                {"BatchHidden", kOptional},
                {"OrderedP0", kOptional}},
    .parse = ParseAttrs<LstmAttrs, ReadLstmp>,
    .infer = InferLstmp,
    .kernels = {{DType::kFloat32, Lstm<float>}, {DType::kFloat64, Lstm<double>}},
    .gradient = {.inputs = {"Input", "H0", "C0", "Weight", "ProjWeight", "Bias", "Projection",
                            "Cell", "BatchGate", "BatchCellPreAct", "BatchHidden",
                            "Projection@GRAD"},
                 .outputs = {"Input@GRAD", "H0@GRAD", "C0@GRAD", "Weight@GRAD", "ProjWeight@GRAD",
                             "Bias@GRAD"},
                 .make = AddTrainingGradient},
    .flops = Flops,
});

}  // namespace
}  // namespace interp::recurrent
