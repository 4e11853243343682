#include <algorithm>
#include <optional>

#include "core/any_op.h"
#include "core/each_argument.h"
#include "core/program_print.h"
#include "passes/op_effects.h"
#include "passes/var_uses.h"
#include "passes/verify.h"

namespace interp {
namespace {

// Argument at a flattened position, and the definition's position of its slot when the argument is
// the first of that slot, else -1.
struct Argument {
  VarId id = -1;
  int slot = -1;
};

template <typename SlotPosition>
std::optional<Argument> FindArgument(const std::vector<Slot>& slots, int32_t position,
                                     SlotPosition slot_position) {
  for (const Slot& slot : slots) {
    if (position >= 0 && position < std::ssize(slot.args)) {
      return Argument{slot.args[position], position == 0 ? slot_position(slot.name) : -1};
    }
    position -= static_cast<int32_t>(slot.args.size());
  }
  return std::nullopt;
}

struct BoundPair {
  VarId in;
  VarId out;
  bool view;
};

bool Lists(const std::vector<SharePair>& pairs, int input, int output) {
  return std::any_of(pairs.begin(), pairs.end(), [=](const SharePair& pair) {
    return pair.input == input && pair.output == output;
  });
}

// Somebody other than the ops of one block holds on to the variable's memory.
bool IsShared(const VarUse& use) {
  return use.fed || use.persistable || use.block == VarUse::kSeveralBlocks;
}

bool HasPairs(const Op& op) { return !op.inplace.empty(); }

// Follows the memory of the variables of one block at a time.
class MemoryTracker {
 public:
  MemoryTracker(const Program& program, const OpRegistry& ops)
      : program_(program),
        ops_(ops),
        uses_(FindVarUses(program, ops)),
        empty_(program.Find(kEmptyVarName)),
        refs_(program.names.size()) {}

  absl::Status Run() {
    for (size_t b = 0; b < program_.blocks.size(); ++b) {
      block_ = static_cast<int32_t>(b);
      touched_.clear();
      for (size_t i = 0; i < program_.blocks[b].ops.size(); ++i) {
        const absl::Status status = RunOp(program_.blocks[b].ops[i], static_cast<int32_t>(i));
        if (!status.ok()) return Annotate(status, DescribeOp(program_, b, i));
      }
      INTERP_RETURN_IF_ERROR(CheckEnd());
    }
    return absl::OkStatus();
  }

 private:
  // Some memory; `state` counts how often it was written over.
  struct Memory {
    int32_t state = 0;
    int32_t last_writer = -1;
    bool from_outside = false;
  };
  // What a variable of the current block refers to.
  struct Ref {
    int32_t block = -1;  // other blocks' entries are void
    int32_t memory = -1;
    int32_t state = 0;
  };

  Ref& RefOf(VarId id) {
    Ref& ref = refs_[id];
    if (ref.block != block_) {  // read before any write: the value comes from outside
      Refer(id, NewMemory(/*from_outside=*/true));
    }
    return ref;
  }
  int32_t NewMemory(bool from_outside) {
    memory_.push_back({.from_outside = from_outside});
    return static_cast<int32_t>(memory_.size()) - 1;
  }
  void Refer(VarId id, int32_t memory) {
    if (refs_[id].block != block_) touched_.push_back(id);
    refs_[id] = {block_, memory, memory_[memory].state};
  }
  bool IsStale(VarId id) { return RefOf(id).state != memory_[refs_[id].memory].state; }
  std::string Overwriter(VarId id) const {
    const int32_t writer = memory_[refs_[id].memory].last_writer;
    return absl::StrCat("op #", writer, " ", program_.blocks[block_].ops[writer].type);
  }

  absl::Status RunOp(const Op& op, int32_t index) {
    const OpDef* def = ops_.Find(op.type);
    for (const Slot& slot : op.inputs) {
      if (!ReadsMemory(def, slot)) continue;
      for (const VarId id : slot.args) {
        if (id == empty_ || !IsStale(id)) continue;
        return InvalidArgument("input '", slot.name, "' is '", program_.NameOf(id),
                               "', whose memory ", Overwriter(id), " wrote over");
      }
    }
    std::vector<BoundPair> pairs;
    for (const InplacePair& pair : op.inplace) {
      INTERP_ASSIGN_OR_RETURN(const BoundPair bound, Bind(op, def, pair));
      for (const BoundPair& other : pairs) {
        if (other.in == bound.in || other.out == bound.out) {
          return InvalidArgument("has '",
                                 program_.NameOf(other.in == bound.in ? bound.in : bound.out),
                                 "' in two in-place pairs");
        }
      }
      pairs.push_back(bound);
    }
    for (const BoundPair& pair : pairs) INTERP_RETURN_IF_ERROR(CheckHarmless(op, def, pair));
    WriteOutputs(op, def, pairs, index);
    return absl::OkStatus();
  }

