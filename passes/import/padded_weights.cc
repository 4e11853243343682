#include "passes/import/padded_weights.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/edit_op.h"
#include "passes/fresh_var.h"
#include "passes/make_op.h"
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

Op CropOp(VarId from, VarId to) {
  Op slice = MakeOp("slice", {{"Input", {from}}}, {{"Out", {to}}});
  SetAttr(slice, "axes", std::vector<int32_t>{0, 1});
  SetAttr(slice, "starts", std::vector<int32_t>{0, 0});
  SetAttr(slice, "ends", std::vector<int32_t>{-kPadding, -kPadding});
  SetAttr(slice, "infer_flags", std::vector<int32_t>{1, 1});
  SetAttr(slice, "decrease_axis", std::vector<int32_t>{});
  return slice;
}

// Paddle declares weights that it has padded without a dtype: they have that of the input.
void DeclareWeights(const std::vector<DType>& dtypes, const Op& op, VarId weights,
                    Program& program) {
  const Slot* const input = op.FindInput("Input");
  const bool known = input != nullptr && !input->args.empty();
  const DType dtype = known ? dtypes[input->args[0]] : DType::kUndefined;
  if (dtypes[weights] != DType::kUndefined || dtype == DType::kUndefined) return;
  for (Block& block : program.blocks) {
    for (Var& var : block.vars) {
      if (var.id != weights) continue;
      var.dtype = dtype;
      var.dims = {-1, -1};
    }
  }
}

// By VarId.
std::vector<DType> DeclaredDTypes(const Program& program) {
  std::vector<DType> dtypes(program.names.size(), DType::kUndefined);
  for (const Block& block : program.blocks) {
    for (const Var& var : block.vars) dtypes[var.id] = var.dtype;
  }
  return dtypes;
}

void Crop(const std::vector<DType>& dtypes, Program& program, Block& block, int64_t& next) {
  std::vector<Op> ops;
  for (Op& op : block.ops) {
    if (VarId* const weights = PaddedWeights(op)) {
      DeclareWeights(dtypes, op, *weights, program);
      const VarId cropped =
          FreshVar(program, absl::StrCat(program.NameOf(*weights), "@UNPADDED_"), next);
      block.vars.push_back({.id = cropped, .dtype = dtypes[*weights], .dims = {-1, -1}});
      ops.push_back(CropOp(*weights, cropped));
      *weights = cropped;
      SetAttr(op, kPaddingWeights, false);
    }
    ops.push_back(std::move(op));
  }
  block.ops = std::move(ops);
}

}  // namespace

absl::StatusOr<Program> CropPaddedWeights(Program program, const PassContext& /*context*/) {
  const auto padded = [](Op& op) { return PaddedWeights(op) != nullptr; };
  std::vector<DType> dtypes;
  int64_t next = 0;
  for (Block& block : program.blocks) {
    if (std::none_of(block.ops.begin(), block.ops.end(), padded)) continue;
    if (dtypes.empty()) {
      INTERP_RETURN_IF_ERROR(VerifyStructure(program));
      dtypes = DeclaredDTypes(program);
    }
    Crop(dtypes, program, block, next);
  }
  return program;
}

}  // namespace interp
