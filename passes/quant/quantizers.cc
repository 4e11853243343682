#include "passes/quant/quantizers.h"

#include <algorithm>
#include <iterator>

#include "core/attr_reader.h"
#include "core/each_argument.h"

namespace interp {
namespace {

// Ops with real values in slot X that go onto a grid.
struct Quantizer {
  absl::string_view type;
  absl::string_view scale;  // slot of the scale; "": InScale, or else by magnitudes of X
  absl::string_view out = "Out";
  bool channels = false;  // attribute quant_axis
  bool back = false;
  int32_t round_type = 1;  // without that attribute
};

constexpr Quantizer kQuantizers[] = {
    {"fake_quantize_abs_max", ""},
    {"fake_quantize_dequantize_abs_max", "", "Out", false, true},
    {"fake_channel_wise_quantize_abs_max", "", "Out", true},
    {"fake_channel_wise_quantize_dequantize_abs_max", "", "Out", true, true},
    {"fake_quantize_range_abs_max", "InScale"},
    {"fake_quantize_moving_average_abs_max", "InScale"},
    {"fake_quantize_dequantize_moving_average_abs_max", "InScale", "Out", false, true},
    {"quantize_linear", "Scale", "Y", true, false, 0},
    {"quantize", ""},  // of Paddle-Mobile, whose slots it has
};

bool IsFreeOfTraining(const Op& op, const Quantizer& quantizer) {
  if (quantizer.scale.empty()) return true;
  AttrReader attrs(op);
  return attrs.Bool("is_test", op.type == "quantize_linear") &&
         !attrs.Bool("only_observer", false) && attrs.status().ok();
}

std::optional<Quantized> FromQuantizer(const Fuser& fuser, int position) {
  const Op& op = fuser.ops()[position];
  const auto* const quantizer =
      std::find_if(std::begin(kQuantizers), std::end(kQuantizers),
                   [&](const Quantizer& candidate) { return candidate.type == op.type; });
  if (quantizer == std::end(kQuantizers)) return std::nullopt;
  const std::optional<VarId> x = Fuser::Argument(op.inputs, "X");
  if (!x.has_value() || !IsFreeOfTraining(op, *quantizer)) return std::nullopt;
  Quantized result{.source = *x, .back = quantizer->back, .ops = {position}};
  const bool moves = quantizer->scale.empty();
  result.scale = Fuser::Argument(op.inputs, moves ? "InScale" : quantizer->scale);
  if (!moves && !result.scale.has_value()) return std::nullopt;
  // Where nobody else writes.
  const std::optional<VarId> written = Fuser::Argument(op.outputs, "OutScale");
  if (written.has_value() && fuser.uses()[*written].writes == 1) result.written_scale = *written;
  AttrReader attrs(op);
  result.bits = attrs.Int("bit_length", 8);
  result.round_type = attrs.Int("round_type", quantizer->round_type);
  if (quantizer->channels) result.axis = attrs.Int("quant_axis", 0);
  if (!attrs.status().ok() || result.bits < 2 || result.bits > 8) return std::nullopt;
  return result;
}

bool HasArgument(const Slot* slot) { return slot != nullptr && !slot->args.empty(); }

// The scale slot of an op that brings values back to what they were.
std::optional<VarId> ScaleOfBack(const Op& op) {
  if (op.type == "fake_channel_wise_dequantize_max_abs") {
    return Fuser::Argument(op.inputs, "Scales");  // one: of weights
  }
  return Fuser::Argument(op.inputs, "Scale");
}

bool IsBack(const Op& op) {
  return op.type == "dequantize_linear" || op.type == "fake_dequantize_max_abs" ||
         op.type == "fake_channel_wise_dequantize_max_abs";
}

// Whether the op, which IsBack, undoes `inner` but for the rounding and, perhaps, another scale.
bool Undoes(const Op& op, const Quantized& inner) {
  if (inner.back) return false;
  AttrReader attrs(op);
  int64_t axis = -1;
  if (op.type == "fake_dequantize_max_abs") {
    if (attrs.Float("max_range", 0) != static_cast<float>(inner.bins())) return false;
  } else {
    axis = attrs.Int("quant_axis", 0);
  }
  if (op.type == "dequantize_linear" && attrs.Int("bit_length", 8) != inner.bits) return false;
  if (op.type == "fake_channel_wise_dequantize_max_abs" &&
      attrs.Ints("quant_bits", {8}) != std::vector<int64_t>{inner.bits}) {
    return false;
  }
  return attrs.status().ok() && !attrs.Bool("only_observer", false) && axis == inner.axis;
}

// A parameter that holds whole numbers, brought back.
std::optional<Quantized> FromWhole(const Fuser& fuser, const Op& op, int position, VarId x) {
  if (op.type != "dequantize_linear" || fuser.Parameter(x) == nullptr) return std::nullopt;
  AttrReader attrs(op);
  Quantized result{.source = x,
                   .whole = true,
                   .scale = ScaleOfBack(op),
                   .axis = attrs.Int("quant_axis", 0),
                   .bits = attrs.Int("bit_length", 8),
                   .back = true,
                   .ops = {position}};
  if (!result.scale.has_value() || fuser.Parameter(*result.scale) == nullptr) return std::nullopt;
  if (attrs.Bool("only_observer", false) || !attrs.status().ok()) return std::nullopt;
  return result.bits >= 2 && result.bits <= 8 ? std::optional(result) : std::nullopt;
}

}  // namespace

bool IsLinearQuantizer(const Op& op) {
  return op.type == "quantize_linear" || op.type == "dequantize_linear";
}

std::vector<int> FindWriters(const Fuser& fuser) {
  std::vector<int> writers(fuser.uses().size(), -1);
  for (size_t i = 0; i < fuser.ops().size(); ++i) {
    for (const VarId id : EachArgument(fuser.ops()[i].outputs)) {
      const VarUse& use = fuser.uses()[id];
      if (use.writes == 1 && !use.persistable && use.block == 0) {
        writers[id] = static_cast<int>(i);
      }
    }
  }
  return writers;
}

std::optional<Quantized> MatchQuantized(const Fuser& fuser, const std::vector<int>& writers,
                                        VarId value) {
  const int position = writers[value];
  if (position < 0 || fuser.IsGone(position)) return std::nullopt;
  const Op& op = fuser.ops()[position];
  if (!IsBack(op)) return FromQuantizer(fuser, position);
  const std::optional<VarId> x = Fuser::Argument(op.inputs, "X");
  if (!x.has_value()) return std::nullopt;
  if (std::optional<Quantized> whole = FromWhole(fuser, op, position, *x)) return whole;
  const int before = writers[*x];
  if (before < 0 || fuser.IsGone(before)) return std::nullopt;
  std::optional<Quantized> result = FromQuantizer(fuser, before);
  if (!result.has_value() || !Undoes(op, *result)) return std::nullopt;
  const std::optional<VarId> scale = ScaleOfBack(op);
  if (!scale.has_value()) return std::nullopt;
  if (!result->HasScale(*scale)) {
    const Var* const other = fuser.Parameter(*scale);
    const bool one =
        other != nullptr && (other->dims.empty() || other->dims == std::vector<int64_t>{1});
    if (!one || !result->scale.has_value() || result->axis >= 0) return std::nullopt;
    result->back_scale = scale;
  }
  result->back = true;
  result->ops.push_back(position);
  return result;
}

std::optional<Dequantized> MatchDequantized(const Op& op, int64_t channel_axis) {
  AttrReader attrs(op);
  const Slot* const x = op.FindInput("X");
  if (!HasArgument(x)) return std::nullopt;
  if (op.type == "fake_dequantize_max_abs" || op.type == "dequantize") {
    const std::optional<VarId> scale = Fuser::Argument(op.inputs, "Scale");
    const float range = attrs.Float("max_range", 0);
    if (!scale.has_value() || !(range > 0) || !attrs.status().ok()) return std::nullopt;
    return Dequantized{.input_scale = *scale, .range = range};
  }
  if (op.type != "fake_channel_wise_dequantize_max_abs") return std::nullopt;
  const Slot* const scales = op.FindInput("Scales");
  const std::vector<int64_t> bits = attrs.Ints("quant_bits", {8});
  if (scales == nullptr || scales->args.size() != 2 || bits.size() != 2) return std::nullopt;
  if (attrs.Int("x_num_col_dims", 1) != channel_axis || !attrs.status().ok()) return std::nullopt;
  float range = 1;
  for (const int64_t b : bits) {
    if (b < 2 || b > 8) return std::nullopt;
    range *= static_cast<float>((int64_t{1} << (b - 1)) - 1);
  }
  return Dequantized{
      .input_scale = scales->args[1], .filter_scale = scales->args[0], .range = range};
}

}  // namespace interp
