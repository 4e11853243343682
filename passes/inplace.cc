#include "passes/inplace.h"

#include <algorithm>
#include <optional>

#include "core/base/disjoint_sets.h"
#include "core/each_argument.h"
#include "passes/op_effects.h"
#include "passes/var_uses.h"

namespace interp {
namespace {

// Variables that share memory, and what holds for all of them together. By VarId.
class Groups {
 public:
  explicit Groups(const std::vector<VarUse>& uses) : sets_(uses.size()), groups_(uses.size()) {
    for (size_t v = 0; v < uses.size(); ++v) {
      groups_[v] = {.last = uses[v].last,
                    .last_write = uses[v].last_write,
                    .held_elsewhere = uses[v].fed || uses[v].persistable ||
                                      uses[v].block == VarUse::kSeveralBlocks};
    }
  }

  struct Group {
    int32_t last = -1;        // position of the last use of any of them
    int32_t last_write = -1;  // and of the last write
    // Somebody but the ops of the block refers to the memory: it may not be written over.
    bool held_elsewhere = false;
  };

  VarId Root(VarId v) { return sets_.Root(v); }
  Group& Of(VarId v) { return groups_[Root(v)]; }

  void Join(VarId a, VarId b) {
    a = Root(a);
    b = Root(b);
    if (a == b) return;
    sets_.Join(a, b);
    groups_[a].last = std::max(groups_[a].last, groups_[b].last);
    groups_[a].last_write = std::max(groups_[a].last_write, groups_[b].last_write);
    groups_[a].held_elsewhere |= groups_[b].held_elsewhere;
  }

 private:
  DisjointSets sets_;
  std::vector<Group> groups_;  // valid at roots
};

// An argument and its position among all arguments of its side.
struct InplaceArgument {
  VarId id = -1;
  int32_t position = -1;
};

// The first argument of the slot.
std::optional<InplaceArgument> FirstArgument(const std::vector<Slot>& slots,
                                             absl::string_view name) {
  int32_t position = 0;
  for (const Slot& slot : slots) {
    if (slot.name == name && !slot.args.empty()) return InplaceArgument{slot.args[0], position};
    position += static_cast<int32_t>(slot.args.size());
  }
  return std::nullopt;
}

// The product of the dims, nullopt when one is unknown or the product does not fit.
std::optional<int64_t> KnownNumel(const Var& var) {
  int64_t numel = 1;
  for (const int64_t dim : var.dims) {
    if (dim < 0 || __builtin_mul_overflow(numel, dim, &numel)) return std::nullopt;
  }
  return numel;
}

bool SizesMayBeEqual(const Var& a, const Var& b) {
  const std::optional<int64_t> x = KnownNumel(a);
  const std::optional<int64_t> y = KnownNumel(b);
  return !x.has_value() || !y.has_value() || *x == *y;
}

class Marker {
 public:
  Marker(const Program& program, const OpRegistry& ops)
      : ops_(ops),
        uses_(FindVarUses(program, ops)),
        empty_(program.Find(kEmptyVarName)),
        groups_(uses_),
        written_(uses_.size()) {}

  void MarkBlock(Block& block) {
    for (size_t i = 0; i < block.ops.size(); ++i) {
      index_ = static_cast<int32_t>(i);
      MarkOp(block.ops[i]);
    }
  }

 private:
  void MarkOp(Op& op) {
    op.inplace.clear();
    const OpDef* def = ops_.Find(op.type);
    HoldUnwrittenInputs(op);
    if (MaySecretlyShare(op, def)) {
      HoldArguments(op);
    } else {
      for (const SharePair& pair : def->view) TryPair(op, *def, pair, /*view=*/true);
      for (const SharePair& pair : def->inplace) TryPair(op, *def, pair, /*view=*/false);
    }
    for (const VarId id : EachArgument(op.outputs)) written_[id] = true;
  }

  // A value from outside, or of the previous iteration.
  void HoldUnwrittenInputs(const Op& op) {
    for (const VarId id : EachArgument(op.inputs)) {
      if (!written_[id]) groups_.Of(id).held_elsewhere = true;
    }
  }

  void HoldArguments(const Op& op) {
    for (const std::vector<Slot>* slots : {&op.inputs, &op.outputs}) {
      for (const VarId id : EachArgument(*slots)) groups_.Of(id).held_elsewhere = true;
    }
  }

  void TryPair(Op& op, const OpDef& def, const SharePair& pair, bool view) {
    const std::optional<InplaceArgument> in = FirstArgument(op.inputs, def.inputs[pair.input].name);
    const std::optional<InplaceArgument> out =
        FirstArgument(op.outputs, def.outputs[pair.output].name);
    if (!in.has_value() || !out.has_value() || !IsCandidate(in->id) || !IsCandidate(out->id)) {
      return;
    }
    if ((def.inputs[pair.input].flags & kNoNeedBuffer) != 0 || IsTaken(op, *in, *out)) return;
    const VarUse& out_use = uses_[out->id];
    const Var& in_var = *uses_[in->id].var;
    if (out_use.persistable || out_use.first != index_ || Reads(op, def, out->id) > 0) return;
    if (in_var.dtype != out_use.var->dtype || !SizesMayBeEqual(in_var, *out_use.var)) return;
    if (view ? !MayView(in->id, out->id) : !MayWriteOver(op, def, in->id)) return;
    op.inplace.push_back({in->position, out->position});
    groups_.Join(in->id, out->id);
  }

  bool IsCandidate(VarId id) const {
    const VarUse& use = uses_[id];
    return id != empty_ && use.block != VarUse::kSeveralBlocks && use.var != nullptr &&
           use.var->kind == VarKind::kLodTensor && use.var->dtype != DType::kUndefined;
  }

  static bool IsTaken(const Op& op, const InplaceArgument& in, const InplaceArgument& out) {
    return std::any_of(op.inplace.begin(), op.inplace.end(), [&](const InplacePair& pair) {
      return pair.input == in.position || pair.output == out.position;
    });
  }

  // How many inputs of the op read memory of the variable's group.
  int Reads(const Op& op, const OpDef& def, VarId id) {
    int reads = 0;
    for (const Slot& slot : op.inputs) {
      if (!ReadsMemory(&def, slot)) continue;
      for (const VarId arg : slot.args) reads += groups_.Root(arg) == groups_.Root(id);
    }
    return reads;
  }

  bool MayView(VarId in, VarId out) {
    return groups_.Of(in).last_write < index_ && groups_.Of(out).last_write == index_;
  }

  bool MayWriteOver(const Op& op, const OpDef& def, VarId in) {
    const Groups::Group& group = groups_.Of(in);
    return !group.held_elsewhere && group.last == index_ && group.last_write < index_ &&
           Reads(op, def, in) == 1;
  }

  const OpRegistry& ops_;
  const std::vector<VarUse> uses_;
  const VarId empty_;
  Groups groups_;
  std::vector<bool> written_;  // by an op before; candidates are used by one block only
  int32_t index_ = 0;          // of the current op
};

}  // namespace

absl::StatusOr<Program> MarkInplace(Program program, const PassContext& context) {
  Marker marker(program, context.ops);
  for (Block& block : program.blocks) marker.MarkBlock(block);
  return program;
}

}  // namespace interp
