#include "passes/quant/kept_scales.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "core/any_op.h"
#include "core/attr_reader.h"
#include "passes/declarations.h"
#include "passes/verify.h"

namespace interp {
namespace {

constexpr absl::string_view kByChannel = "fake_channel_wise_quantize_abs_max";
constexpr absl::string_view kLinear = "quantize_linear";
constexpr absl::string_view kScaleIn = "InScale";
constexpr absl::string_view kScaleOut = "OutScale";

constexpr absl::string_view kKeepInTests[] = {
    kByChannel,
    kLinear,
    "fake_quantize_range_abs_max",
    "fake_quantize_moving_average_abs_max",
    "fake_quantize_dequantize_moving_average_abs_max",
    "moving_average_abs_max_scale",
};
constexpr absl::string_view kKeepsAlways = "dequantize_linear";

bool KeepsInTests(absl::string_view type) { return absl::c_linear_search(kKeepInTests, type); }

bool IsQuantizer(const Op& op) { return op.type == kKeepsAlways || KeepsInTests(op.type); }

bool IsTest(const Op& op) { return AttrReader(op).Bool("is_test", op.type == kLinear); }

bool KeepsSlot(const Op& op, absl::string_view slot) {
  if (slot == "Out" || slot == "Y") return false;
  if (op.type == kKeepsAlways || IsTest(op)) return true;
  const bool by_channel = op.type == kLinear && AttrReader(op).Int("quant_axis", 0) >= 0;
  return by_channel && slot != kScaleOut;
}

// Takes the outputs that the op leaves, and reads the scales that it takes from there.
void Keep(Op& op, int32_t block, Declarations& declarations) {
  std::vector<Slot> read;
  std::erase_if(op.outputs, [&](const Slot& slot) {
    if (slot.args.size() != 1 || !KeepsSlot(op, slot.name)) return false;
    const Var* const var = declarations.Find(block, slot.args[0]);
    if (var == nullptr || !var->persistable) return false;
    if (op.type == kByChannel && slot.name == kScaleOut) {
      read.push_back({std::string(kScaleIn), slot.args});
    }
    return true;
  });
  op.inputs.insert(op.inputs.end(), read.begin(), read.end());
}

}  // namespace

absl::StatusOr<Program> KeepScales(Program program) {
  if (!AnyOp(program, IsQuantizer)) return program;
  INTERP_RETURN_IF_ERROR(VerifyStructure(program));
  Declarations declarations(program);
  for (size_t b = 0; b < program.blocks.size(); ++b) {
    for (Op& op : program.blocks[b].ops) {
      if (IsQuantizer(op)) Keep(op, static_cast<int32_t>(b), declarations);
    }
    std::erase_if(program.blocks[b].ops,
                  [](const Op& op) { return IsQuantizer(op) && op.outputs.empty(); });
  }
  return program;
}

}  // namespace interp
