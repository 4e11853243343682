#include "passes/quant/int8.h"

#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "core/attr_reader.h"
#include "core/each_argument.h"
#include "core/fused_forms.h"
#include "passes/fuse/uncertain_ranks.h"
#include "passes/make_op.h"
#include "passes/op_effects.h"
#include "passes/op_inputs.h"
#include "passes/quant/early_grids.h"
#include "passes/quant/quantizers.h"
#include "passes/quant/split_writes.h"

namespace interp {
namespace {

constexpr absl::string_view kFloatConvolutions[] = {"conv2d", "depthwise_conv2d"};
constexpr absl::string_view kFloatProducts[] = {"mul", "matmul", "matmul_v2"};
constexpr absl::string_view kInt8Conv = "int8_conv2d";
constexpr absl::string_view kInt8Product = "int8_fc";
constexpr absl::string_view kQuantize = "quantize_int8";
constexpr absl::string_view kDequantize = "dequantize_linear";
// Ops after which a value on a grid is real again.
constexpr absl::string_view kBringBack[] = {kDequantize, "fake_dequantize_max_abs",
                                            "fake_quantize_dequantize_moving_average_abs_max"};

// An op of real numbers and how it reads as one of int8.
struct Match {
  int op = -1;
  VarId value = -1;  // what is on a grid
  Quantized input;
  VarId weights = -1;  // the op's argument
  Quantized filter;
  int back = -1;  // the op that brings the sums back; -1: `op` computes with real values
  Dequantized sums;
  int32_t row_dims = 0;  // of a product; -1: all but the last; 0: a convolution
};

class Int8Maker {
 public:
  Int8Maker(Program program, const PassContext& context)
      : fuser_(std::move(program), context.ops),
        writers_(FindWriters(fuser_)),
        uncertain_(FindUncertainRanks(fuser_.program())),
        float32_ops_(context.float32_ops) {}

  // False when nothing was found.
  bool Run() {
    bool any = false;
    for (int i = 0; i < std::ssize(fuser_.ops()); ++i) {
      std::optional<Match> match = MatchConv(i);
      if (!match.has_value()) match = MatchProduct(i);
      if (!match.has_value()) continue;
      Replace(*match);
      any = true;
    }
    return any;
  }

  Program TakeProgram() && {
    for (const std::vector<int>& chain : quantizers_) DropIfUnused(chain);
    for (int i = 0; i < std::ssize(fuser_.ops()); ++i) BringBackFromInt8(i);
    return std::move(fuser_).TakeProgram();
  }

 private:
  const Op& op(int index) const { return fuser_.ops()[index]; }

  std::optional<Match> MatchConv(int index) const {
    const Op& conv = op(index);
    if (!absl::c_linear_search(kFloatConvolutions, conv.type) ||
        absl::c_linear_search(float32_ops_, conv.type) || IsFusedConv(conv)) {
      return std::nullopt;
    }
    const std::optional<VarId> input = Fuser::Argument(conv.inputs, "Input");
    const std::optional<VarId> filter = Fuser::Argument(conv.inputs, "Filter");
    if (!input.has_value() || !filter.has_value()) return std::nullopt;
    std::optional<Match> match = MatchSides(*input, *filter, /*filter_axis=*/0);
    if (!match.has_value() || !MatchSums(index, "Output", ChannelAxisOf(conv), *match)) {
      return std::nullopt;
    }
    // Before the sums are brought back a bias is in their units.
    if (match->back >= 0 && Fuser::Argument(conv.inputs, "Bias").has_value()) return std::nullopt;
    const Var* const weights = fuser_.Parameter(match->filter.source);
    if (weights == nullptr || weights->dims.size() != 4) return std::nullopt;
    return match;
  }

