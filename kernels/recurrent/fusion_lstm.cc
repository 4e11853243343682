// fusion_lstm: lstm with the product of its input inside, (Hidden, Cell) = lstm(X WeightX, H0, C0,
// WeightH, Bias), as Paddle's inference passes make it. The outputs that only its kernel needs are
// left empty.
#include <algorithm>
#include <optional>

#include "core/op_def.h"
#include "kernels/recurrent/check_shape.h"
#include "kernels/recurrent/input_product.h"
#include "kernels/recurrent/lstm_attrs.h"
#include "kernels/recurrent/lstm_layer.h"
#include "kernels/recurrent/packed_weights.h"
#include "kernels/sequence/lod.h"

namespace interp::recurrent {
namespace {

constexpr int kX = 0;
constexpr int kWeightX = 1;
constexpr int kWeightH = 2;
constexpr int kBias = 3;
constexpr int kH0 = 4;
constexpr int kC0 = 5;
constexpr int kHidden = 0;
constexpr int kCell = 1;
constexpr int kOutputs = 9;

absl::Status CheckStates(const InferContext& ctx, const Shape& expected) {
  const Tensor* const h0 = ctx.optional_input(kH0);
  const Tensor* const c0 = ctx.optional_input(kC0);
  if ((h0 == nullptr) != (c0 == nullptr)) {
    return InvalidArgument("expected both of 'H0' and 'C0', or none");
  }
  if (h0 == nullptr) return absl::OkStatus();
  INTERP_RETURN_IF_ERROR(CheckInputShape(*h0, "H0", expected));
  return CheckInputShape(*c0, "C0", expected);
}

absl::Status Infer(InferContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const Shape& weight = ctx.input(kWeightH).shape;
  if (x.shape.rank() != 2) {
    return InvalidArgument("input 'X' has shape ", ToString(x.shape), ", expected a matrix");
  }
  INTERP_ASSIGN_OR_RETURN(const Offsets offsets, OnlyLevelOffsets(x, "X"));
  if (weight.rank() != 2 || weight[0] < 1 || weight[1] != 4 * weight[0]) {
    return InvalidArgument("input 'WeightH' has shape ", ToString(weight), ", expected [D,4 D]");
  }
  const int64_t size = weight[0];
  const int64_t biases = ctx.attrs<LstmAttrs>().peepholes ? 7 : 4;
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx.input(kWeightX), "WeightX", {x.shape[1], 4 * size}));
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx.input(kBias), "Bias", {1, biases * size}));
  INTERP_RETURN_IF_ERROR(CheckStates(ctx, {SequenceCount(offsets), size}));
  for (int output = 0; output < kOutputs; ++output) ctx.SetShape(output, {0});
  for (const int output : {kHidden, kCell}) {
    ctx.SetShape(output, {x.shape[0], size});
    if (Tensor* out = ctx.optional_output(output)) out->lod = x.lod;
  }
  return absl::OkStatus();
}

template <typename T>
struct FusionLstmState : nn::ProductState {
  StepOrderCache order;
  PackedWeights<T> weight;
};

template <typename T>
absl::Status FusionLstm(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<LstmAttrs>();
  auto& state = ctx.state<FusionLstmState<T>>();
  const int64_t size = ctx.input(kWeightH).shape[0];
  std::optional<Workspace> packed;
  std::optional<Workspace> projected;
  const LstmCell<T> cell = MakeLstmCell(attrs, size, ctx.input(kBias).data<T>());
  const StepOrder& order = state.order.Get(ctx.input(kX).lod[0], attrs.reverse);
  LstmRun<T> run = {order, cell, {}, size};
  INTERP_ASSIGN_OR_RETURN(run.weight,
                          state.weight.Get(ctx, kWeightH, {{{size, 4 * size}}}, packed));
  INTERP_ASSIGN_OR_RETURN(run.input, InputProduct<T>(ctx, kX, kWeightX, projected));
  run.bias = ctx.input(kBias).data<T>();
  run.r_out = ctx.output(kHidden).mutable_data<T>();
  if (Tensor* out = ctx.optional_output(kCell)) run.c_out = out->mutable_data<T>();
  const int64_t rows = order.rows();
  INTERP_ASSIGN_OR_RETURN(const Workspace memory,
                          ctx.workspace(static_cast<size_t>(rows * 6 * size) * sizeof(T)));
  run.r = memory.data<T>();
  run.c = run.r + rows * size;
  run.gates = run.c + rows * size;
  std::fill_n(run.c, rows * size, T{0});
  if (const Tensor* h0 = ctx.optional_input(kH0)) {
    run.has_state = true;
    GatherStates(order, h0->data<T>(), size, run.r);
    GatherStates(order, ctx.input(kC0).data<T>(), size, run.c);
  }
  run.Run(ctx.num_threads());
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "fusion_lstm",
    .inputs = {{"X"}, {"WeightX"}, {"WeightH"}, {"Bias"}, {"H0", kOptional}, {"C0", kOptional}},
    .outputs = {{"Hidden"},
                {"Cell", kOptional},
                {"XX", kOptional},
                {"BatchedInput", kOptional},
                {"BatchedHidden", kOptional},
                {"BatchedCell", kOptional},
                {"ReorderedH0", kOptional},
                {"ReorderedC0", kOptional},
                {"CheckedCell", kOptional}},
    .parse = ParseAttrs<LstmAttrs, ReadLstm>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, FusionLstm<float>}, {DType::kFloat64, FusionLstm<double>}},
});

}  // namespace
}  // namespace interp::recurrent
