#include "passes/train/gradient_flow.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/differentiable.h"
#include "core/sub_blocks.h"
#include "passes/op_effects.h"

namespace interp {
namespace {

constexpr int kMaxDepth = 64;  // of blocks, as the interpreter has it

bool MayHaveGradient(const Var& var) {
  if (var.stop_gradient) return false;
  return var.dtype == DType::kUndefined || IsDifferentiable(var.dtype);
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
    INTERP_RETURN_IF_ERROR(CollectEdges(0));
    for (const VarId id : sources) flow_.depends[id] = open_[id];
    Spread(&Edge::from, &Edge::to, open_, flow_.depends);
    flow_.reached[target] = flow_.depends[target];
    Spread(&Edge::to, &Edge::from, flow_.depends, flow_.reached);
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

  // Any variable of `from` may change all of `to`.
  struct Edge {
    std::vector<VarId> from;
    std::vector<VarId> to;
  };

  // Entries of a block are as the inputs of the op that runs it. What that makes of results is not
  // known here, so that any of them counts for all outputs.
  absl::Status CollectEdges(int32_t block) {
    for (const Op& op : program_.blocks[block].ops) {
      const OpDef* def = ops_.Find(op.type);
      if (def != nullptr && def->gradient.none) continue;
      std::vector<VarId> inputs = ArgumentsOf(op.inputs);
      std::vector<VarId> outputs = ArgumentsOf(op.outputs);
      const int32_t inner = SubBlockOf(def, op);
      if (inner < 0) {
        edges_.push_back({std::move(inputs), std::move(outputs)});
        continue;
      }
      INTERP_ASSIGN_OR_RETURN(Interface common, InterfaceOf(*def, op));
      edges_.push_back({std::move(inputs), std::move(common.entries)});
      edges_.push_back({std::move(common.results), std::move(outputs)});
      INTERP_RETURN_IF_ERROR(CollectEdges(inner));
    }
    return absl::OkStatus();
  }

  // Adds to `set` what can be got to from its variables through those of `passable`.
  void Spread(std::vector<VarId> Edge::*from, std::vector<VarId> Edge::*to,
              const std::vector<bool>& passable, std::vector<bool>& set) const {
    std::vector<std::vector<size_t>> edges_of(set.size());  // by variable
    for (size_t e = 0; e < edges_.size(); ++e) {
      for (const VarId id : edges_[e].*from) edges_of[id].push_back(e);
    }
    std::vector<VarId> added;
    for (size_t id = 0; id < set.size(); ++id) {
      if (set[id]) added.push_back(static_cast<VarId>(id));
    }
    std::vector<bool> taken(edges_.size(), false);
    while (!added.empty()) {
      const VarId id = added.back();
      added.pop_back();
      for (const size_t e : edges_of[id]) {
        if (taken[e]) continue;
        taken[e] = true;
        for (const VarId next : edges_[e].*to) {
          if (set[next] || !passable[next]) continue;
          set[next] = true;
          added.push_back(next);
        }
      }
    }
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
  std::vector<Edge> edges_;
  GradientFlow flow_;
};

}  // namespace

absl::StatusOr<GradientFlow> FindGradientFlow(const Program& program, const OpRegistry& ops,
                                              VarId target, const std::vector<VarId>& sources,
                                              const std::vector<VarId>& blocked) {
  return FlowFinder(program, ops).Find(target, sources, blocked);
}

int32_t SubBlockOf(const OpDef* def, const Op& op) {
  return def == nullptr || def->sub_block == nullptr ? -1 : SubBlockOf(op);
}

}  // namespace interp
