// fusion_lstm: lstm with the product of its input inside, (Hidden, Cell) = lstm(X WeightX, H0, C0,
// WeightH, Bias), as Paddle's inference passes make it. The outputs that only its kernel needs are
// left empty.
// fused_embedding_fc_lstm: the same with the rows of Embeddings that Ids name in place of X
// WeightX; they have all of the bias but the peepholes already.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/op_def.h"
#include "kernels/recurrent/input_product.h"
#include "kernels/recurrent/lstm_attrs.h"
#include "kernels/recurrent/lstm_layer.h"
#include "kernels/recurrent/packed_weights.h"
#include "kernels/sequence/lod.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/indices.h"
#include "kernels/util/shape_args.h"

namespace interp::recurrent {
namespace {

constexpr int kX = 0;        // Ids
constexpr int kWeightX = 1;  // Embeddings
constexpr int kWeightH = 2;
constexpr int kBias = 3;
constexpr int kH0 = 4;
constexpr int kC0 = 5;
constexpr int kHidden = 0;
constexpr int kCell = 1;
constexpr int kOutputs = 9;

absl::Status CheckStates(const InferContext& ctx, const Shape& expected) {
  if (ctx.has_input(kH0) != ctx.has_input(kC0)) {
    return InvalidArgument("expected both of 'H0' and 'C0', or none");
  }
  INTERP_RETURN_IF_ERROR(CheckOptionalShape(ctx, kH0, "H0", expected));
  return CheckOptionalShape(ctx, kC0, "C0", expected);
}

// All but the inputs of the gates; X, or what stands for it, is called `name`.
absl::Status InferSteps(InferContext& ctx, absl::string_view name) {
  const Tensor& x = ctx.input(kX);
  const Shape& weight = ctx.input(kWeightH).shape;
  INTERP_ASSIGN_OR_RETURN(const Offsets offsets, OnlyLevelOffsets(x, name));
  if (weight.rank() != 2 || weight[0] < 1 || weight[1] != 4 * weight[0]) {
    return InvalidArgument("input 'WeightH' has shape ", ToString(weight), ", expected [D,4 D]");
  }
  const int64_t size = weight[0];
  const int64_t biases = ctx.attrs<LstmAttrs>().peepholes ? 7 : 4;
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx.input(kBias), "Bias", {1, biases * size}));
  INTERP_RETURN_IF_ERROR(CheckStates(ctx, {SequenceCount(offsets), size}));
  for (int output = 0; output < kOutputs; ++output) ctx.SetShape(output, {0});
  for (const int output : {kHidden, kCell}) {
    ctx.SetShape(output, {x.shape[0], size});
    if (Tensor* out = ctx.optional_output(output)) out->lod = x.lod;
  }
  return absl::OkStatus();
}

absl::Status Infer(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  if (x.rank() != 2) {
    return InvalidArgument("input 'X' has shape ", ToString(x), ", expected a matrix");
  }
  INTERP_RETURN_IF_ERROR(InferSteps(ctx, "X"));
  return CheckInputShape(ctx.input(kWeightX), "WeightX", {x[1], ctx.input(kWeightH).shape[1]});
}

absl::Status InferOfIds(InferContext& ctx) {
  const Shape& ids = ctx.input(kX).shape;
  if (ids.rank() != 2 || ids[1] != 1) {
    return InvalidArgument("input 'Ids' has shape ", ToString(ids), ", expected [rows,1]");
  }
  INTERP_RETURN_IF_ERROR(InferSteps(ctx, "Ids"));
  const Shape& table = ctx.input(kWeightX).shape;
  const int64_t width = ctx.input(kWeightH).shape[1];
  if (table.rank() == 2 && table[1] == width) return absl::OkStatus();
  return InvalidArgument("input 'Embeddings' has shape ", ToString(table), ", expected [rows,",
                         width, "]");
}

