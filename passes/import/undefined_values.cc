#include "passes/import/undefined_values.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "core/any_op.h"
#include "core/attr_reader.h"
#include "core/base/disjoint_sets.h"
#include "core/each_argument.h"
#include "core/edit_op.h"
#include "core/gradient.h"
#include "core/sub_blocks.h"
#include "passes/import/array_ops.h"
#include "passes/import/branch_dtypes.h"

namespace interp {
namespace {

constexpr double kUndefined = 1.77113e+27;  // RETURN_NO_VALUE_MAGIC_NUM

bool IsUndefinedValue(const Op& op) {
  if (op.type != "assign_value") return false;
  const Slot* const out = op.FindOutput("Out");
  if (out == nullptr || out->args.size() != 1) return false;
  AttrReader attrs(op);
  if (attrs.Type("dtype", DType::kFloat32) != DType::kFloat32) return false;
  std::vector<double> values = attrs.Doubles("fp32_values");
  if (values.empty()) values = attrs.Doubles("values");
  return attrs.status().ok() && values.size() == 1 && std::abs(values[0] / kUndefined - 1) < 1e-4;
}

bool PassesOn(const Op& op) { return op.type == "assign" || op.type == "select_input"; }

// Variables that hold the same values in turn, and the widest dtype of those values.
class ValueGroups {
 public:
  explicit ValueGroups(size_t num_vars) : sets_(num_vars), types_(num_vars) {}

  void Join(VarId a, VarId b) { sets_.Join(a, b); }

  // REQUIRES: nothing is joined any more.
  void NoteDType(VarId var, DType dtype) {
    Types& types = types_[sets_.Root(var)];
    types.dtype = Wider(types.dtype, dtype);
  }
  // The widest; kUndefined: none is known.
  DType DTypeOf(VarId var) { return types_[sets_.Root(var)].dtype; }

  void NoteArray(VarId var) { types_[sets_.Root(var)].array = true; }
  void NoteTensor(VarId var) { types_[sets_.Root(var)].tensor = true; }
  // Arrays and undefined values, nothing else.
  bool OfArrays(VarId var) {
    const Types& types = types_[sets_.Root(var)];
    return types.array && !types.tensor;
  }

  // Of undefined values in the group.
  void NoteChange(VarId var) { types_[sets_.Root(var)].changed = true; }
  bool Changed(VarId var) { return types_[sets_.Root(var)].changed; }

 private:
  struct Types {
    DType dtype = DType::kUndefined;
    bool array = false;
    bool tensor = false;
    bool changed = false;
  };

