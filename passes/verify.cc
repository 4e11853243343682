#include "passes/verify.h"

#include <algorithm>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_join.h"
#include "core/base/near_names.h"
#include "core/check_var.h"
#include "core/each_argument.h"
#include "core/gradient.h"
#include "core/program_print.h"
#include "core/sub_blocks.h"
#include "passes/feed_fetch.h"
#include "passes/readers.h"

namespace interp {
namespace {

constexpr int kMaxNesting = 64;

absl::Status CheckIds(const Program& program, const std::vector<Slot>& slots) {
  for (const Slot& slot : slots) {
    for (const VarId id : slot.args) {
      if (id < 0 || id >= std::ssize(program.names)) {
        return InvalidArgument("'", slot.name, "' has variable #", id, ", the program has ",
                               program.names.size());
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSubBlocks(const Program& program, const Op& op) {
  absl::Status status;
  ForEachSubBlock(op, [&](int32_t index) {
    if (index >= 0 && index < std::ssize(program.blocks)) return;
    status =
        InvalidArgument("refers to block ", index, ", the program has ", program.blocks.size());
  });
  return status;
}

absl::Status CheckBlockHeader(const Program& program, size_t position, std::vector<int>& depth) {
  const Block& block = program.blocks[position];
  if (block.idx != static_cast<int32_t>(position)) {
    return InvalidArgument("block ", position, " has index ", block.idx);
  }
  const bool parent_ok = position == 0 ? block.parent_idx == -1
                                       : block.parent_idx >= 0 && block.parent_idx < block.idx;
  if (!parent_ok) {
    return InvalidArgument("block ", position, " has parent ", block.parent_idx,
                           position == 0 ? ", expected -1" : ", expected an earlier block");
  }
  if (block.forward_block_idx < -1 || block.forward_block_idx >= std::ssize(program.blocks)) {
    return InvalidArgument("block ", position, " has forward block ", block.forward_block_idx,
                           ", the program has ", program.blocks.size());
  }
  depth[position] = position == 0 ? 0 : depth[block.parent_idx] + 1;
  if (depth[position] > kMaxNesting) {
    return InvalidArgument("block ", position, " is nested more than ", kMaxNesting, " deep");
  }
  return absl::OkStatus();
}

absl::Status CheckDeclarations(const Program& program, const Block& block,
                               std::vector<int32_t>& declared_by) {
  for (const Var& var : block.vars) {
    if (var.id < 0 || var.id >= std::ssize(program.names)) {
      return InvalidArgument("block ", block.idx, " declares variable #", var.id,
                             ", the program has ", program.names.size());
    }
    if (absl::Status status = CheckVar(var); !status.ok()) {
      return Annotate(
          status, absl::StrCat("block ", block.idx, ", variable '", program.NameOf(var.id), "'"));
    }
    if (std::exchange(declared_by[var.id], block.idx) == block.idx) {
      return InvalidArgument("block ", block.idx, " declares '", program.NameOf(var.id), "' twice");
    }
  }
  return absl::OkStatus();
}

// The blocks that the ops of each block run.
std::vector<std::vector<int32_t>> SubBlocks(const Program& program) {
  std::vector<std::vector<int32_t>> children(program.blocks.size());
  for (size_t b = 0; b < program.blocks.size(); ++b) {
    for (const Op& op : program.blocks[b].ops) {
      ForEachSubBlock(op, [&](int32_t index) { children[b].push_back(index); });
    }
  }
  return children;
}

// The blocks that run when block 0 does.
std::vector<bool> ReachedBlocks(const Program& program) {
  const std::vector<std::vector<int32_t>> children = SubBlocks(program);
  std::vector<bool> reached(program.blocks.size());
  std::vector<int32_t> open = {0};
  reached[0] = true;
  while (!open.empty()) {
    const int32_t block = open.back();
    open.pop_back();
    for (const int32_t child : children[block]) {
      if (!reached[child]) open.push_back(child);
      reached[child] = true;
    }
  }
  return reached;
}

// Running a block must end: no block leads back to itself, and nesting is bounded. Depth-first
// without recursion, since nesting is what is being checked.
absl::Status CheckNesting(const Program& program) {
  const std::vector<std::vector<int32_t>> children = SubBlocks(program);
  constexpr int kUnseen = -1, kOpen = -2;
  std::vector<int> height(children.size(), kUnseen);
  std::vector<std::pair<int32_t, size_t>> stack;  // block, next child
  for (size_t root = 0; root < children.size(); ++root) {
    if (height[root] == kUnseen) stack.emplace_back(static_cast<int32_t>(root), 0);
    while (!stack.empty()) {
      auto& [block, next] = stack.back();
      height[block] = kOpen;
      while (next < children[block].size() && height[children[block][next]] >= 0) ++next;
      if (next < children[block].size()) {
        const int32_t child = children[block][next];
        if (height[child] == kOpen) return InvalidArgument("block ", child, " runs itself");
        stack.emplace_back(child, 0);
        continue;
      }
      height[block] = 0;
      for (const int32_t child : children[block]) {
        height[block] = std::max(height[block], height[child] + 1);
      }
      if (height[block] > kMaxNesting) {
        return InvalidArgument("block ", block, " runs blocks more than ", kMaxNesting, " deep");
      }
      stack.pop_back();
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSlots(const std::vector<Slot>& slots, const std::vector<SlotDef>& defs,
                        absl::string_view side) {
  for (const Slot& slot : slots) {
    if (slot.args.empty()) continue;
    const auto def = std::find_if(defs.begin(), defs.end(),
                                  [&](const SlotDef& d) { return d.name == slot.name; });
    if (def == defs.end()) {
      std::vector<absl::string_view> known;
      for (const SlotDef& d : defs) known.push_back(d.name);
      return InvalidArgument("has no ", side, " '", slot.name, "'",
                             NearNamesHint(slot.name, known));
    }
    if (slot.args.size() > 1 && (def->flags & kVariadic) == 0) {
      return InvalidArgument(side, " '", slot.name, "' has ", slot.args.size(),
                             " arguments, expected 1");
    }
  }
  for (const SlotDef& def : defs) {
    if ((def.flags & (kOptional | kVariadic)) != 0) continue;
    const bool given = std::any_of(slots.begin(), slots.end(), [&](const Slot& slot) {
      return slot.name == def.name && !slot.args.empty();
    });
    if (!given) return InvalidArgument(side, " '", def.name, "' is missing");
  }
  return absl::OkStatus();
}

bool HasOneOutput(const Op& op) { return op.outputs.size() == 1 && op.outputs[0].args.size() == 1; }

absl::Status CheckOutputsDiffer(const Program& program, const Op& op, VarId empty) {
  if (HasOneOutput(op) || HasSubBlock(op)) return absl::OkStatus();
  absl::InlinedVector<VarId, 8> ids;
  for (const Slot& slot : op.outputs) ids.insert(ids.end(), slot.args.begin(), slot.args.end());
  std::sort(ids.begin(), ids.end());
  for (size_t i = 1; i < ids.size(); ++i) {
    if (ids[i] == ids[i - 1] && ids[i] != empty) {
      return InvalidArgument("has '", program.NameOf(ids[i]), "' as two outputs");
    }
  }
  return absl::OkStatus();
}

// Which variables are visible from a block.
class Visibility {
 public:
  explicit Visibility(const Program& program)
      : program_(program), block_(program.names.size(), kNone), written_(program.names.size()) {
    for (const Block& block : program.blocks) {
      for (const Var& var : block.vars) {
        block_[var.id] = block_[var.id] == kNone ? block.idx : kSeveral;
      }
    }
  }

  void MarkWritten(VarId id) { written_[id] = true; }

  bool IsVisible(VarId id, int32_t from) const {
    if (written_[id] || block_[id] == kSeveral) return true;
    for (int32_t b = from; b >= 0; b = program_.blocks[b].parent_idx) {
      // A gradient's block sees what its forward block left.
      const int32_t forward = program_.blocks[b].forward_block_idx;
      if (block_[id] == b || (forward >= 0 && block_[id] == forward)) return true;
    }
    return false;
  }

 private:
  static constexpr int32_t kNone = -1, kSeveral = -2;
  const Program& program_;
  std::vector<int32_t> block_;  // that declares the variable
  std::vector<bool> written_;
};

absl::Status CheckOp(const Program& program, const OpRegistry& ops, int32_t block, const Op& op,
                     VarId empty, Visibility& visibility) {
  if (const OpDef* def = ops.Find(op.type)) {
    INTERP_RETURN_IF_ERROR(CheckSlots(op.inputs, def->inputs, "input"));
    INTERP_RETURN_IF_ERROR(CheckSlots(op.outputs, def->outputs, "output"));
  }
  INTERP_RETURN_IF_ERROR(CheckOutputsDiffer(program, op, empty));
  // The queue that a reader is made from is declared nowhere: Python puts it into the scope.
  const bool runs_block = HasSubBlock(op);
  const bool sees_all = runs_block || MakesReader(op);
  for (const Slot& slot : op.inputs) {
    for (const VarId id : slot.args) {
      if (id == empty || sees_all || visibility.IsVisible(id, block)) continue;
      return InvalidArgument("input '", slot.name, "' is '", program.NameOf(id),
                             "', which is not declared and which no earlier op writes");
    }
  }
  // What a block is given has a value in it, or none: Paddle names gradients that nothing makes.
  if (runs_block) {
    for (const VarId id : EachArgument(op.inputs)) visibility.MarkWritten(id);
  }
  for (const VarId id : EachArgument(op.outputs)) visibility.MarkWritten(id);
  // Before a Python layer is differentiated, nothing makes what its backward block starts from.
  if (op.type == "pylayer") {
    for (const VarId id : EachArgument(op.outputs)) {
      const VarId gradient = program.Find(GradientName(program.NameOf(id)));
      if (gradient >= 0) visibility.MarkWritten(gradient);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifyStructure(const Program& program) {
  if (program.blocks.empty()) return InvalidArgument("program has no blocks");
  std::vector<int> depth(program.blocks.size());
  std::vector<int32_t> declared_by(program.names.size(), -1);
  for (size_t b = 0; b < program.blocks.size(); ++b) {
    const Block& block = program.blocks[b];
    INTERP_RETURN_IF_ERROR(CheckBlockHeader(program, b, depth));
    INTERP_RETURN_IF_ERROR(CheckDeclarations(program, block, declared_by));
    for (size_t i = 0; i < block.ops.size(); ++i) {
      absl::Status status = CheckIds(program, block.ops[i].inputs);
      status.Update(CheckIds(program, block.ops[i].outputs));
      status.Update(CheckSubBlocks(program, block.ops[i]));
      if (!status.ok()) return Annotate(status, DescribeOp(program, b, i));
    }
  }
  return CheckNesting(program);
}

absl::Status VerifyProgram(const Program& program, const OpRegistry& ops) {
  INTERP_RETURN_IF_ERROR(VerifyStructure(program));
  const VarId empty = program.Find(kEmptyVarName);
  Visibility visibility(program);
  const std::vector<bool> reached = ReachedBlocks(program);
  for (size_t b = 0; b < program.blocks.size(); ++b) {
    // Paddle leaves blocks of gradients that it has dropped.
    if (!reached[b]) continue;
    const Block& block = program.blocks[b];
    for (size_t i = 0; i < block.ops.size(); ++i) {
      const absl::Status status = CheckOp(program, ops, block.idx, block.ops[i], empty, visibility);
      if (!status.ok()) return Annotate(status, DescribeOp(program, b, i));
    }
  }
  return VerifyInplace(program, ops);
}

absl::Status VerifyColumns(const Program& program) {
  INTERP_RETURN_IF_ERROR(FeedVars(program).status());
  INTERP_RETURN_IF_ERROR(FetchVars(program).status());
  int32_t feeds = 0;
  int32_t fetches = 0;
  for (size_t i = 0; i < program.blocks[0].ops.size(); ++i) {
    const Op& op = program.blocks[0].ops[i];
    if (!IsFeed(op) && !IsFetch(op)) continue;
    const int32_t expected = IsFeed(op) ? feeds++ : fetches++;
    if (op.FindAttr("col")->value != AttrValue(expected)) {
      return InvalidArgument(DescribeOp(program, 0, i), ": is not column ", expected);
    }
  }
  return absl::OkStatus();
}

namespace {

absl::Status NotFed(const Program& program, int32_t block, size_t op) {
  if (block != 0) {
    return Unimplemented(DescribeOp(program, block, op),
                         ": readers do not run here, and only block 0 is fed");
  }
  std::vector<std::string> names;
  for (const VarId id : EachArgument(program.blocks[block].ops[op].outputs)) {
    names.push_back(absl::StrCat("'", program.NameOf(id), "'"));
  }
  return Unimplemented(DescribeOp(program, block, op), ": readers do not run here; feed ",
                       absl::StrJoin(names, " and "), " or fetch what does not need them");
}

}  // namespace

absl::Status VerifyOpsKnown(const Program& program, const OpRegistry& ops) {
  const std::vector<bool> reached = ReachedBlocks(program);
  absl::Status unknown_maker;  // of a reader: a `read` of it says more
  for (size_t b = 0; b < program.blocks.size(); ++b) {
    for (size_t i = 0; reached[b] && i < program.blocks[b].ops.size(); ++i) {
      const Op& op = program.blocks[b].ops[i];
      if (ops.Find(op.type) != nullptr) continue;
      if (IsRead(op)) return NotFed(program, static_cast<int32_t>(b), i);
      absl::Status unknown = Unimplemented(DescribeOp(program, b, i), ": no op named '", op.type,
                                           "' is registered", NearNamesHint(op.type, ops.Types()));
      if (!MakesReader(op)) return unknown;
      unknown_maker.Update(std::move(unknown));
    }
  }
  return unknown_maker;
}

ComputedVars FindComputedVars(const Program& program) {
  std::vector<bool> seen(program.names.size());
  std::vector<bool> computed(program.names.size());
  std::vector<bool> arrays(program.names.size());
  for (const Var& var : program.blocks[0].vars) {
    arrays[var.id] = var.kind == VarKind::kLodTensorArray;
  }
  for (const Op& op : program.blocks[0].ops) {
    for (const VarId id : EachArgument(op.inputs)) seen[id] = true;
    for (const VarId id : EachArgument(op.outputs)) {
      if (!seen[id] && !IsFeed(op)) computed[id] = true;
      seen[id] = true;
    }
  }
  return {std::move(computed), std::move(arrays)};
}

absl::Status VerifyStillComputed(const Program& program, const ComputedVars& before) {
  std::vector<bool> written(program.names.size());
  for (const Var& var : program.blocks[0].vars) {
    const bool was_tensor = var.id < std::ssize(before.arrays) && !before.arrays[var.id];
    if (was_tensor && var.kind == VarKind::kLodTensorArray) written[var.id] = true;
  }
  for (size_t i = 0; i < program.blocks[0].ops.size(); ++i) {
    const Op& op = program.blocks[0].ops[i];
    for (const Slot& slot : op.inputs) {
      for (const VarId id : slot.args) {
        if (written[id] || id >= std::ssize(before.computed) || !before.computed[id]) continue;
        return InvalidArgument(DescribeOp(program, 0, i), ": input '", slot.name, "' is '",
                               program.NameOf(id), "', which no op writes any more");
      }
    }
    for (const VarId id : EachArgument(op.outputs)) written[id] = true;
  }
  return absl::OkStatus();
}

}  // namespace interp
