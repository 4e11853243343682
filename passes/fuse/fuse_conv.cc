#include "passes/fuse/fuse_conv.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/algorithm/container.h"
#include "core/attr_reader.h"
#include "core/fused_forms.h"
#include "passes/fuse/fusion.h"
#include "passes/fuse/symbolic_shapes.h"
#include "passes/op_inputs.h"

namespace interp {
namespace {

constexpr absl::string_view kInt8Conv2d = "int8_conv2d";  // which is its own fused form
constexpr absl::string_view kTransposed = "conv2d_transpose";
constexpr absl::string_view kStarts[] = {"conv2d", "depthwise_conv2d", kInt8Conv2d, kTransposed};
constexpr absl::string_view kFusedTransposed = "fused_conv2d_transpose";
// Inputs that stay what they are.
constexpr absl::string_view kScales[] = {"InputScale", "FilterScale"};

// Input slots of a batch norm but X, and the slots of the fused op they become.
constexpr std::array<std::pair<absl::string_view, absl::string_view>, 4> kBatchNormSlots = {
    {{"Scale", "BnScale"}, {"Bias", "BnBias"}, {"Mean", "BnMean"}, {"Variance", "BnVariance"}}};

// A multiplication and an addition of one number each.
struct Affine {
  std::optional<VarId> scale;
  std::optional<VarId> shift;
};

// The ops that one fused_conv2d replaces; -1 and nullopt for steps that are not there.
struct Chain {
  std::vector<int> ops;
  int64_t channels = 0;
  int64_t channel_axis = 1;
  std::optional<VarId> bias;
  int bias_reshape = -1;  // the op that makes the bias what elementwise_add takes
  int batch_norm = -1;
  Affine before;  // the residual
  std::optional<VarId> residual;
  std::optional<FusedActivation> activation;
  Affine behind;
  int quantize = -1;                      // of an int8 convolution
  absl::string_view out_slot = "Output";  // of the last op
};

class ConvFuser {
 public:
  ConvFuser(Program program, const PassContext& context)
      : fuser_(std::move(program), context.ops),
        shapes_(FindSymbolicShapes(fuser_.program(), fuser_.uses())),
        fused_def_(*context.ops.Find(kFusedConv2d)),
        makes_transposed_(CanMake(kFusedTransposed, context)),
        folds_(context.place != PlaceKind::kCuda) {}

  Program Run() && {
    for (int i = 0; i < std::ssize(fuser_.ops()); ++i) {
      const std::optional<Chain> chain = Match(i);
      if (!chain.has_value()) continue;
      fuser_.Replace(chain->ops, MakeFused(*chain));
      if (chain->bias_reshape >= 0) DropReshape(chain->bias_reshape);
    }
    return std::move(fuser_).TakeProgram();
  }

 private:
  const Op& op(int index) const { return fuser_.ops()[index]; }

  std::optional<Chain> Match(int conv) const {
    std::optional<Chain> chain = StartAt(conv);
    if (!chain.has_value()) return std::nullopt;
    if (!chain->bias.has_value()) TakeBias(*chain);
    TakeBatchNorm(*chain);
    if (!IsTransposed(*chain)) {
      TakeAffine(*chain, chain->before);
      TakeResidual(*chain);
    }
    TakeActivation(*chain);
    if (chain->activation.has_value() && !IsTransposed(*chain)) TakeAffine(*chain, chain->behind);
    TakeQuantization(*chain);
    if (chain->ops.size() == 1 || !CanReplace(*chain)) return std::nullopt;
    return chain;
  }

  bool CanReplace(const Chain& chain) const {
    std::vector<VarId> parameters = {*Fuser::Argument(op(chain.ops.front()).inputs, "Filter")};
    if (chain.bias.has_value()) parameters.push_back(*chain.bias);
    return fuser_.CanReplace(chain.ops, Result(chain), parameters);
  }

