#include "interpreter/analysis/feed_columns.h"

namespace interp {
namespace {

FeedSpec SpecOf(const Program& program, VarId id) {
  FeedSpec spec{.name = program.names[id]};
  for (const Var& var : program.blocks[0].vars) {
    if (var.id != id) continue;
    spec.dtype = var.dtype;
    spec.shape = Shape(absl::MakeConstSpan(var.dims));
    spec.check_shape = var.need_check_feed;
  }
  return spec;
}

}  // namespace

absl::Status FindFeedsAndFetches(const Program& program, Plan& plan) {
  for (const Op& op : program.blocks[0].ops) {
    const bool feed = op.type == "feed";
    if (!feed && op.type != "fetch" && op.type != "fetch_v2") continue;
    const Slot* list = feed ? op.FindInput("X") : op.FindOutput("Out");
    const Slot* var = feed ? op.FindOutput("Out") : op.FindInput("X");
    AttrReader reader(op);
    const int32_t col = reader.Int("col", 0);
    if (list == nullptr || var == nullptr || list->args.size() != 1 || var->args.size() != 1) {
      return InvalidArgument(op.type, ": expected one argument in X and one in Out");
    }
    if (col < 0 || col >= static_cast<int32_t>(program.blocks[0].ops.size())) {
      return InvalidArgument(op.type, ": attribute 'col' is ", col);
    }
    if (feed) {
      if (col >= static_cast<int32_t>(plan.feeds.size())) plan.feeds.resize(col + 1);
      plan.feeds[col] = SpecOf(program, var->args[0]);
      plan.feed_list = list->args[0];
    } else {
      if (col >= static_cast<int32_t>(plan.fetches.size())) plan.fetches.resize(col + 1);
      plan.fetches[col] = program.names[var->args[0]];
      plan.fetch_list = list->args[0];
    }
  }
  return absl::OkStatus();
}

}  // namespace interp
