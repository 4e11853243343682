#include "passes/simplify.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "core/attr_reader.h"
#include "core/each_argument.h"
#include "passes/op_effects.h"
#include "passes/quant/quantizers.h"
#include "passes/quant/split_writes.h"
#include "passes/value_dtypes.h"
#include "passes/var_uses.h"

namespace interp {
namespace {

// What IsIdentity looks at.
constexpr absl::string_view kCandidates[] = {"assign",
                                             "concat",
                                             "sum",
                                             "cast",
                                             "scale",
                                             "dropout",
                                             "quantize_linear",
                                             "dequantize_linear",
                                             "moving_average_abs_max_scale"};

// The only argument of a slot, nullopt for none or several.
std::optional<VarId> OnlyArgument(const Slot* slot) {
  if (slot == nullptr || slot->args.size() != 1) return std::nullopt;
  return slot->args[0];
}

bool NoOtherArguments(const std::vector<Slot>& slots, absl::string_view name) {
  for (const Slot& slot : slots) {
    if (slot.name != name && !slot.args.empty()) return false;
  }
  return true;
}

bool IsScaleByOne(const Op& op) {
  AttrReader attrs(op);
  const bool one = attrs.Float("scale", 1) == 1 && attrs.Float("bias", 0) == 0;
  return one && attrs.status().ok();
}

// Whether training, not tests, makes up for what dropout drops: a name, or a flag in programs
// before Paddle 1.5.
bool UpscalesInTrain(const Op& op) {
  const Attr* const attr = op.FindAttr("dropout_implementation");
  if (attr == nullptr) return false;
  if (const bool* const flag = std::get_if<bool>(&attr->value)) return *flag;
  const auto* const name = std::get_if<std::string>(&attr->value);
  return name != nullptr && *name == "upscale_in_train";
}

bool IsIdleDropout(const Op& op) {
  AttrReader attrs(op);
  const bool test = attrs.Bool("is_test", false);
  const bool upscaled = UpscalesInTrain(op);
  const bool certain = attrs.Float("dropout_prob", 0.5F) == 0;
  return test && (upscaled || certain) && attrs.status().ok();
}

// An op that hands X on and keeps the scale that training left; its other inputs do not count.
bool IsIdleObserver(const Op& op) {
  AttrReader attrs(op);
  if (op.type == "moving_average_abs_max_scale") {
    return attrs.Bool("is_test", false) && attrs.status().ok();
  }
  if (!IsLinearQuantizer(op)) return false;
  const bool idle = attrs.Bool("only_observer", false) && attrs.Bool("is_test", true);
  return idle && attrs.status().ok();
}

// The slot of the output that equals X.
absl::string_view ResultSlot(const Op& op) { return IsLinearQuantizer(op) ? "Y" : "Out"; }

bool IsCastTo(const Op& op, DType dtype) {
  AttrReader attrs(op);
  return op.type == "cast" && attrs.Type("out_dtype", dtype) == dtype && attrs.status().ok();
}

// Whether Out equals an X of elements of that dtype, given that no other input is present.
bool IsIdentity(const Op& op, DType dtype) {
  if (op.type == "assign" || op.type == "concat" || op.type == "sum") return true;
  if (op.type == "cast") return dtype != DType::kUndefined && IsCastTo(op, dtype);
  return op.type == "scale" ? IsScaleByOne(op) : op.type == "dropout" && IsIdleDropout(op);
}

// Follows which variables have become one.
class Simplifier {
 public:
  Simplifier(const Program& program, const OpRegistry& ops)
      : uses_(FindVarUses(program, ops)), names_(uses_.size()) {
    std::iota(names_.begin(), names_.end(), 0);
    if (HasDeclaredIdentity(program)) dtypes_.emplace(program, uses_, ops);
  }

