#include "passes/padded_weights.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/edit_op.h"
#include "passes/verify.h"

namespace interp {
namespace {

constexpr absl::string_view kPaddingWeights = "padding_weights";
constexpr int32_t kPadding = 4;

// The argument of `fc` that is padded, or null.
VarId* PaddedWeights(Op& op) {
  const Attr* const attr = op.type == "fc" ? op.FindAttr(kPaddingWeights) : nullptr;
  const bool* const padded = attr == nullptr ? nullptr : std::get_if<bool>(&attr->value);
  if (padded == nullptr || !*padded) return nullptr;
  for (Slot& slot : op.inputs) {
    if (slot.name == "W" && slot.args.size() == 1) return slot.args.data();
  }
  return nullptr;
}

// A name that the program does not have yet.
VarId UnusedName(Program& program, const std::string& base) {
  std::string name = base;
  for (int number = 1; program.Find(name) >= 0; ++number) name = absl::StrCat(base, "_", number);
  return program.Intern(name);
}

Op CropOp(VarId from, VarId to) {
  Op slice;
  slice.type = "slice";
  AddInput(slice, "Input", {from});
  AddOutput(slice, "Out", {to});
  SetAttr(slice, "axes", std::vector<int32_t>{0, 1});
  SetAttr(slice, "starts", std::vector<int32_t>{0, 0});
  SetAttr(slice, "ends", std::vector<int32_t>{-kPadding, -kPadding});
  SetAttr(slice, "infer_flags", std::vector<int32_t>{1, 1});
  SetAttr(slice, "decrease_axis", std::vector<int32_t>{});
  return slice;
}

DType DeclaredDType(const Program& program, VarId id) {
  for (const Block& block : program.blocks) {
    for (const Var& var : block.vars) {
      if (var.id == id) return var.dtype;
    }
  }
  return DType::kUndefined;
}

void Crop(Program& program, Block& block) {
  std::vector<Op> ops;
  ops.reserve(block.ops.size() + 1);
  absl::flat_hash_map<VarId, VarId> cropped;  // by padded weights
  for (Op& op : block.ops) {
    if (VarId* const weights = PaddedWeights(op)) {
      const auto [it, first] = cropped.try_emplace(*weights, -1);
      if (first) {
        it->second = UnusedName(program, absl::StrCat(program.NameOf(*weights), "@UNPADDED"));
        block.vars.push_back(
            {.id = it->second, .dtype = DeclaredDType(program, *weights), .dims = {-1, -1}});
        ops.push_back(CropOp(*weights, it->second));
      }
      *weights = it->second;
      SetAttr(op, kPaddingWeights, false);
    }
    ops.push_back(std::move(op));
  }
  block.ops = std::move(ops);
}

}  // namespace

absl::StatusOr<Program> CropPaddedWeights(Program program, const PassContext& /*context*/) {
  const auto padded = [](Op& op) { return PaddedWeights(op) != nullptr; };
  for (Block& block : program.blocks) {
    if (std::none_of(block.ops.begin(), block.ops.end(), padded)) continue;
    INTERP_RETURN_IF_ERROR(VerifyStructure(program));
    Crop(program, block);
  }
  return program;
}

}  // namespace interp