  std::optional<Match> MatchProduct(int index) const {
    const Op& product = op(index);
    if (!absl::c_linear_search(kFloatProducts, product.type) ||
        absl::c_linear_search(float32_ops_, product.type)) {
      return std::nullopt;
    }
    const std::optional<VarId> x = Fuser::Argument(product.inputs, "X");
    const std::optional<VarId> w = Fuser::Argument(product.inputs, "Y");
    if (!x.has_value() || !w.has_value()) return std::nullopt;
    const std::optional<int32_t> rows =
        RowDimsOfProduct(product, fuser_.uses()[*x], /*rank_is_uncertain=*/false);
    if (!rows.has_value()) return std::nullopt;
    const bool in_run = uncertain_[*x] && product.type != "mul";
    std::optional<Match> match = MatchSides(*x, *w, /*filter_axis=*/1);
    if (!match.has_value() || !MatchSums(index, "Out", *rows, *match)) return std::nullopt;
    const Var* const weights = fuser_.Parameter(match->filter.source);
    if (weights == nullptr || weights->dims.size() != 2) return std::nullopt;
    if (in_run && match->back >= 0) return std::nullopt;  // its channels are a declared dim
    match->row_dims = in_run ? -1 : *rows;
    return match;
  }

  std::optional<Match> MatchSides(VarId value, VarId weights, int64_t filter_axis) const {
    const std::optional<Quantized> input = MatchQuantized(fuser_, writers_, value);
    if (!input.has_value() || input->axis >= 0 || input->whole) return std::nullopt;
    if (!IsUsable(*input)) return std::nullopt;
    Match match{.value = value, .input = *input, .weights = weights, .filter = {}, .sums = {}};
    const std::optional<Quantized> filter = MatchQuantized(fuser_, writers_, weights);
    if (filter.has_value()) {
      if (filter->axis >= 0 && filter->axis != filter_axis) return std::nullopt;
      if (filter->back_scale.has_value()) return std::nullopt;  // one quantises and brings back
      if (filter->scale.has_value() && fuser_.Parameter(*filter->scale) == nullptr) {
        return std::nullopt;
      }
      match.filter = *filter;
    } else {
      match.filter = {.source = weights, .whole = true};
    }
    // Both sides are whole numbers, or both are real.
    const bool real_filter = filter.has_value() && filter->back;
    if (match.input.back != real_filter) return std::nullopt;
    return match;
  }

  // The value before it went onto the grid is still there, and its scale is known.
  bool IsUsable(const Quantized& input) const {
    const VarUse& source = fuser_.uses()[input.source];
    if (source.var == nullptr || source.var->dtype != DType::kFloat32) return false;
    if (!fuser_.IsStable(input.source, input.ops.front())) return false;
    return !input.scale.has_value() || fuser_.Parameter(*input.scale) != nullptr ||
           fuser_.IsStable(*input.scale, input.ops.front());
  }

  // Finds out what follows the sums of whole numbers, which nobody else may read.
  bool MatchSums(int index, absl::string_view out_slot, int64_t channel_axis, Match& match) const {
    match.op = index;
    if (match.input.back) return true;
    const std::optional<int> next = fuser_.OnlyReader(index, out_slot);
    if (!next.has_value()) return false;
    const std::optional<Dequantized> sums = MatchDequantized(op(*next), channel_axis);
    if (!sums.has_value() || !match.input.HasScale(sums->input_scale)) return false;
    if (sums->filter_scale.has_value() && fuser_.Parameter(*sums->filter_scale) == nullptr) {
      return false;
    }
    // One scale quantises the weights and brings their sums back.
    if (!match.filter.whole &&
        !(sums->filter_scale.has_value() && match.filter.HasScale(*sums->filter_scale))) {
      return false;
    }
    match.back = *next;
    match.sums = *sums;
    return true;
  }

  // The int8 form of a value on a grid, with its scale.
  struct Twin {
    VarId value = -1;
    VarId scale = -1;
  };

  const Twin& TwinOf(VarId value, const Quantized& input) {
    const auto [at, is_new] = twins_.try_emplace(value);
    Twin& twin = at->second;
    if (!is_new) return twin;
    const std::string name(fuser_.program().NameOf(value));
    Var var = *fuser_.uses()[input.source].var;
    var.dtype = DType::kInt8;
    twin.value = fuser_.Declare(name + ".int8", var);
    Op quantize = MakeUnaryOp(kQuantize, input.source, twin.value);
    if (input.scale.has_value()) AddInput(quantize, "Scale", {*input.scale});
    if (input.scale.has_value()) {
      twin.scale = input.back_scale.value_or(*input.scale);
    } else {
      var.dtype = DType::kFloat32;
      var.dims = {1};
      var.lod_level = 0;
      twin.scale = fuser_.Declare(name + ".int8_scale", var);
      AddOutput(quantize, "OutScale", {twin.scale});
    }
    SetAttr(quantize, "bit_length", input.bits);
    SetAttr(quantize, "round_type", input.round_type);
    fuser_.PutBehind(input.ops.back(), std::move(quantize));
    quantizers_.push_back(input.ops);
    return twin;
  }