  std::optional<Chain> StartAt(int index) const {
    const Op& conv = op(index);
    if (!absl::c_linear_search(kStarts, conv.type)) return std::nullopt;
    const bool transposed = conv.type == kTransposed;
    if (transposed && !makes_transposed_) return std::nullopt;
    for (const Slot& slot : conv.inputs) {
      const bool known = slot.name == "Input" || slot.name == "Filter" || slot.name == "Bias" ||
                         absl::c_linear_search(kScales, slot.name);
      if (!known && !slot.args.empty()) return std::nullopt;
    }
    const std::optional<VarId> filter_id = Fuser::Argument(conv.inputs, "Filter");
    const Var* filter = fuser_.ConstantUntil(index, filter_id);
    const std::optional<VarId> input = Fuser::Argument(conv.inputs, "Input");
    const std::optional<VarId> output = Fuser::Argument(conv.outputs, "Output");
    if (filter == nullptr || filter->dims.size() != 4 || filter->dims[0] <= 0 ||
        !input.has_value() || !output.has_value()) {
      return std::nullopt;
    }
    if (!fuser_.IsStable(*input, index) || IsFusedConv(conv) ||
        !HasKernels(conv.type, *filter_id, *output)) {
      return std::nullopt;
    }
    Chain chain;
    chain.ops = {index};
    AttrReader attrs(conv);
    chain.channels = filter->dims[0];
    if (transposed &&
        __builtin_mul_overflow(filter->dims[1], int64_t{attrs.Int("groups", 1)}, &chain.channels)) {
      return std::nullopt;
    }
    chain.channel_axis = ChannelAxisOf(conv);
    chain.bias = Fuser::Argument(conv.inputs, "Bias");
    if (chain.bias.has_value() && !IsChannelParameter(*chain.bias, chain)) return std::nullopt;
    return chain;
  }

  bool IsTransposed(const Chain& chain) const { return op(chain.ops.front()).type == kTransposed; }

  // Results may be declared wrongly: the dtype of the filter, which is loaded, counts as well. That
  // of int8 convolutions may be int8.
  bool HasKernels(absl::string_view type, VarId filter, VarId output) const {
    const auto has = [&](VarId id) {
      const Var* const var = fuser_.uses()[id].var;
      return HasKernel(id) && (type != kTransposed || var->dtype == DType::kFloat32);
    };
    return has(output) && (type == kInt8Conv2d || has(filter));
  }

  bool HasKernel(VarId id) const {
    const Var* var = fuser_.uses()[id].var;
    return var != nullptr && HasKernelOf(fused_def_, var->dtype);
  }

  // The op that alone reads the chain's result so far, when it is of that type.
  std::optional<int> Next(const Chain& chain, absl::string_view type) const {
    const std::optional<int> next = fuser_.OnlyReaderOfValues(chain.ops.back(), chain.out_slot);
    return next.has_value() && op(*next).type == type ? next : std::nullopt;
  }

  // The same for an op into which no other library has fused anything.
  std::optional<int> NextPlain(const Chain& chain, absl::string_view type) const {
    const std::optional<int> next = Next(chain, type);
    return next.has_value() && CheckNothingFused(op(*next)).ok() ? next : std::nullopt;
  }
  std::optional<int> NextSum(const Chain& chain) const {
    return NextPlain(chain, "elementwise_add");
  }

  VarId Result(const Chain& chain) const {
    return *Fuser::Argument(op(chain.ops.back()).outputs, chain.out_slot);
  }

  void TakeBias(Chain& chain) const {
    const std::optional<int> add = NextSum(chain);
    if (!add.has_value() || Fuser::Argument(op(*add).inputs, "X") != Result(chain)) return;
    std::optional<VarId> bias = Fuser::Argument(op(*add).inputs, "Y");
    const Var* const y = fuser_.ParameterUntil(*add, bias);
    std::vector<int64_t> dims;
    int reshape = -1;
    if (y != nullptr) {
      dims = y->dims;
    } else if (const std::optional<int> writer = ReshapeOf(bias, *add, chain); writer.has_value()) {
      reshape = *writer;
      bias = Fuser::Argument(op(reshape).inputs, "X");
      dims = AttrReader(op(reshape)).Ints("shape");
      if (const auto any = std::find(dims.begin(), dims.end(), -1); any != dims.end()) {
        *any = chain.channels;
      }
    }
    const int64_t axis = AttrReader(op(*add)).Int("axis", -1);
    if (!IsPerChannel(dims, axis, /*rank=*/4, chain.channel_axis, chain.channels) ||
        !HasKernel(*bias)) {
      return;
    }
    chain.bias = bias;
    chain.bias_reshape = reshape;
    Append(chain, *add, "Out");
  }

