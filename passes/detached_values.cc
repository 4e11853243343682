#include "passes/detached_values.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "passes/op_effects.h"
#include "passes/var_uses.h"

namespace interp {
namespace {

bool Shares(const Op& op) {
  const Slot* const x = op.FindInput("X");
  const Slot* const out = op.FindOutput("Out");
  return op.type == "share_data" && x != nullptr && x->args.size() == 1 && out != nullptr &&
         out->args.size() == 1;
}

bool IsBlockGradient(const Op& op) { return HasSubBlock(op) && absl::EndsWith(op.type, "_grad"); }

template <typename Predicate>
bool AnyOp(const Program& program, const Predicate& predicate) {
  return std::any_of(program.blocks.begin(), program.blocks.end(), [&](const Block& block) {
    return std::any_of(block.ops.begin(), block.ops.end(), predicate);
  });
}

class Reader {
 public:
  Reader(Program& program, const OpRegistry& ops)
      : program_(program),
        uses_(FindVarUses(program, ops)),
        writes_(program.names.size(), 0),
        declared_(program.names.size(), VarUse::kNowhere),
        read_instead_(program.names.size()) {
    for (size_t id = 0; id < read_instead_.size(); ++id) read_instead_[id] = static_cast<VarId>(id);
    for (size_t b = 0; b < program.blocks.size(); ++b) NoteBlock(static_cast<int32_t>(b));
  }

  void Run() {
    for (size_t b = 0; b < program_.blocks.size(); ++b) {
      std::erase_if(program_.blocks[b].ops, [&](const Op& op) {
        return Shares(op) && Replace(op, static_cast<int32_t>(b));
      });
    }
    for (Block& block : program_.blocks) {
      for (Op& op : block.ops) Redirect(op);
    }
  }

 private:
  void NoteBlock(int32_t block) {
    for (const Var& var : program_.blocks[block].vars) {
      int32_t& declared = declared_[var.id];
      declared = declared == VarUse::kNowhere ? block : VarUse::kSeveralBlocks;
    }
    for (const Op& op : program_.blocks[block].ops) {
      if (HasSubBlock(op)) continue;  // what its block writes counts there
      for (const Slot& slot : op.outputs) {
        for (const VarId id : slot.args) ++writes_[id];
      }
    }
  }

  // Whether the result of the op in `block` is read where it comes from.
  bool Replace(const Op& op, int32_t block) {
    const VarId x = read_instead_[op.FindInput("X")->args[0]];
    const VarId out = op.FindOutput("Out")->args[0];
    const VarUse& use = uses_[out];
    const bool seen = use.fed || use.fetched || use.persistable || uses_[x].persistable;
    const bool one_place = declared_[out] == block && declared_[x] == block;
    if (x == out || seen || !one_place || writes_[out] != 1 || writes_[x] < 2) return false;
    read_instead_[out] = x;
    return true;
  }

  // Ops that run blocks list each variable once.
  void Redirect(Op& op) const {
    for (Slot& slot : op.inputs) {
      ArgIds args;
      for (const VarId id : slot.args) {
        const VarId now = read_instead_[id];
        const auto lists = [now](const ArgIds& ids) {
          return std::find(ids.begin(), ids.end(), now) != ids.end();
        };
        const bool twice = now != id && HasSubBlock(op) && (lists(slot.args) || lists(args));
        if (!twice) args.push_back(now);
      }
      slot.args = std::move(args);
    }
  }

  Program& program_;
  const std::vector<VarUse> uses_;
  std::vector<int> writes_;          // by VarId
  std::vector<int32_t> declared_;    // by VarId: the block that does
  std::vector<VarId> read_instead_;  // by VarId
};

}  // namespace

absl::StatusOr<Program> ReadDetachedValues(Program program, const PassContext& context) {
  if (AnyOp(program, Shares) && !AnyOp(program, IsBlockGradient)) {
    Reader(program, context.ops).Run();
  }
  return program;
}

}  // namespace interp
