#include "interpreter/analysis/feed_columns.h"

#include "core/each_argument.h"
#include "interpreter/analysis/variable_table.h"
#include "passes/feed_fetch.h"

namespace interp {
namespace {

absl::StatusOr<FeedSpec> SpecOf(const Program& program, const BlockTree& tree, VarId id) {
  FeedSpec spec{.name = program.names[id]};
  const Var* var = tree.OwnDeclaration(0, id);
  if (var == nullptr) return spec;
  if (var->dims.size() > kMaxRank) {
    return InvalidArgument("variable '", spec.name, "' is declared with ", var->dims.size(),
                           " dims, at most ", kMaxRank, " are possible");
  }
  spec.dtype = var->dtype;
  spec.shape = Shape(absl::MakeConstSpan(var->dims));
  spec.check_shape = var->need_check_feed;
  spec.persistable = var->persistable;
  return spec;
}

// Which variables ops other than feed write, by VarId.
std::vector<bool> Overwritten(const Program& program) {
  std::vector<bool> overwritten(program.names.size());
  for (const Block& block : program.blocks) {
    for (const Op& op : block.ops) {
      if (IsFeed(op)) continue;
      for (const VarId id : EachArgument(op.outputs)) overwritten[id] = true;
    }
  }
  return overwritten;
}

}  // namespace

absl::Status FindFeedsAndFetches(const Program& program, const BlockTree& tree, Plan& plan) {
  const std::vector<Op>& ops = program.blocks[0].ops;
  const std::vector<bool> overwritten = Overwritten(program);
  for (const Op& op : ops) {
    const bool feed = IsFeed(op);
    if (!feed && !IsFetch(op)) continue;
    const Slot* list = feed ? op.FindInput("X") : op.FindOutput("Out");
    const Slot* var = feed ? op.FindOutput("Out") : op.FindInput("X");
    AttrReader reader(op);
    const int32_t col = reader.Int("col", 0);
    if (list == nullptr || var == nullptr || list->args.size() != 1 || var->args.size() != 1) {
      return InvalidArgument(op.type, ": expected one argument in X and one in Out");
    }
    if (col < 0 || col >= static_cast<int32_t>(ops.size())) {
      return InvalidArgument(op.type, ": attribute 'col' is ", col);
    }
    const auto size = static_cast<size_t>(col) + 1;
    if (feed) {
      if (size > plan.feeds.size()) plan.feeds.resize(size);
      INTERP_ASSIGN_OR_RETURN(plan.feeds[col], SpecOf(program, tree, var->args[0]));
      plan.feeds[col].overwritten = overwritten[var->args[0]];
      plan.feed_list = FindVar(plan, list->args[0]);
    } else {
      if (size > plan.fetches.size()) plan.fetches.resize(size);
      plan.fetches[col] = program.names[var->args[0]];
      plan.fetch_list = FindVar(plan, list->args[0]);
    }
  }
  return absl::OkStatus();
}

}  // namespace interp
