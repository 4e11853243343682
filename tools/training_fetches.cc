#include "tools/training_fetches.h"

#include <optional>

#include "core/op_role.h"
#include "tools/names.h"

namespace interp {
namespace {

// The loss as the program marks it; none in programs without roles.
std::optional<std::string> LossOf(const Program& program) {
  for (const Op& op : program.blocks[0].ops) {
    if (RoleOf(op) != (kForwardRole | kLossRole)) continue;
    for (const Slot& slot : op.outputs) {
      if (!slot.args.empty()) return program.NameOf(slot.args[0]);
    }
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> TrainingFetches(const Program& program,
                                                         const std::vector<std::string>& asked) {
  absl::StatusOr<std::vector<std::string>> fetches = FetchNames(program, asked);
  if (!fetches.ok() || !fetches->empty()) return fetches;
  if (const std::optional<std::string> loss = LossOf(program)) fetches->push_back(*loss);
  return fetches;
}

}  // namespace interp
