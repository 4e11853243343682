#include "passes/gradient_flow.h"

#include <algorithm>
#include <string>
#include <utility>

namespace interp {
namespace {

constexpr int kMaxDepth = 64;  // of blocks, as the interpreter has it

bool MayHaveGradient(const Var& var) {
  if (var.stop_gradient) return false;
  switch (var.dtype) {
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kFloat32:
    case DType::kFloat64:
    case DType::kUndefined:
      return true;
    default:
      return false;
  }
}

class FlowFinder {
 public:
  FlowFinder(const Program& program, const OpRegistry& ops)
      : program_(program), ops_(ops), open_(program.names.size(), true) {
    flow_.depends.assign(program.names.size(), false);
    flow_.reached.assign(program.names.size(), false);
    for (const Block& block : program.blocks) {
      for (const Var& var : block.vars) {
        if (!MayHaveGradient(var)) open_[var.id] = false;
      }
    }
  }

  absl::StatusOr<GradientFlow> Find(VarId target, const std::vector<VarId>& sources,
                                    const std::vector<VarId>& blocked) {
    INTERP_RETURN_IF_ERROR(CheckBlocks(0, 0));
    for (const VarId id : blocked) open_[id] = false;
    if (const VarId empty = program_.Find(kEmptyVarName); empty >= 0) open_[empty] = false;
    for (const VarId id : sources) flow_.depends[id] = open_[id];
    do {
      changed_ = false;
      INTERP_RETURN_IF_ERROR(Forward(0));
    } while (changed_);
    flow_.reached[target] = flow_.depends[target];
    do {
      changed_ = false;
      INTERP_RETURN_IF_ERROR(Backward(0));
    } while (changed_);
    return std::move(flow_);
  }

 private:
  absl::Status CheckBlocks(int32_t block, int depth) {
    if (depth > kMaxDepth) return Unimplemented("blocks are nested more than ", kMaxDepth, " deep");
    for (const Op& op : program_.blocks[block].ops) {
      const int32_t inner = SubBlockOf(ops_.Find(op.type), op);
      if (inner < 0) continue;
      if (inner == 0 || run_[inner]) {
        return Unimplemented("block ", inner, " is run by several ops or by itself");
      }
      run_[inner] = true;
      INTERP_RETURN_IF_ERROR(CheckBlocks(inner, depth + 1));
    }
    return absl::OkStatus();
  }

  bool AnyOf(const std::vector<bool>& set, const std::vector<Slot>& slots) const {
    return std::any_of(slots.begin(), slots.end(), [&](const Slot& slot) {
      return std::any_of(slot.args.begin(), slot.args.end(), [&](VarId id) { return set[id]; });
    });
  }
  void Add(std::vector<bool>& set, VarId id) {
    if (set[id]) return;
    set[id] = true;
    changed_ = true;
  }
  void AddDepending(const std::vector<Slot>& slots) {
    for (const Slot& slot : slots) {
      for (const VarId id : slot.args) {
        if (open_[id]) Add(flow_.depends, id);
      }
    }
  }
  void AddReached(const std::vector<Slot>& slots) {
    for (const Slot& slot : slots) {
      for (const VarId id : slot.args) {
        if (flow_.depends[id]) Add(flow_.reached, id);
      }
    }
  }

  absl::Status Forward(int32_t block) {
    for (const Op& op : program_.blocks[block].ops) {
      const OpDef* def = ops_.Find(op.type);
      if (def != nullptr && def->gradient.none) continue;
      const int32_t inner = SubBlockOf(def, op);
      if (inner >= 0) {
        INTERP_RETURN_IF_ERROR(ForwardInto(*def, op, inner));
      } else if (AnyOf(flow_.depends, op.inputs)) {
        AddDepending(op.outputs);
      }
    }
    return absl::OkStatus();
  }

  // Entries are as the inputs of the op. What it makes of results is not known here, so that any of
  // them counts for all outputs.
  absl::Status ForwardInto(const OpDef& def, const Op& op, int32_t inner) {
    INTERP_ASSIGN_OR_RETURN(const Interface common, InterfaceOf(def, op));
    if (AnyOf(flow_.depends, op.inputs)) {
      for (const VarId id : common.entries) {
        if (open_[id]) Add(flow_.depends, id);
      }
    }
    INTERP_RETURN_IF_ERROR(Forward(inner));
    const bool any = std::any_of(common.results.begin(), common.results.end(),
                                 [&](VarId id) { return flow_.depends[id]; });
    if (any) AddDepending(op.outputs);
    return absl::OkStatus();
  }

  absl::Status Backward(int32_t block) {
    const std::vector<Op>& ops = program_.blocks[block].ops;
    for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
      const OpDef* def = ops_.Find(op->type);
      if (def != nullptr && def->gradient.none) continue;
      const int32_t inner = SubBlockOf(def, *op);
      if (inner >= 0) {
        INTERP_RETURN_IF_ERROR(BackwardInto(*def, *op, inner));
      } else if (AnyOf(flow_.reached, op->outputs)) {
        AddReached(op->inputs);
      }
    }
    return absl::OkStatus();
  }

  absl::Status BackwardInto(const OpDef& def, const Op& op, int32_t inner) {
    INTERP_ASSIGN_OR_RETURN(const Interface common, InterfaceOf(def, op));
    if (AnyOf(flow_.reached, op.outputs)) {
      for (const VarId id : common.results) {
        if (flow_.depends[id]) Add(flow_.reached, id);
      }
    }
    INTERP_RETURN_IF_ERROR(Backward(inner));
    const bool any = std::any_of(common.entries.begin(), common.entries.end(),
                                 [&](VarId id) { return flow_.reached[id]; });
    if (any) AddReached(op.inputs);
    return absl::OkStatus();
  }

  struct Interface {
    std::vector<VarId> entries;
    std::vector<VarId> results;
  };
  absl::StatusOr<Interface> InterfaceOf(const OpDef& def, const Op& op) const {
    SubBlock common;
    INTERP_RETURN_IF_ERROR(def.sub_block(program_, op, common));
    Interface found;
    for (const SubBlock::Entry& entry : common.entries) {
      if (const VarId id = program_.Find(entry.name); id >= 0) found.entries.push_back(id);
    }
    for (const std::string& name : common.results) {
      if (const VarId id = program_.Find(name); id >= 0) found.results.push_back(id);
    }
    return found;
  }

  const Program& program_;
  const OpRegistry& ops_;
  std::vector<bool> open_;  // by VarId: a gradient may pass
  std::vector<bool> run_ = std::vector<bool>(program_.blocks.size(), false);
  GradientFlow flow_;
  bool changed_ = false;
};

}  // namespace

absl::StatusOr<GradientFlow> FindGradientFlow(const Program& program, const OpRegistry& ops,
                                              VarId target, const std::vector<VarId>& sources,
                                              const std::vector<VarId>& blocked) {
  return FlowFinder(program, ops).Find(target, sources, blocked);
}

int32_t SubBlockOf(const OpDef* def, const Op& op) {
  if (def == nullptr || def->sub_block == nullptr) return -1;
  const Attr* attr = op.FindAttr("sub_block");
  const auto* block = attr == nullptr ? nullptr : std::get_if<BlockIndex>(&attr->value);
  return block == nullptr ? -1 : block->index;
}

}  // namespace interp
