// fusion_gru: gru with the product of its input inside, Hidden = gru(X WeightX, H0, WeightH, Bias),
// as Paddle's inference passes make it. The outputs that only its kernel needs are left empty.
#include <optional>

#include "core/op_def.h"
#include "kernels/recurrent/gru_attrs.h"
#include "kernels/recurrent/gru_layer.h"
#include "kernels/recurrent/input_product.h"
#include "kernels/recurrent/packed_weights.h"
#include "kernels/sequence/lod.h"
#include "kernels/util/check_shape.h"

namespace interp::recurrent {
namespace {

constexpr int kX = 0;
constexpr int kH0 = 1;
constexpr int kWeightX = 2;
constexpr int kWeightH = 3;
constexpr int kBias = 4;
constexpr int kHidden = 4;

absl::Status Infer(InferContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const Shape& weight = ctx.input(kWeightH).shape;
  if (x.shape.rank() != 2) {
    return InvalidArgument("input 'X' has shape ", ToString(x.shape), ", expected a matrix");
  }
  INTERP_ASSIGN_OR_RETURN(const Offsets offsets, OnlyLevelOffsets(x, "X"));
  if (weight.rank() != 2 || weight[0] < 1 || weight[1] != 3 * weight[0]) {
    return InvalidArgument("input 'WeightH' has shape ", ToString(weight), ", expected [D,3 D]");
  }
  const int64_t size = weight[0];
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx.input(kWeightX), "WeightX", {x.shape[1], 3 * size}));
  INTERP_RETURN_IF_ERROR(CheckOptionalShape(ctx, kBias, "Bias", {1, 3 * size}));
  INTERP_RETURN_IF_ERROR(CheckOptionalShape(ctx, kH0, "H0", {SequenceCount(offsets), size}));
  for (int output = 0; output < kHidden; ++output) ctx.SetShape(output, {0});
  ctx.SetShape(kHidden, {x.shape[0], size});
  ctx.output(kHidden).lod = x.lod;
  return absl::OkStatus();
}

template <typename T>
struct FusionGruState : nn::ProductState {
  StepOrderCache order;
  PackedWeights<T> weight;
};

template <typename T>
absl::Status FusionGru(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<GruAttrs>();
  auto& state = ctx.state<FusionGruState<T>>();
  const int64_t size = ctx.input(kWeightH).shape[0];
  std::optional<Workspace> packed;
  std::optional<Workspace> projected;
  INTERP_ASSIGN_OR_RETURN(const T* weight,
                          state.weight.Get(ctx, kWeightH, GruCell<T>::Parts(size), packed));
  GruCell<T> cell = {size, attrs.gate, attrs.candidate, attrs.origin_mode};
  cell.SetWeights(weight);
  const StepOrder& order = state.order.Get(ctx.input(kX).lod[0], attrs.reverse);
  GruRun<T> run = {order, cell};
  INTERP_ASSIGN_OR_RETURN(run.input, InputProduct<T>(ctx, kX, kWeightX, projected));
  if (const Tensor* bias = ctx.optional_input(kBias)) run.bias = bias->data<T>();
  run.hidden = ctx.output(kHidden).mutable_data<T>();
  INTERP_ASSIGN_OR_RETURN(const Workspace memory, StartGru(ctx, ctx.optional_input(kH0), run));
  run.Run(ctx.num_threads());
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "fusion_gru",
    .inputs = {{"X"}, {"H0", kOptional}, {"WeightX"}, {"WeightH"}, {"Bias", kOptional}},
    .outputs = {{"ReorderedH0", kOptional},
                {"XX", kOptional},
                {"BatchedInput", kOptional},
                {"BatchedOut", kOptional},
                {"Hidden"}},
    .parse = ParseAttrs<GruAttrs, ReadGru>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, FusionGru<float>}, {DType::kFloat64, FusionGru<double>}},
});

}  // namespace
}  // namespace interp::recurrent
