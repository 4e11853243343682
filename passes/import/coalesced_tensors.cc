#include "passes/import/coalesced_tensors.h"

#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "core/attr_reader.h"
#include "core/each_argument.h"
#include "core/op_role.h"
#include "core/program_print.h"
#include "core/sub_blocks.h"
#include "passes/feed_fetch.h"
#include "passes/make_op.h"
#include "passes/op_effects.h"
#include "passes/var_uses.h"

namespace interp {
namespace {

constexpr absl::string_view kCoalesce = "coalesce_tensor";
constexpr absl::string_view kJoin = "join_coalesced";
constexpr absl::string_view kSplit = "split_coalesced";

// What one coalesce_tensor joins.
struct Coalesced {
  size_t op = 0;  // its position among the rewritten ops
  VarId fused = -1;
  ArgIds parts;
  std::vector<Attr> alignment = {};
  bool open = true;          // no later op has joined some of it anew
  bool parts_newer = false;  // written since both were alike
  bool fused_newer = false;
  bool pinned = false;  // other blocks read it, or it outlives the run
};

// Which parts of the tensors in `Coalesced` an op uses.
struct Use {
  size_t group = 0;
  bool fused = false;
  bool write = false;
};

// Rewrites one block.
class CoalescedBlock {
 public:
  CoalescedBlock(const Program& program, int32_t block, const OpRegistry& ops,
                 const std::vector<VarUse>& uses, const std::vector<int32_t>& writing_blocks)
      : program_(program), block_(block), ops_(ops), uses_(uses), writing_blocks_(writing_blocks) {}

  absl::StatusOr<std::vector<Op>> Run() {
    const std::vector<Op>& ops = program_.blocks[block_].ops;
    for (size_t i = 0; i < ops.size(); ++i) {
      role_ = RoleOf(ops[i]);
      if (IsFetch(ops[i])) Settle();  // what outlives the run is right before the results are taken
      if (HasSubBlock(ops[i])) Settle();
      const bool opens = Opens(ops[i]);
      if (!opens) INTERP_RETURN_IF_ERROR(CheckWrites(ops[i], i));
      const std::vector<Use> uses = UsesOf(ops[i], /*writes=*/!opens);
      for (const Use& use : uses) BringUpToDate(groups_[use.group], use);
      for (const Use& use : uses) NoteWrite(groups_[use.group], use);
      if (opens) INTERP_RETURN_IF_ERROR(Open(ops[i], i));
      made_.push_back(ops[i]);
    }
    Settle();
    DropOverwritten();
    return std::move(made_);
  }

 private:
  bool Opens(const Op& op) const {
    if (op.type != kCoalesce) return false;
    const Slot* const parts = op.FindOutput("Output");
    const Slot* const fused = op.FindOutput("FusedOutput");
    if (parts == nullptr || fused == nullptr || fused->args.size() != 1) return false;
    const VarId empty = program_.Find(kEmptyVarName);
    return fused->args[0] != empty && !absl::c_linear_search(parts->args, empty);
  }

  // `op` gives its outputs other memory: what they have shared so far is settled before it.
  absl::Status Open(const Op& op, size_t position) {
    Coalesced group{.fused = op.FindOutput("FusedOutput")->args[0],
                    .parts = op.FindOutput("Output")->args};
    for (const absl::string_view name : {"use_align", "align_size", "user_defined_size_of_dtype"}) {
      if (const Attr* const attr = op.FindAttr(name)) group.alignment.push_back(*attr);
    }
    const ArgIds all = MembersOf(group);
    INTERP_RETURN_IF_ERROR(CheckOutputs(all, position));
    for (const VarId id : all) {
      if (const auto old = group_of_.find(id); old != group_of_.end()) Close(groups_[old->second]);
    }
    for (const VarId id : all) {
      group.pinned = group.pinned || uses_[id].pinned();
      group_of_[id] = groups_.size();
      left_.erase(id);
    }
    group.op = made_.size();
    groups_.push_back(std::move(group));
    return absl::OkStatus();
  }