  // The op that makes `id` from a parameter of one value for each channel, as paddle.nn writes it
  // before position `until`: reshape2(X=b) -> (Out=id) {shape=[1,C,1,1]}.
  std::optional<int> ReshapeOf(std::optional<VarId> id, int until, const Chain& chain) const {
    if (!id.has_value()) return std::nullopt;
    const VarUse& use = fuser_.uses()[*id];
    if (use.block == VarUse::kSeveralBlocks || use.writes != 1 || use.first < 0 ||
        use.first != use.last_write || use.first >= until) {
      return std::nullopt;
    }
    const Op& reshape = op(use.first);
    const Var* const from = fuser_.ParameterUntil(until, Fuser::Argument(reshape.inputs, "X"));
    const bool known = (reshape.type == "reshape2" || reshape.type == "reshape") &&
                       Fuser::Argument(reshape.outputs, "Out") == id && ReadsOnly(reshape, {"X"});
    if (!known || from == nullptr || from->dims != std::vector<int64_t>{chain.channels}) {
      return std::nullopt;
    }
    return use.first;
  }

  // Unless somebody else reads what it makes.
  void DropReshape(int index) {
    const std::optional<VarId> out = Fuser::Argument(op(index).outputs, "Out");
    const VarUse& use = fuser_.uses()[*out];
    if (use.pinned() || use.mentions != 2) return;
    const std::optional<VarId> shape = Fuser::Argument(op(index).outputs, "XShape");
    if (!shape.has_value() || fuser_.IsUnused(*shape)) fuser_.Drop(index);
  }

  void TakeBatchNorm(Chain& chain) const {
    const std::optional<int> next = Next(chain, "batch_norm");
    if (!next.has_value() || !folds_) return;
    const Op& norm = op(*next);
    const bool along_channels = ChannelAxisOf(norm, "data_layout") == chain.channel_axis;
    if (!OnlyNormalizes(fuser_, norm) || !along_channels) return;
    for (const auto& [slot, fused_slot] : kBatchNormSlots) {
      const std::optional<VarId> id = Fuser::Argument(norm.inputs, slot);
      if (!id.has_value() || !IsChannelParameter(*id, chain)) return;
    }
    chain.batch_norm = *next;
    Append(chain, *next, "Y");
  }

  // One value for each channel, as a vector.
  bool IsChannelParameter(VarId id, const Chain& chain) const {
    const Var* var = fuser_.Constant(id);
    return var != nullptr && HasKernel(id) && var->dims.size() == 1 &&
           var->dims[0] == chain.channels;
  }

  // The affine of one number each of PP-HGNetV2 and PP-LCNetV3 ("learnable affine block").
  void TakeAffine(Chain& chain, Affine& affine) const {
    if (!folds_ || op(chain.ops.front()).type == kInt8Conv2d) return;
    affine.scale = TakeNumber(chain, "elementwise_mul");
    affine.shift = TakeNumber(chain, "elementwise_add");
  }

  // The other operand of the next op of that type, when it is a parameter of one element.
  std::optional<VarId> TakeNumber(Chain& chain, absl::string_view type) const {
    const std::optional<int> next = NextPlain(chain, type);
    if (!next.has_value()) return std::nullopt;
    const std::optional<VarId> other = OtherOperand(*next, Result(chain));
    const Var* const var = fuser_.Parameter(other);
    if (var == nullptr || !HasKernel(*other) || var->dims != std::vector<int64_t>{1}) {
      return std::nullopt;
    }
    Append(chain, *next, "Out");
    return other;
  }

  // The operand of a binary op that is not `id`.
  std::optional<VarId> OtherOperand(int index, VarId id) const {
    const std::optional<VarId> x = Fuser::Argument(op(index).inputs, "X");
    const std::optional<VarId> y = Fuser::Argument(op(index).inputs, "Y");
    if (!x.has_value() || !y.has_value()) return std::nullopt;
    return *x == id ? y : x;
  }

  void TakeResidual(Chain& chain) const {
    const std::optional<int> add = NextSum(chain);
    if (!add.has_value()) return;
    const VarId result = Result(chain);
    const std::optional<VarId> other = OtherOperand(*add, result);
    if (!other.has_value()) return;
    AttrReader attrs(op(*add));
    const int32_t axis = attrs.Int("axis", -1);
    const bool same_shape = shapes_[result].has_value() && shapes_[result] == shapes_[*other];
    if (!same_shape || (axis != -1 && axis != 0) || !HasKernel(*other)) return;
    if (!fuser_.IsStable(*other, *add)) return;
    chain.residual = other;
    Append(chain, *add, "Out");
  }

