#include "passes/array_ops.h"

#include <algorithm>
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
constexpr ArrayForms kForms[] = {
    {"slice", "Input", "slice_array", "slice_array_dense"},
    {"slice_grad", "Input", "slice_array_grad", "slice_array_dense_grad"},
    {"strided_slice", "Input", "strided_slice_array", ""},
    {"strided_slice_grad", "Input", "strided_slice_array_grad", ""},
    {"reverse", "X", "reverse_array", ""},
};

const ArrayForms* FindForms(const Op& op) {
  const auto* const forms =
      std::find_if(std::begin(kForms), std::end(kForms),
                   [&op](const ArrayForms& each) { return each.type == op.type; });
  return forms == std::end(kForms) ? nullptr : forms;
}

// By VarId: whether a block declares an array of that name.
std::vector<bool> FindArrays(const Program& program) {
  std::vector<bool> arrays(program.names.size(), false);
  for (const Block& block : program.blocks) {
    for (const Var& var : block.vars) {
      if (var.kind == VarKind::kLodTensorArray) arrays[var.id] = true;
    }
  }
  return arrays;
}

bool HoldsArray(const Slot* slot, const std::vector<bool>& arrays) {
  return slot != nullptr && std::any_of(slot->args.begin(), slot->args.end(),
                                        [&arrays](VarId id) { return arrays[id]; });
}

}  // namespace

absl::StatusOr<Program> NameArrayOps(Program program, const PassContext& /*context*/) {
  const std::vector<bool> arrays = FindArrays(program);
  if (std::find(arrays.begin(), arrays.end(), true) == arrays.end()) return program;
  for (Block& block : program.blocks) {
    for (Op& op : block.ops) {
      const ArrayForms* const forms = FindForms(op);
      if (forms == nullptr || !HoldsArray(op.FindInput(forms->slot), arrays)) continue;
      const bool gives_array = forms->element.empty() || HoldsArray(op.FindOutput("Out"), arrays) ||
                               HoldsArray(op.FindInput("Out@GRAD"), arrays);
      op.type = std::string(gives_array ? forms->array : forms->element);
    }
  }
  return program;
}

}  // namespace interp