  // `all` are the parts and, last, the whole.
  absl::Status CheckOutputs(const ArgIds& all, size_t position) const {
    for (const VarId id : all) {
      if (writing_blocks_[id] == block_) continue;
      return Unimplemented(
          DescribeOp(program_, block_, position), ": '", program_.NameOf(id),
          "' is written by another block, too, where what shares its memory would not change");
    }
    // Paddle keeps the memory of FusedOutput where it is large enough (DenseTensor::AllocateFrom):
    // sizes would decide whether older parts are slices of the new whole, too.
    const auto old = group_of_.find(all.back());
    bool shared = left_.contains(all.back());
    if (old != group_of_.end()) {
      for (const VarId id : MembersOf(groups_[old->second])) {
        shared = shared || !absl::c_linear_search(all, id);
      }
    }
    if (!shared) return absl::OkStatus();
    return Unimplemented(DescribeOp(program_, block_, position), ": FusedOutput '",
                         program_.NameOf(all.back()),
                         "' shares its memory with tensors of an earlier coalesce_tensor, which "
                         "are not among the outputs; expected another variable");
  }

  // What is left of a closed group shares memory with what is not tracked any more.
  absl::Status CheckWrites(const Op& op, size_t position) const {
    if (left_.empty()) return absl::OkStatus();
    for (const VarId id : EachArgument(op.outputs)) {
      if (!left_.contains(id)) continue;
      return Unimplemented(DescribeOp(program_, block_, position), ": '", program_.NameOf(id),
                           "' is written after a later coalesce_tensor has given only some of "
                           "what shares its memory another");
    }
    return absl::OkStatus();
  }

  static ArgIds MembersOf(const Coalesced& group) {
    ArgIds all = group.parts;
    all.push_back(group.fused);
    return all;
  }

  void Close(Coalesced& group) {
    Join(group);
    Split(group);
    group.open = false;
    for (const VarId id : MembersOf(group)) {
      group_of_.erase(id);
      left_.insert(id);
    }
  }

  void Visit(const std::vector<Slot>& slots, bool write, const OpDef* def,
             std::vector<Use>& uses) const {
    for (const Slot& slot : slots) {
      if (!write && !ReadsMemory(def, slot)) continue;
      for (const VarId id : slot.args) {
        const auto found = group_of_.find(id);
        if (found == group_of_.end()) continue;
        uses.push_back({found->second, groups_[found->second].fused == id, write});
      }
    }
  }

  std::vector<Use> UsesOf(const Op& op, bool writes) const {
    std::vector<Use> uses;
    if (group_of_.empty()) return uses;
    const OpDef* const def = ops_.Find(op.type);
    Visit(op.inputs, /*write=*/false, def, uses);
    if (writes) Visit(op.outputs, /*write=*/true, def, uses);
    return uses;
  }

  void BringUpToDate(Coalesced& group, const Use& use) {
    // A write of all of it replaces the parts; a write of one part leaves the others.
    if (use.fused && !use.write) Join(group);
    if (!use.fused) Split(group);
  }

  static void NoteWrite(Coalesced& group, const Use& use) {
    if (!use.write) return;
    group.fused_newer = use.fused;
    group.parts_newer = !use.fused;
  }

  void Join(Coalesced& group) {
    if (!std::exchange(group.parts_newer, false)) return;
    PutCopy(MakeOp(kJoin, {{"X", group.parts}}, {{"Out", {group.fused}}}), group);
  }

  void Split(Coalesced& group) {
    if (!std::exchange(group.fused_newer, false)) return;
    PutCopy(MakeOp(kSplit, {{"X", {group.fused}}, {"Like", group.parts}}, {{"Out", group.parts}}),
            group);
  }

  void PutCopy(Op op, const Coalesced& group) {
    op.attrs = group.alignment;
    SetRole(op, role_);
    made_.push_back(std::move(op));
  }

  // For those who see both: other blocks, and what comes after the run.
  void Settle() {
    for (Coalesced& group : groups_) {
      if (!group.open || !group.pinned) continue;
      Join(group);
      Split(group);
    }
  }