  void Replace(const Match& match) {
    const Twin& twin = TwinOf(match.value, match.input);
    ++converted_[match.value];
    if (!match.filter.ops.empty()) {
      ++converted_[match.weights];
      quantizers_.push_back(match.filter.ops);
    }
    if (match.back >= 0) ++converted_[match.sums.input_scale];
    Op int8 = match.row_dims != 0 ? MakeProduct(match, twin) : MakeConv(match, twin);
    makes_sums_[match.back < 0 ? match.op : match.back] = match.row_dims == 0;
    if (match.back < 0) return fuser_.Replace({match.op}, std::move(int8));
    fuser_.Replace({match.op, match.back}, std::move(int8));
  }

  Op MakeConv(const Match& match, const Twin& twin) const {
    const Op& conv = op(match.op);
    Op int8 = conv;
    int8.type = std::string(kInt8Conv);
    int8.inputs.clear();
    int8.outputs.clear();
    AddInput(int8, "Input", {twin.value});
    AddInput(int8, "Filter", {match.filter.source});
    if (const auto bias = Fuser::Argument(conv.inputs, "Bias")) AddInput(int8, "Bias", {*bias});
    AddScales(match, twin, int8);
    AddOutput(int8, "Output", {ResultOf(match, "Output")});
    return int8;
  }

  Op MakeProduct(const Match& match, const Twin& twin) const {
    Op int8;
    int8.type = std::string(kInt8Product);
    AddInput(int8, "Input", {twin.value});
    AddInput(int8, "W", {match.filter.source});
    AddScales(match, twin, int8);
    AddOutput(int8, "Out", {ResultOf(match, "Out")});
    SetAttr(int8, "in_num_col_dims", match.row_dims);
    if (op(match.op).type == "matmul_v2") SetAttr(int8, "keeps_lod", false);
    return int8;
  }

  VarId ResultOf(const Match& match, absl::string_view slot) const {
    if (match.back < 0) return *Fuser::Argument(op(match.op).outputs, slot);
    return *Fuser::Argument(op(match.back).outputs, "Out");
  }

  static void AddScales(const Match& match, const Twin& twin, Op& int8) {
    AddInput(int8, "InputScale", {twin.scale});
    const bool real = match.back < 0;
    const std::optional<VarId> scale = real ? match.filter.scale : match.sums.filter_scale;
    if (scale.has_value()) AddInput(int8, "FilterScale", {*scale});
    const auto bins = static_cast<float>(match.input.bins() * match.filter.bins());
    SetAttr(int8, "range", real ? bins : match.sums.range);
    SetAttr(int8, "quantize_weights", !match.filter.whole);
    if (match.filter.whole) return;
    SetAttr(int8, "weights_per_channel", match.filter.axis >= 0);
    SetAttr(int8, "weight_bits", match.filter.bits);
    SetAttr(int8, "weight_round_type", match.filter.round_type);
  }

  // Drops ops that made a value which only int8 ops have read, from the last one on.
  void DropIfUnused(const std::vector<int>& chain) {
    for (size_t i = chain.size(); i-- > 0;) {
      if (fuser_.IsGone(chain[i]) || !CanGo(op(chain[i]))) return;
      fuser_.Drop(chain[i]);
      for (const VarId id : EachArgument(op(chain[i]).inputs)) ++converted_[id];
    }
  }