template <typename T>
struct FusionLstmState : nn::ProductState {
  StepOrderCache order;
  PackedWeights<T> weight;
};

// Runs over `input`, the inputs of the gates, to which `bias` is added.
template <typename T>
absl::Status RunSteps(KernelContext& ctx, const T* input, const T* bias) {
  const auto& attrs = ctx.attrs<LstmAttrs>();
  auto& state = ctx.state<FusionLstmState<T>>();
  const int64_t size = ctx.input(kWeightH).shape[0];
  std::optional<Workspace> packed;
  const LstmCell<T> cell = MakeLstmCell(attrs, size, ctx.input(kBias).data<T>());
  const StepOrder& order = state.order.Get(ctx.input(kX).lod[0], attrs.reverse);
  LstmRun<T> run = {order, cell, {}, size};
  INTERP_ASSIGN_OR_RETURN(run.weight,
                          state.weight.Get(ctx, kWeightH, {{{size, 4 * size}}}, packed));
  run.input = input;
  run.bias = bias;
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

template <typename T>
absl::Status FusionLstm(KernelContext& ctx) {
  ctx.state<FusionLstmState<T>>();  // also that of the product
  std::optional<Workspace> projected;
  INTERP_ASSIGN_OR_RETURN(const T* const input, InputProduct<T>(ctx, kX, kWeightX, projected));
  return RunSteps(ctx, input, ctx.input(kBias).data<T>());
}

template <typename T>
absl::Status EmbeddingLstm(KernelContext& ctx) {
  const Tensor& ids = ctx.input(kX);
  const Tensor& table = ctx.input(kWeightX);
  const int64_t width = table.shape[1];
  INTERP_ASSIGN_OR_RETURN(const int64_t bytes,
                          CheckedProduct(ids.numel() + 1, width * static_cast<int64_t>(sizeof(T))));
  INTERP_ASSIGN_OR_RETURN(const Workspace rows, ctx.workspace(static_cast<size_t>(bytes)));
  const RowBlocks blocks = {1, table.shape[0], width * static_cast<int64_t>(sizeof(T))};
  INTERP_RETURN_IF_ERROR(WithIndices(ids, "Ids", [&](const auto* values) {
    INTERP_RETURN_IF_ERROR(CheckIndices(values, ids.numel(), table.shape[0], "Ids"));
    GatherRows(ctx.num_threads(), blocks, table.data<T>(), values, ids.numel(),
               rows.template data<T>());
    return absl::OkStatus();
  }));
  T* const none = rows.template data<T>() + ids.numel() * width;
  std::fill_n(none, width, T{0});
  return RunSteps<T>(ctx, rows.template data<T>(), none);
}

OpDef LstmDef(absl::string_view type, std::vector<SlotDef> inputs, std::vector<KernelDef> kernels) {
  inputs.insert(inputs.end(), {{"WeightH"}, {"Bias"}, {"H0", kOptional}, {"C0", kOptional}});
  return OpDef{
      .type = type,
      .inputs = std::move(inputs),
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
      .kernels = std::move(kernels),
  };
}

OpDef EmbeddingLstmDef() {
  OpDef def =
      LstmDef("fused_embedding_fc_lstm", {{"Ids", kAnyDType}, {"Embeddings"}},
              {{DType::kFloat32, EmbeddingLstm<float>}, {DType::kFloat64, EmbeddingLstm<double>}});
  def.kernel_dtype = [](const DTypeContext& ctx) { return ctx.input(kWeightX); };
  def.infer = InferOfIds;
  return def;
}

INTERP_REGISTER_OP(LstmDef("fusion_lstm", {{"X"}, {"WeightX"}},
                           {{DType::kFloat32, FusionLstm<float>},
                            {DType::kFloat64, FusionLstm<double>}}));
INTERP_REGISTER_OP(EmbeddingLstmDef());

}  // namespace
}  // namespace interp::recurrent
