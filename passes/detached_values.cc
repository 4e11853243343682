#include "passes/detached_values.h"

#include <algorithm>
#include <limits>
#include <string>
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
        ops_(ops),
        uses_(FindVarUses(program, ops)),
        writes_(program.names.size(), 0),
        rebound_(program.names.size(), -1),
        named_(program.names.size(), false),
        declared_(program.names.size(), VarUse::kNowhere),
        read_instead_(program.names.size()) {
    for (size_t id = 0; id < read_instead_.size(); ++id) read_instead_[id] = static_cast<VarId>(id);
    for (size_t b = 0; b < program.blocks.size(); ++b) NoteBlock(static_cast<int32_t>(b));
  }

  void Run() {
    for (size_t b = 0; b < program_.blocks.size(); ++b) {
      int64_t position = -1;
      std::erase_if(program_.blocks[b].ops, [&](const Op& op) {
        ++position;
        return Shares(op) && Replace(op, static_cast<int32_t>(b), position);
      });
    }
    for (Block& block : program_.blocks) {
      for (Op& op : block.ops) Redirect(op);
    }
  }

 private:
  // Behind all ops of the block that declares the variable.
  static constexpr int64_t kElsewhere = std::numeric_limits<int64_t>::max();

  void NoteBlock(int32_t block) {
    for (const Var& var : program_.blocks[block].vars) {
      int32_t& declared = declared_[var.id];
      declared = declared == VarUse::kNowhere ? block : VarUse::kSeveralBlocks;
    }
    const std::vector<Op>& ops = program_.blocks[block].ops;
    for (size_t i = 0; i < ops.size(); ++i) {
      const Op& op = ops[i];
      if (HasSubBlock(op)) {
        NoteNames(op);  // what its block writes counts there
        continue;
      }
      const OpDef* const def = ops_.Find(op.type);
      const bool rebinds = op.type == "share_data" || (def != nullptr && !def->view.empty());
      for (const Slot& slot : op.outputs) {
        for (const VarId id : slot.args) {
          ++writes_[id];
          // Within the block of its declaration the last one counts.
          if (rebinds) rebound_[id] = block == declared_[id] ? static_cast<int64_t>(i) : kElsewhere;
        }
      }
    }
  }

  // recurrent names its states so.
  void NoteNames(const Op& op) {
    for (const Attr& attr : op.attrs) {
      const auto* const names = std::get_if<std::vector<std::string>>(&attr.value);
      if (names == nullptr || attr.name == "skip_eager_deletion_vars") continue;
      for (const std::string& name : *names) {
        if (const VarId id = program_.Find(name); id >= 0) named_[id] = true;
      }
    }
  }

  // Whether the result of the op in `block` is read where it comes from.
  bool Replace(const Op& op, int32_t block, int64_t position) {
    const VarId x = read_instead_[op.FindInput("X")->args[0]];
    const VarId out = op.FindOutput("Out")->args[0];
    const VarUse& use = uses_[out];
    const bool seen = use.fed || use.fetched || use.persistable || uses_[x].persistable;
    const bool one_place = declared_[out] == block && declared_[x] == block;
    const bool written_over = writes_[x] > 1 && rebound_[x] < position;
    if (x == out || seen || !one_place || !written_over || writes_[out] != 1) return false;
    if (named_[x] || named_[out]) return false;
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
  const OpRegistry& ops_;
  const std::vector<VarUse> uses_;
  std::vector<int> writes_;          // by VarId
  std::vector<int64_t> rebound_;     // by VarId: the last op that gives it the memory of another
  std::vector<bool> named_;          // by VarId: in an attribute of an op that runs a block
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
