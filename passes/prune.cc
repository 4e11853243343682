#include "passes/prune.h"

#include <utility>

#include "core/each_argument.h"
#include "core/sub_blocks.h"
#include "passes/feed_fetch.h"
#include "passes/op_effects.h"

namespace interp {
namespace {

// Walks block 0 backwards. `live_` holds the variables that kept ops read; a variable stays live
// above its last writer, too: an op may write a part of it, or only sometimes.
class Pruner {
 public:
  Pruner(const Program& program, const OpRegistry& ops)
      : program_(program),
        ops_(ops),
        live_(program.names.size()),
        persistable_(program.names.size()),
        references_(program.blocks.size()),
        read_(program.blocks.size()) {
    for (const Block& block : program.blocks) {
      for (const Var& var : block.vars) {
        // A reader outlives the run, but only `read` ops see it.
        const bool seen = var.persistable && var.kind != VarKind::kReader;
        persistable_[var.id] = persistable_[var.id] || seen;
      }
      for (const Op& op : block.ops) {
        ForEachSubBlock(op, [this](int32_t index) { ++references_[index]; });
      }
    }
    if (const VarId empty = program.Find(kEmptyVarName); empty >= 0) persistable_[empty] = false;
  }

  // Which ops of block 0 to keep, by position.
  std::vector<bool> Run() {
    const std::vector<Op>& ops = program_.blocks[0].ops;
    std::vector<bool> keep(ops.size());
    for (size_t i = ops.size(); i-- > 0;) {
      keep[i] = IsFeed(ops[i]) || IsFetch(ops[i]) || Matters(ops[i]);
      if (keep[i]) MarkInputs(ops[i]);
    }
    return keep;
  }

 private:
  // Whether the op does something that is seen, or one of its sub-blocks does.
  bool Matters(const Op& op) const {
    const OpDef* def = ops_.Find(op.type);
    if (def != nullptr && def->side_effect) return true;
    for (const VarId id : EachArgument(op.outputs)) {
      if (live_[id] || (persistable_[id] && !LeavesUntouched(op, id))) return true;
    }
    bool matters = false;
    ForEachSubBlock(op, [&](int32_t index) {
      // A block that several ops run is not searched for each of them.
      matters = matters || references_[index] > 1;
      for (const Op& inner : program_.blocks[index].ops) matters = matters || Matters(inner);
    });
    return matters;
  }

  void MarkInputs(const Op& op) {
    for (const VarId id : EachArgument(op.inputs)) live_[id] = true;
    ForEachSubBlock(op, [this](int32_t index) {
      if (read_[index]) return;
      read_[index] = true;
      for (const Op& inner : program_.blocks[index].ops) MarkInputs(inner);
    });
  }

  const Program& program_;
  const OpRegistry& ops_;
  std::vector<bool> live_;         // by VarId
  std::vector<bool> persistable_;  // by VarId
  std::vector<int> references_;    // by block: how many attributes name it
  std::vector<bool> read_;         // by block: its inputs are in live_
};

}  // namespace

void EmptyUnreachedBlocks(Program& program) {
  std::vector<bool> reached(program.blocks.size(), false);
  std::vector<int32_t> queue = {0};
  reached[0] = true;
  while (!queue.empty()) {
    const int32_t block = queue.back();
    queue.pop_back();
    for (const Op& op : program.blocks[block].ops) {
      ForEachSubBlock(op, [&](int32_t index) {
        if (!reached[index]) queue.push_back(index);
        reached[index] = true;
      });
    }
  }
  for (size_t b = 0; b < reached.size(); ++b) {
    if (!reached[b]) program.blocks[b].ops.clear();
  }
}

absl::StatusOr<Program> Prune(Program program, const PassContext& context) {
  const std::vector<bool> keep = Pruner(program, context.ops).Run();
  std::vector<Op>& ops = program.blocks[0].ops;
  size_t kept = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (!keep[i]) continue;
    if (kept != i) ops[kept] = std::move(ops[i]);
    ++kept;
  }
  ops.resize(kept);
  if (program.blocks.size() > 1) EmptyUnreachedBlocks(program);
  return program;
}

}  // namespace interp