  void TakeActivation(Chain& chain) const {
    const std::optional<int> next = fuser_.OnlyReaderOfValues(chain.ops.back(), chain.out_slot);
    if (!next.has_value()) return;
    chain.activation = MatchActivation(op(*next));
    if (chain.activation.has_value()) Append(chain, *next, "Out");
  }

  // The results of an int8 convolution go onto the grid of the one that reads them.
  void TakeQuantization(Chain& chain) const {
    if (op(chain.ops.front()).type != kInt8Conv2d || chain.residual.has_value()) return;
    const std::optional<int> next = Next(chain, "quantize_int8");
    if (!next.has_value()) return;
    const Var* const scale = fuser_.Parameter(Fuser::Argument(op(*next).inputs, "Scale"));
    if (scale == nullptr || Fuser::Argument(op(*next).outputs, "OutScale").has_value()) return;
    chain.quantize = *next;
    Append(chain, *next, "Out");
  }

  static void Append(Chain& chain, int index, absl::string_view out_slot) {
    chain.ops.push_back(index);
    chain.out_slot = out_slot;
  }

  static void AddNumber(Op& fused, absl::string_view slot, std::optional<VarId> id) {
    if (id.has_value()) AddInput(fused, slot, {*id});
  }

  Op MakeFused(const Chain& chain) {
    const Op& conv = op(chain.ops.front());
    Op fused = fuser_.TakeForFusion(chain.ops.front());
    if (conv.type != kInt8Conv2d) {
      fused.type = std::string(IsTransposed(chain) ? kFusedTransposed : kFusedConv2d);
    }
    AddInput(fused, "Input", {*Fuser::Argument(conv.inputs, "Input")});
    AddInput(fused, "Filter", {*Fuser::Argument(conv.inputs, "Filter")});
    if (chain.bias.has_value()) AddInput(fused, "Bias", {*chain.bias});
    if (chain.residual.has_value()) AddInput(fused, "ResidualData", {*chain.residual});
    if (chain.batch_norm >= 0) {
      const Op& norm = op(chain.batch_norm);
      for (const auto& [slot, fused_slot] : kBatchNormSlots) {
        AddInput(fused, fused_slot, {*Fuser::Argument(norm.inputs, slot)});
      }
      AttrReader attrs(norm);
      SetAttr(fused, "epsilon", attrs.Float("epsilon", 1e-5F));
    }
    AddNumber(fused, "PreScale", chain.before.scale);
    AddNumber(fused, "PreShift", chain.before.shift);
    AddNumber(fused, "PostScale", chain.behind.scale);
    AddNumber(fused, "PostShift", chain.behind.shift);
    for (const absl::string_view slot : kScales) {
      AddNumber(fused, slot, Fuser::Argument(conv.inputs, slot));
    }
    if (chain.quantize >= 0) {
      const Op& quantize = op(chain.quantize);
      AddInput(fused, "OutputScale", {*Fuser::Argument(quantize.inputs, "Scale")});
      AttrReader attrs(quantize);
      SetAttr(fused, "out_bits", attrs.Int("bit_length", 8));
      SetAttr(fused, "out_round_type", attrs.Int("round_type", 0));
    }
    AddOutput(fused, "Output", {Result(chain)});
    if (!IsTransposed(chain)) SetAttr(fused, "fuse_residual", chain.residual.has_value());
    const FusedActivation activation = chain.activation.value_or(FusedActivation());
    SetAttr(fused, "fuse_activation", activation.name);
    SetAttr(fused, "fuse_alpha", activation.alpha);
    SetAttr(fused, "fuse_beta", activation.beta);
    return fused;
  }

  Fuser fuser_;
  const std::vector<std::optional<SymbolicShape>> shapes_;
  const OpDef& fused_def_;
  const bool makes_transposed_;
  const bool folds_;  // CUDA's kernel folds nothing into the filter
};

}  // namespace

absl::StatusOr<Program> FuseConv(Program program, const PassContext& context) {
  if (!CanMake(kFusedConv2d, context) || !HasOpOf(program, kStarts)) return program;
  return ConvFuser(std::move(program), context).Run();
}

}  // namespace interp
