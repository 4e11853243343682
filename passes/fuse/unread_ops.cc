#include "passes/fuse/unread_ops.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "core/each_argument.h"
#include "passes/var_uses.h"

namespace interp {

Program WithoutUnread(Program program, const OpRegistry& ops, const std::vector<VarId>& passed) {
  if (passed.empty()) return program;
  std::vector<VarUse> uses = FindVarUses(program, ops);
  std::vector<bool> is_passed(uses.size());
  for (const VarId id : passed) is_passed[id] = true;
  std::vector<Op>& all = program.blocks[0].ops;
  std::vector<bool> unread(all.size());
  for (int i = static_cast<int>(all.size()) - 1; i >= 0; --i) {
    const auto outputs = EachArgument(all[i].outputs);
    if (!absl::c_any_of(outputs, [&](VarId id) { return is_passed[id]; })) continue;
    unread[i] = absl::c_all_of(
        outputs, [&](VarId id) { return !uses[id].pinned() && uses[id].mentions == 1; });
    if (!unread[i]) continue;
    for (const VarId id : EachArgument(all[i].inputs)) --uses[id].mentions;
  }
  size_t at = 0;
  std::erase_if(all, [&](const Op&) { return unread[at++]; });
  return program;
}

}  // namespace interp