  // What ops of real numbers read of a value on a grid is brought back from int8 where that is made
  // anyhow: for others, or by the int8 op before, which then stores a fourth of the bytes.
  void BringBackFromInt8(int index) {
    if (fuser_.IsGone(index) || !absl::c_linear_search(kBringBack, op(index).type)) return;
    const bool linear = op(index).type == kDequantize;
    const std::optional<VarId> value = Fuser::Argument(op(index).outputs, linear ? "Y" : "Out");
    if (!value.has_value() || writers_[*value] != index || !CanGo(op(index), *value)) return;
    const std::optional<Quantized> input = MatchQuantized(fuser_, writers_, *value);
    if (!input.has_value() || input->whole || input->axis >= 0 || !input->scale.has_value() ||
        fuser_.Parameter(*input->scale) == nullptr || !IsUsable(*input)) {
      return;
    }
    if (!twins_.contains(*value) && !FollowsSums(input->source, input->ops.front())) return;
    const Twin& twin = TwinOf(*value, *input);
    Op back =
        MakeOp(kDequantize, {{"X", {twin.value}}, {"Scale", {twin.scale}}}, {{"Y", {*value}}});
    SetAttr(back, "quant_axis", -1);
    SetAttr(back, "bit_length", input->bits);
    for (const VarId id : EachArgument(op(index).inputs)) ++converted_[id];
    fuser_.Drop(index);
    fuser_.PutBehind(index, std::move(back));
    if (input->ops.size() > 1) DropIfUnused({input->ops.front()});
  }

  // Whether int8 sums become `value` by what is fused into the op that takes them, for the op at
  // position `reader` alone.
  bool FollowsSums(VarId value, int reader) const {
    for (bool bias = false;;) {
      const int writer = writers_[value];
      const VarUse& use = fuser_.uses()[value];
      if (writer < 0 || writer >= reader || use.pinned() || use.mentions != 2) return false;
      // Nothing is fused into a product without a bias.
      if (const auto at = makes_sums_.find(writer); at != makes_sums_.end()) {
        return bias || at->second;
      }
      const Op& between = op(writer);
      bias = between.type == "elementwise_add" &&
             fuser_.Parameter(Fuser::Argument(between.inputs, "Y")) != nullptr;
      const bool fuses =
          bias || between.type == "batch_norm" || MatchActivation(between).has_value();
      const std::optional<VarId> x = Fuser::Argument(between.inputs, "X");
      if (!fuses || !x.has_value() || fuser_.IsGone(writer)) return false;
      reader = writer;
      value = *x;
    }
  }

  // Whether nobody sees what the op makes, but for `value`.
  bool CanGo(const Op& quantizer, VarId value = -1) const {
    const bool test_mode = AttrReader(quantizer).Bool("is_test", false);
    for (const Slot& slot : quantizer.outputs) {
      for (const VarId id : slot.args) {
        const VarUse& use = fuser_.uses()[id];
        const auto found = converted_.find(id);
        const int converted = found == converted_.end() ? 0 : found->second;
        if (id == value || LeavesUntouched(quantizer, id)) continue;
        // In test mode a scale that is saved with the program stays what training left.
        const bool state = test_mode && slot.name == "OutScale" && use.persistable &&
                           !use.fetched && use.block == 0;
        if ((use.pinned() && !state) || use.mentions - 1 > converted) return false;
      }
    }
    return true;
  }

  Fuser fuser_;
  const std::vector<int> writers_;
  const std::vector<bool> uncertain_;  // by VarId
  const std::vector<std::string>& float32_ops_;
  absl::flat_hash_map<VarId, Twin> twins_;     // by the value on a grid
  absl::flat_hash_map<VarId, int> converted_;  // reads that int8 ops have taken over
  // Positions of ops that int8 ones stand for, and whether those are convolutions.
  absl::flat_hash_map<int, bool> makes_sums_;
  std::vector<std::vector<int>> quantizers_;  // ops that may have become useless
};

}  // namespace

absl::StatusOr<Program> ComputeInInt8(Program program, const PassContext& context) {
  Int8Maker maker(SplitWrites(std::move(program), context.ops), context);
  if (!maker.Run()) {
    return absl::FailedPreconditionError(
        "nothing to compute in int8: no convolution or product reads both an input and weights "
        "that an op of quantisation-aware training (fake_quantize_..., quantize_linear) put on a "
        "grid of whole numbers; save the program after such training, or run it in float32 or "
        "bf16");
  }
  return QuantizeEarlier(std::move(maker).TakeProgram(), context);
}

}  // namespace interp