  absl::StatusOr<BoundPair> Bind(const Op& op, const OpDef* def, const InplacePair& pair) const {
    if (def == nullptr) return InvalidArgument("has an in-place pair, but no definition");
    const auto in = FindArgument(op.inputs, pair.input,
                                 [def](absl::string_view name) { return def->InputIndex(name); });
    const auto out = FindArgument(op.outputs, pair.output,
                                  [def](absl::string_view name) { return def->OutputIndex(name); });
    if (!in.has_value() || !out.has_value()) {
      return InvalidArgument("in-place pair ", pair.input, "->", pair.output, " is out of range");
    }
    const bool view = Lists(def->view, in->slot, out->slot);
    if (!view && !Lists(def->inplace, in->slot, out->slot)) {
      return InvalidArgument("in-place pair '", program_.NameOf(in->id), "' -> '",
                             program_.NameOf(out->id), "' is not in the op's definition");
    }
    INTERP_RETURN_IF_ERROR(CheckVars(in->id, out->id));
    return BoundPair{in->id, out->id, view};
  }

  absl::Status CheckVars(VarId in, VarId out) const {
    for (const VarId id : {in, out}) {
      const VarUse& use = uses_[id];
      if (use.block == VarUse::kSeveralBlocks || use.var == nullptr) {
        return InvalidArgument("in-place pair has '", program_.NameOf(id), "', which is ",
                               use.var == nullptr ? "not declared" : "used by several blocks");
      }
    }
    if (in == out) return InvalidArgument("in-place pair has '", program_.NameOf(in), "' twice");
    if (uses_[out].persistable) {
      return InvalidArgument("in-place pair gives memory to persistable '", program_.NameOf(out),
                             "'");
    }
    if (uses_[in].var->dtype != uses_[out].var->dtype) {
      return InvalidArgument("in-place pair joins ", Name(uses_[in].var->dtype), " '",
                             program_.NameOf(in), "' and ", Name(uses_[out].var->dtype), " '",
                             program_.NameOf(out), "'");
    }
    return absl::OkStatus();
  }

  // Writing over the input must not be seen by another input of the op, nor from outside.
  absl::Status CheckHarmless(const Op& op, const OpDef* def, const BoundPair& pair) {
    const int32_t memory = RefOf(pair.in).memory;
    if (pair.view) return absl::OkStatus();
    if (memory_[memory].from_outside || uses_[pair.in].persistable || uses_[pair.in].fed) {
      return InvalidArgument("writes over '", program_.NameOf(pair.in),
                             "', whose memory comes from outside");
    }
    int readers = 0;
    for (const Slot& slot : op.inputs) {
      if (!ReadsMemory(def, slot)) continue;
      for (const VarId id : slot.args) readers += id != empty_ && RefOf(id).memory == memory;
    }
    if (readers > 1) {
      return InvalidArgument("writes over '", program_.NameOf(pair.in),
                             "', whose memory it reads twice");
    }
    return absl::OkStatus();
  }

  void WriteOver(VarId id, int32_t memory, int32_t index) {
    ++memory_[memory].state;
    memory_[memory].last_writer = index;
    Refer(id, memory);
  }

  void WriteOutputs(const Op& op, const OpDef* def, const std::vector<BoundPair>& pairs,
                    int32_t index) {
    const bool outside = MaySecretlyShare(op, def);
    for (const VarId id : EachArgument(op.outputs)) {
      if (id == empty_ || LeavesUntouched(op, id)) continue;
      const auto pair = std::find_if(pairs.begin(), pairs.end(),
                                     [id](const BoundPair& p) { return p.out == id; });
      const bool updates = refs_[id].block == block_;  // the old memory may be used again
      if (pair == pairs.end() && updates) {
        WriteOver(id, refs_[id].memory, index);
      } else if (pair == pairs.end()) {
        Refer(id, NewMemory(outside || IsShared(uses_[id])));
      } else if (pair->view) {
        refs_[id] = RefOf(pair->in);
        touched_.push_back(id);
      } else {
        WriteOver(id, RefOf(pair->in).memory, index);
      }
    }
    if (outside) MarkInputsOutside(op);
  }

  // A tensor array may share the memory of what was put into it.
  void MarkInputsOutside(const Op& op) {
    for (const VarId id : EachArgument(op.inputs)) {
      if (id != empty_) memory_[RefOf(id).memory].from_outside = true;
    }
  }

  absl::Status CheckEnd() {
    for (const VarId id : touched_) {
      if (uses_[id].pinned() && IsStale(id)) {
        return InvalidArgument("block ", block_, ": '", program_.NameOf(id),
                               "' is needed after the run, but ", Overwriter(id),
                               " wrote over its memory");
      }
    }
    return absl::OkStatus();
  }

  const Program& program_;
  const OpRegistry& ops_;
  const std::vector<VarUse> uses_;
  const VarId empty_;
  int32_t block_ = 0;
  std::vector<Ref> refs_;       // by VarId
  std::vector<Memory> memory_;  // of all blocks
  std::vector<VarId> touched_;  // variables with a reference in this block
};

}  // namespace

absl::Status VerifyInplace(const Program& program, const OpRegistry& ops) {
  // Without sharing there is nothing to spoil.
  if (!AnyOp(program, HasPairs)) return absl::OkStatus();
  return MemoryTracker(program, ops).Run();
}

}  // namespace interp