  // Returns true when the op at `index` is to go, after noting that its two variables are one.
  bool TryRemove(const Op& op, int32_t index) {
    const std::optional<VarId> x = OnlyArgument(op.FindInput("X"));
    const std::optional<VarId> out = OnlyArgument(op.FindOutput(ResultSlot(op)));
    if (!x.has_value() || !out.has_value() || !SameType(*x, *out)) return false;
    const bool plain = NoOtherArguments(op.inputs, "X") && IsIdentity(op, DTypeOf(*x));
    if (!plain && !IsIdleObserver(op)) return false;
    if (!OthersUnused(op)) return false;
    const VarId in = Rename(*x);
    // Only a variable with one value can stand for another.
    const bool in_sub_blocks = uses_[in].block == VarUse::kSeveralBlocks;
    if (uses_[in].writes > (in_sub_blocks ? 0 : 1) || uses_[in].last_write > index) return false;
    if (uses_[*out].writes != 1 || uses_[*out].first != index) return false;
    if (!uses_[*out].pinned()) {
      names_[*out] = in;
      return true;
    }
    // The value gets the name of the output from the start.
    if (uses_[in].pinned() || uses_[in].read_first || IsShared(uses_[*out])) return false;
    names_[in] = *out;
    uses_[*out].last_write = uses_[in].last_write;
    return true;
  }

  // Goes past an op of the program as it was.
  void Pass(const Op& op) {
    if (dtypes_.has_value()) dtypes_->Pass(op);
  }

  VarId Rename(VarId id) {
    while (names_[id] != id) id = names_[id] = names_[names_[id]];
    return id;
  }

 private:
  // Memory of others: a value may not appear in it earlier than the program says.
  static bool IsShared(const VarUse& use) {
    return use.persistable || use.fed || use.block == VarUse::kSeveralBlocks;
  }

  // Whether a cast says nothing else than the declarations do. They may be wrong, and only then it
  // is worth to follow what the ops make.
  bool HasDeclaredIdentity(const Program& program) const {
    const std::vector<Op>& ops = program.blocks[0].ops;
    return std::any_of(ops.begin(), ops.end(), [&](const Op& op) {
      if (op.type != "cast") return false;
      const std::optional<VarId> x = OnlyArgument(op.FindInput("X"));
      return x.has_value() && uses_[*x].var != nullptr && IsCastTo(op, uses_[*x].var->dtype);
    });
  }

  DType DTypeOf(VarId id) const {
    return dtypes_.has_value() ? dtypes_->Of(id) : uses_[id].var->dtype;
  }

  bool SameType(VarId x, VarId out) const {
    const Var* a = uses_[x].var;
    const Var* b = uses_[out].var;
    return a != nullptr && b != nullptr && a->kind == VarKind::kLodTensor && b->kind == a->kind &&
           a->dtype == b->dtype && a->dtype != DType::kUndefined;
  }

  // Outputs other than the result (dropout's Mask) are written only to be thrown away.
  bool OthersUnused(const Op& op) const {
    for (const Slot& slot : op.outputs) {
      if (slot.name == ResultSlot(op)) continue;
      for (const VarId id : slot.args) {
        if (uses_[id].mentions > 1 || uses_[id].pinned()) return false;
      }
    }
    return true;
  }

  std::vector<VarUse> uses_;
  std::optional<ValueDTypes> dtypes_;  // where a cast asks for them
  std::vector<VarId> names_;           // by VarId: the variable it has become, in steps
};

}  // namespace

absl::StatusOr<Program> Simplify(Program program, const PassContext& context) {
  if (!HasOpOf(program, kCandidates)) return program;
  // Ops that observe write what those that quantise have written.
  if (absl::c_any_of(program.blocks[0].ops, IsIdleObserver)) {
    program = SplitQuantizers(std::move(program), context.ops);
  }
  Simplifier simplifier(program, context.ops);
  std::vector<Op> old = std::move(program.blocks[0].ops);
  std::vector<Op> ops;
  ops.reserve(old.size());
  for (size_t i = 0; i < old.size(); ++i) {
    const bool removed = simplifier.TryRemove(old[i], static_cast<int32_t>(i));
    simplifier.Pass(old[i]);
    if (!removed) ops.push_back(std::move(old[i]));
  }
  for (Op& op : ops) {
    for (std::vector<Slot>* slots : {&op.inputs, &op.outputs}) {
      for (VarId& id : EachArgument(*slots)) id = simplifier.Rename(id);
    }
  }
  program.blocks[0].ops = std::move(ops);
  return program;
}

}  // namespace interp
