#include "passes/import/array_ops.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace interp {
namespace {

// An op that has forms for arrays.
struct ArrayForms {
  absl::string_view type;
  absl::string_view slot;     // of the array that it takes
  absl::string_view array;    // the form whose Out is an array
  absl::string_view element;  // the form whose Out is a tensor; "": there is none
};
constexpr absl::string_view kFillLikeArray = "fill_any_like_array";
constexpr ArrayForms kForms[] = {
    {"slice", "Input", "slice_array", "slice_array_dense"},
    {"slice_grad", "Input", "slice_array_grad", "slice_array_dense_grad"},
    {"strided_slice", "Input", "strided_slice_array", ""},
    {"strided_slice_grad", "Input", "strided_slice_array_grad", ""},
    {"reverse", "X", "reverse_array", ""},
    {"fill_any_like", "X", kFillLikeArray, ""},
};

const ArrayForms* FindForms(const Op& op) {
  const auto* const forms =
      std::find_if(std::begin(kForms), std::end(kForms),
                   [&op](const ArrayForms& each) { return each.type == op.type; });
  return forms == std::end(kForms) ? nullptr : forms;
}

bool HoldsArray(const Slot* slot, const std::vector<bool>& arrays) {
  return slot != nullptr && std::any_of(slot->args.begin(), slot->args.end(),
                                        [&arrays](VarId id) { return arrays[id]; });
}

}  // namespace

std::vector<bool> FindArrays(const Program& program) {
  std::vector<bool> arrays(program.names.size(), false);
  for (const Block& block : program.blocks) {
    for (const Var& var : block.vars) {
      if (var.kind == VarKind::kLodTensorArray) arrays[var.id] = true;
    }
  }
  return arrays;
}

bool HasArrayForm(const Op& op) { return FindForms(op) != nullptr; }

void DeclareArrays(const std::vector<bool>& arrays, Program& program) {
  std::vector<bool> declared(arrays.size(), false);
  for (Block& block : program.blocks) {
    for (Var& var : block.vars) {
      if (!arrays[var.id]) continue;
      declared[var.id] = true;
      if (var.kind != VarKind::kLodTensor) continue;
      var.kind = VarKind::kLodTensorArray;
      var.wire.clear();
    }
  }
  for (VarId id = 0; id < std::ssize(arrays); ++id) {
    if (!arrays[id] || declared[id]) continue;
    Var var;
    var.id = id;
    var.kind = VarKind::kLodTensorArray;
    program.blocks[0].vars.push_back(std::move(var));
  }
}

absl::StatusOr<Program> NameArrayOps(Program program, const PassContext& /*context*/) {
  std::vector<bool> arrays = FindArrays(program);
  if (std::find(arrays.begin(), arrays.end(), true) == arrays.end()) return program;
  const VarId empty = program.Find(kEmptyVarName);
  std::vector<bool> filled(program.names.size(), false);
  for (Block& block : program.blocks) {
    for (Op& op : block.ops) {
      const ArrayForms* const forms = FindForms(op);
      if (forms == nullptr || !HoldsArray(op.FindInput(forms->slot), arrays)) continue;
      const bool gives_array = forms->element.empty() || HoldsArray(op.FindOutput("Out"), arrays) ||
                               HoldsArray(op.FindInput("Out@GRAD"), arrays);
      op.type = std::string(gives_array ? forms->array : forms->element);
      const Slot* const out = op.FindOutput("Out");
      if (op.type != kFillLikeArray || out == nullptr) continue;
      for (const VarId id : out->args) filled[id] = arrays[id] = id != empty;
    }
  }
  // Paddle declares the gradient of an array that nothing makes as a tensor, or not at all.
  DeclareArrays(filled, program);
  return program;
}

}  // namespace interp
