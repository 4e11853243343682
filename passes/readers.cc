#include "passes/readers.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"

namespace interp {
namespace {

bool AnyRead(const Program& program) {
  const std::vector<Op>& ops = program.blocks[0].ops;
  return std::any_of(ops.begin(), ops.end(), IsRead);
}

// By VarId: how many arguments of ops in any block are read.
std::vector<int32_t> CountReads(const Program& program) {
  std::vector<int32_t> reads(program.names.size(), 0);
  for (const Block& block : program.blocks) {
    for (const Op& op : block.ops) {
      for (const Slot& slot : op.inputs) {
        for (const VarId id : slot.args) ++reads[id];
      }
    }
  }
  return reads;
}

bool AnyOutput(const Op& op, const std::vector<int32_t>& reads) {
  return std::any_of(op.outputs.begin(), op.outputs.end(), [&](const Slot& slot) {
    return std::any_of(slot.args.begin(), slot.args.end(), [&](VarId id) { return reads[id] > 0; });
  });
}

void EraseOutputs(Op& op, const std::vector<bool>& erased) {
  for (Slot& slot : op.outputs) std::erase_if(slot.args, [&](VarId id) { return erased[id]; });
}

}  // namespace

bool IsRead(const Op& op) { return op.type == "read"; }

bool MakesReader(const Op& op) {
  return absl::StartsWith(op.type, "create_") && absl::EndsWith(op.type, "_reader");
}

std::vector<VarId> ReadVars(const Program& program) {
  std::vector<VarId> vars;
  if (!AnyRead(program)) return vars;
  std::vector<int32_t> reads = CountReads(program);
  for (const Op& op : program.blocks[0].ops) {
    if (!IsRead(op)) continue;
    for (const Slot& slot : op.outputs) {
      for (const VarId id : slot.args) {
        if (std::exchange(reads[id], 0) > 0) vars.push_back(id);  // once
      }
    }
  }
  return vars;
}

void DropReaders(Program& program, const std::vector<VarId>& fed) {
  if (!AnyRead(program)) return;
  std::vector<Op>& ops = program.blocks[0].ops;
  std::vector<bool> is_fed(program.names.size(), false);
  for (const VarId id : fed) is_fed[id] = true;
  std::vector<int32_t> reads = CountReads(program);
  std::vector<bool> drop(ops.size(), false);
  // Backwards, so that the reader of a dropped op is looked at once nobody reads it.
  for (size_t i = ops.size(); i-- > 0;) {
    if (IsRead(ops[i])) EraseOutputs(ops[i], is_fed);
    drop[i] = (IsRead(ops[i]) || MakesReader(ops[i])) && !AnyOutput(ops[i], reads);
    if (!drop[i]) continue;
    for (const Slot& slot : ops[i].inputs) {
      for (const VarId id : slot.args) --reads[id];
    }
  }
  size_t kept = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (drop[i]) continue;
    if (kept != i) ops[kept] = std::move(ops[i]);
    ++kept;
  }
  ops.resize(kept);
}

}  // namespace interp
