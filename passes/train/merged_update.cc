#include "passes/train/merged_update.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/each_argument.h"
#include "core/op_role.h"
#include "core/sub_blocks.h"
#include "passes/op_effects.h"

namespace interp {
namespace {

class UpdateMarker {
 public:
  explicit UpdateMarker(Program& program)
      : program_(program),
        ops_(program.blocks[0].ops),
        has_update_(program.blocks.size(), false),
        read_by_update_(program.names.size(), false),
        read_by_others_(program.names.size(), false) {}

  void Run() {
    // Blocks come behind the ops that run them.
    for (size_t block = program_.blocks.size(); block-- > 1;) {
      has_update_[block] = std::ranges::any_of(
          program_.blocks[block].ops, [&](const Op& op) { return IsUpdate(op) || RunsUpdate(op); });
    }
    bool any = false;
    for (Op& op : ops_) {
      if (RoleOf(op) != kForwardRole || !RunsUpdate(op)) continue;
      SetRole(op, kOptimizeRole);
      any = true;
    }
    if (any) MarkCounters();
  }

 private:
  bool RunsUpdate(const Op& op) const {
    bool runs = false;
    ForEachSubBlock(op, [&](int32_t block) {
      runs = runs ||
             (block > 0 && static_cast<size_t>(block) < has_update_.size() && has_update_[block]);
    });
    return runs;
  }

  // From the end: an op's results are what later ones read.
  void MarkCounters() {
    const auto first = std::ranges::find_if(ops_, IsBackward);
    const auto begin = static_cast<size_t>(first - ops_.begin());
    const VarId none = program_.Find(kEmptyVarName);
    for (size_t i = ops_.size(); i-- > begin;) {
      Op& op = ops_[i];
      const OpUses uses = UsesOf(program_, op);
      const auto is_read = [](const std::vector<bool>& by) {
        return [&by](VarId id) { return by[id]; };
      };
      if (RoleOf(op) == kForwardRole &&
          std::ranges::any_of(uses.writes, is_read(read_by_update_)) &&
          std::ranges::none_of(uses.writes, is_read(read_by_others_))) {
        SetRole(op, kOptimizeRole);
      }
      std::vector<bool>& read = IsUpdate(op) ? read_by_update_ : read_by_others_;
      for (const VarId id : uses.reads) read[id] = id != none;
    }
  }

  Program& program_;
  std::vector<Op>& ops_;
  std::vector<bool> has_update_;      // by block
  std::vector<bool> read_by_update_;  // by VarId
  std::vector<bool> read_by_others_;
};

}  // namespace

void MarkMergedUpdates(Program& program) {
  if (program.blocks.size() > 1) UpdateMarker(program).Run();
}

}  // namespace interp
