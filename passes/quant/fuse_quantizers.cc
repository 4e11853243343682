#include "passes/quant/fuse_quantizers.h"

#include <optional>
#include <string>
#include <utility>

#include "core/attr_reader.h"
#include "core/edit_op.h"
#include "passes/fuse/fusion.h"

namespace interp {
namespace {

constexpr absl::string_view kQuantizeLinear = "quantize_linear";
constexpr absl::string_view kDequantizeLinear = "dequantize_linear";
constexpr absl::string_view kBoth = "fake_quantize_dequantize_moving_average_abs_max";

// How many bits a grid of one scale has, which a test leaves as it is.
std::optional<int32_t> BitsOf(const Op& op) {
  AttrReader attrs(op);
  const bool plain = attrs.Int("quant_axis", 0) == -1 && attrs.Bool("is_test", true) &&
                     !attrs.Bool("only_observer", false);
  const int32_t bits = attrs.Int("bit_length", 8);
  return plain && attrs.status().ok() ? std::optional(bits) : std::nullopt;
}

class QuantizerFuser {
 public:
  QuantizerFuser(Program program, const OpRegistry& ops) : fuser_(std::move(program), ops) {}

  Program Run() && {
    for (int i = 0; i < std::ssize(fuser_.ops()); ++i) {
      if (op(i).type == kQuantizeLinear) TryFuse(i);
    }
    return std::move(fuser_).TakeProgram();
  }

 private:
  const Op& op(int index) const { return fuser_.ops()[index]; }

  void TryFuse(int quantize) {
    const std::optional<int> back = fuser_.OnlyReader(quantize, "Y");
    if (!back.has_value() || op(*back).type != kDequantizeLinear) return;
    const std::optional<int32_t> bits = BitsOf(op(quantize));
    if (!bits.has_value() || BitsOf(op(*back)) != bits) return;
    const std::optional<VarId> x = Fuser::Argument(op(quantize).inputs, "X");
    const std::optional<VarId> scale = Fuser::Argument(op(quantize).inputs, "Scale");
    const std::optional<VarId> y = Fuser::Argument(op(*back).outputs, "Y");
    if (!x.has_value() || !y.has_value() || fuser_.Parameter(scale) == nullptr) return;
    if (Fuser::Argument(op(*back).inputs, "Scale") != scale) return;
    const Var* const var = fuser_.uses()[*x].var;
    if (var == nullptr || var->dtype != DType::kFloat32 || !fuser_.IsStable(*x, quantize)) return;
    const std::optional<VarId> between = Fuser::Argument(op(quantize).outputs, "Y");
    if (Fuser::Argument(op(*back).inputs, "X") != between) return;
    if (!fuser_.OthersAreUnused(quantize, "Y") || !fuser_.OthersAreUnused(*back, "Y")) return;
    fuser_.Replace({quantize, *back}, Joined(quantize, *back, *x, *scale, *y));
  }

  Op Joined(int quantize, int back, VarId x, VarId scale, VarId y) {
    AttrReader attrs(op(quantize));
    const int32_t bits = attrs.Int("bit_length", 8);
    const int32_t round_type = attrs.Int("round_type", 0);
    Op joined = fuser_.TakeForFusion(back);
    joined.type = std::string(kBoth);
    std::erase_if(joined.attrs, [](const Attr& attr) { return attr.name == "quant_axis"; });
    AddInput(joined, "X", {x});
    AddInput(joined, "InScale", {scale});
    AddOutput(joined, "Out", {y});
    SetAttr(joined, "bit_length", bits);
    SetAttr(joined, "round_type", round_type);
    SetAttr(joined, "is_test", true);
    return joined;
  }

  Fuser fuser_;
};

}  // namespace

absl::StatusOr<Program> FuseQuantizers(Program program, const PassContext& context) {
  if (!HasOpOf(program, {kQuantizeLinear}) || !CanMake(kBoth, context)) return program;
  return QuantizerFuser(std::move(program), context.ops).Run();
}

}  // namespace interp