  // Drops what makes nothing that is read before it is overwritten.
  void DropOverwritten() {
    absl::flat_hash_map<VarId, size_t> untouched;  // results that nothing has used, by group
    std::vector<bool> needed(groups_.size(), false);
    size_t next = 0;
    for (size_t i = 0; i < made_.size(); ++i) {
      // Even what is read for its shape alone.
      for (const VarId id : EachArgument(made_[i].inputs)) {
        if (const auto it = untouched.find(id); it != untouched.end()) needed[it->second] = true;
      }
      for (const VarId id : EachArgument(made_[i].outputs)) untouched.erase(id);
      if (next == groups_.size() || groups_[next].op != i) continue;
      for (const VarId id : groups_[next].parts) untouched[id] = next;
      untouched[groups_[next].fused] = next;
      ++next;
    }
    for (const auto& [id, group] : untouched) needed[group] = true;  // nothing else computes it
    for (size_t g = groups_.size(); g-- > 0;) {
      const size_t op = groups_[g].op;
      if (needed[g] || groups_[g].pinned || !MakesNothing(made_[op])) continue;
      made_.erase(made_.begin() + static_cast<std::ptrdiff_t>(op));
    }
  }

  static bool MakesNothing(const Op& op) {
    AttrReader attrs(op);
    const bool nothing = !attrs.Bool("copy_data", false) && !attrs.Bool("set_constant", false);
    return nothing && attrs.status().ok();
  }

  const Program& program_;
  const int32_t block_;
  const OpRegistry& ops_;
  const std::vector<VarUse>& uses_;
  const std::vector<int32_t>& writing_blocks_;  // by VarId
  std::vector<Op> made_;
  std::vector<Coalesced> groups_;
  absl::flat_hash_map<VarId, size_t> group_of_;  // of the open ones
  absl::flat_hash_set<VarId> left_;              // members of closed ones, in no open one
  int32_t role_ = 0;
};

// The main block and those that ops in it run, and so on. Recompute leaves blocks that none runs.
std::vector<int32_t> BlocksThatRun(const Program& program) {
  std::vector<int32_t> found = {0};
  std::vector<bool> seen(program.blocks.size(), false);
  seen[0] = true;
  for (size_t i = 0; i < found.size(); ++i) {
    for (const Op& op : program.blocks[found[i]].ops) {
      ForEachSubBlock(op, [&](int32_t block) {
        if (block < 0 || block >= std::ssize(program.blocks) || seen[block]) return;
        seen[block] = true;
        found.push_back(block);
      });
    }
  }
  return found;
}

// The block whose ops write each variable: VarUse::kNowhere, or kSeveralBlocks. What an inner block
// declares itself is another variable: the gradient of a parameter there, of which the op that runs
// the block gives the one outside.
std::vector<int32_t> WritingBlocks(const Program& program) {
  std::vector<int32_t> blocks(program.names.size(), VarUse::kNowhere);
  for (const int32_t block : BlocksThatRun(program)) {
    absl::flat_hash_set<VarId> own;
    if (block != 0) {
      for (const Var& var : program.blocks[block].vars) own.insert(var.id);
    }
    for (const Op& op : program.blocks[block].ops) {
      if (HasSubBlock(op)) continue;  // what its block writes counts there
      for (const VarId id : EachArgument(op.outputs)) {
        if (own.contains(id)) continue;
        const bool first = blocks[id] == VarUse::kNowhere || blocks[id] == block;
        blocks[id] = first ? block : VarUse::kSeveralBlocks;
      }
    }
  }
  return blocks;
}

bool HasCoalesced(const Block& block) {
  return absl::c_any_of(block.ops, [](const Op& op) { return op.type == kCoalesce; });
}

}  // namespace

absl::StatusOr<Program> KeepCoalescedTensorsAlike(Program program, const PassContext& context) {
  if (absl::c_none_of(program.blocks, HasCoalesced)) return program;
  const std::vector<VarUse> uses = FindVarUses(program, context.ops);
  const std::vector<int32_t> writing = WritingBlocks(program);
  for (size_t b = 0; b < program.blocks.size(); ++b) {
    if (!HasCoalesced(program.blocks[b])) continue;
    CoalescedBlock block(program, static_cast<int32_t>(b), context.ops, uses, writing);
    INTERP_ASSIGN_OR_RETURN(std::vector<Op> rewritten, block.Run());
    program.blocks[b].ops = std::move(rewritten);
  }
  return program;
}

}  // namespace interp