  DisjointSets sets_;
  std::vector<Types> types_;
};

template <typename Visit>
void ForEachOp(Program& program, const Visit& visit) {
  for (Block& block : program.blocks) {
    for (Op& op : block.ops) visit(op);
  }
}

ValueGroups FindGroups(Program& program) {
  ValueGroups groups(program.names.size());
  std::vector<bool> written(program.names.size(), false);
  ForEachOp(program, [&](const Op& op) {
    const Slot* const out = op.FindOutput("Out");
    const Slot* const x = op.FindInput("X");
    if (PassesOn(op) && x != nullptr && out != nullptr && !out->args.empty()) {
      for (const VarId arg : x->args) groups.Join(arg, out->args[0]);
    }
    for (const VarId arg : EachArgument(op.outputs)) written[arg] = true;
  });
  std::vector<DType> declared(program.names.size(), DType::kUndefined);
  for (const Block& block : program.blocks) {
    for (const Var& var : block.vars) {
      if (var.kind != VarKind::kLodTensor) continue;
      declared[var.id] = var.dtype;
      if (!written[var.id]) groups.NoteDType(var.id, var.dtype);
    }
  }
  ForEachOp(program, [&](const Op& op) {
    if (PassesOn(op) || HasSubBlock(op) || IsUndefinedValue(op)) return;
    for (const VarId arg : EachArgument(op.outputs)) groups.NoteDType(arg, declared[arg]);
  });
  return groups;
}

// The attribute of assign_value that lists integers of a dtype; none: it is of something else.
std::optional<std::pair<absl::string_view, AttrValue>> ListOf(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return std::pair{"bool_values", AttrValue(std::vector<int32_t>{0})};
    case DType::kInt32:
      return std::pair{"int32_values", AttrValue(std::vector<int32_t>{0})};
    case DType::kInt64:
      return std::pair{"int64_values", AttrValue(std::vector<int64_t>{0})};
    default:
      return std::nullopt;
  }
}

// Whether slot `name` of the op takes arrays.
bool TakesArrays(const Op& op, absl::string_view name, const OpRegistry& ops) {
  if (PassesOn(op) || HasSubBlock(op) || HasArrayForm(op)) return true;
  const OpDef* const def = ops.Find(op.type);
  return def != nullptr &&
         std::any_of(def->inputs.begin(), def->inputs.end(), [&](const SlotDef& slot) {
           return slot.name == name && (slot.flags & (kTensorArray | kMayBeArray)) != 0;
         });
}

// Notes the arrays of all groups, and the tensors: what is fed, a parameter, computed by an op, or
// read by one that takes no array.
void NoteKinds(Program& program, const OpRegistry& ops, ValueGroups& groups) {
  const std::vector<bool> arrays = FindArrays(program);
  std::vector<bool> written(program.names.size(), false);
  ForEachOp(program, [&](const Op& op) {
    const bool computes = !PassesOn(op) && !HasSubBlock(op) && !IsUndefinedValue(op);
    for (const VarId id : EachArgument(op.outputs)) {
      written[id] = true;
      if (computes && !arrays[id]) groups.NoteTensor(id);
    }
    for (const Slot& slot : op.inputs) {
      if (TakesArrays(op, slot.name, ops)) continue;
      for (const VarId id : slot.args) groups.NoteTensor(id);
    }
  });
  for (const Block& block : program.blocks) {
    for (const Var& var : block.vars) {
      if (arrays[var.id]) groups.NoteArray(var.id);
      const bool from_outside = var.persistable || !written[var.id];
      if (!arrays[var.id] && from_outside) groups.NoteTensor(var.id);
    }
  }
}

// Undefined values that are chosen against arrays become arrays, which are empty without an op, and
// so does what they are passed on to.
void MakeUndefinedArrays(Program& program, const OpRegistry& ops, ValueGroups& groups) {
  NoteKinds(program, ops, groups);
  std::vector<bool> arrays(program.names.size(), false);
  for (Block& block : program.blocks) {
    std::erase_if(block.ops, [&](const Op& op) {
      return IsUndefinedValue(op) && groups.OfArrays(op.FindOutput("Out")->args[0]);
    });
  }
  for (VarId id = 0; id < std::ssize(arrays); ++id) arrays[id] = groups.OfArrays(id);
  DeclareArrays(arrays, program);
}

// The variable that `var` is a gradient of, by its name, or is itself.
VarId WithoutGradient(const Program& program, VarId var) {
  const absl::string_view name = program.NameOf(var);
  const size_t suffix = name.find(GradientName(""));
  const VarId base = suffix == name.npos ? -1 : program.Find(name.substr(0, suffix));
  return base < 0 ? var : base;
}

}  // namespace

absl::StatusOr<Program> TypeUndefinedValues(Program program, const PassContext& context) {
  if (!AnyOp(program, IsUndefinedValue)) return program;
  ValueGroups groups = FindGroups(program);
  MakeUndefinedArrays(program, context.ops, groups);
  ForEachOp(program, [&](Op& op) {
    if (!IsUndefinedValue(op)) return;
    const VarId out = op.FindOutput("Out")->args[0];
    const DType dtype = groups.DTypeOf(out);
    const auto list = ListOf(dtype);
    if (!list.has_value()) return;
    groups.NoteChange(out);
    std::erase_if(op.attrs, [](const Attr& attr) {
      return attr.name == "fp32_values" || attr.name == "values";
    });
    SetAttr(op, "dtype", static_cast<int32_t>(dtype));
    SetAttr(op, list->first, list->second);
  });
  // What such values are chosen for is declared in float32, too, and so are the gradients.
  for (Block& block : program.blocks) {
    for (Var& var : block.vars) {
      const bool may_change = var.kind == VarKind::kLodTensor && var.dtype == DType::kFloat32;
      const VarId value = groups.Changed(var.id) ? var.id : WithoutGradient(program, var.id);
      if (may_change && groups.Changed(value)) var.dtype = groups.DTypeOf(value);
    }
  }
  return program;
}

}  // namespace interp
