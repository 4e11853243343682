#include "core/weight_scales.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/each_argument.h"
#include "core/edit_op.h"

namespace interp {
namespace {

constexpr absl::string_view kType = "quantization_type";
constexpr absl::string_view kWeightsAlone = "post_weight_";

bool HasScales(const Op& op) {
  const Attr* const type = op.FindAttr(kType);
  const auto* const text = type == nullptr ? nullptr : std::get_if<std::string>(&type->value);
  return text != nullptr && absl::StartsWith(*text, kWeightsAlone);
}

}  // namespace

std::vector<WeightScaleAttr> WeightScaleAttrsOf(const Program& program) {
  std::vector<WeightScaleAttr> found;
  for (const Block& block : program.blocks) {
    for (const Op& op : block.ops) {
      if (!HasScales(op)) continue;
      for (const Slot& slot : op.inputs) {
        for (const VarId id : slot.args) {
          const Attr* const attr = op.FindAttr(absl::StrCat(program.NameOf(id), "_quant_scale"));
          if (attr != nullptr) found.push_back({id, *attr});
        }
      }
    }
  }
  return found;
}

void RestoreWeightScales(const std::vector<WeightScaleAttr>& attrs, Program& program) {
  if (attrs.empty()) return;
  absl::flat_hash_map<VarId, const Attr*> by_weights;
  for (const WeightScaleAttr& at : attrs) by_weights[at.weights] = &at.attr;
  for (Block& block : program.blocks) {
    for (Op& op : block.ops) {
      for (const VarId id : EachArgument(op.inputs)) {
        const auto found = by_weights.find(id);
        if (found == by_weights.end()) continue;
        SetAttr(op, found->second->name, found->second->value);
        if (!HasScales(op)) SetAttr(op, kType, absl::StrCat(kWeightsAlone, "abs_max"));
      }
    }
  }
}

}  // namespace interp
