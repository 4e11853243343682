#include "passes/feed_fetch.h"

#include <algorithm>
#include <utility>

#include "core/each_argument.h"
#include "core/program_print.h"
#include "core/sub_blocks.h"
#include "passes/readers.h"

namespace interp {
namespace {

// Column and variable of a feed or fetch op.
absl::StatusOr<std::pair<int32_t, VarId>> ReadColumn(const Op& op, const Slot* slot,
                                                     absl::string_view slot_name) {
  if (slot == nullptr || slot->args.size() != 1) {
    return InvalidArgument("'", slot_name, "' has ", slot == nullptr ? 0 : slot->args.size(),
                           " arguments, expected 1");
  }
  const Attr* col = op.FindAttr("col");
  const int32_t* value = col == nullptr ? nullptr : std::get_if<int32_t>(&col->value);
  if (value == nullptr) return InvalidArgument("attribute 'col' is missing or no INT");
  return std::pair(*value, slot->args[0]);
}

template <typename Wanted, typename ArgumentOf>
absl::StatusOr<std::vector<VarId>> Columns(const Program& program, Wanted wanted,
                                           absl::string_view slot_name, ArgumentOf argument_of) {
  std::vector<std::pair<int32_t, VarId>> columns;
  if (program.blocks.empty()) return InvalidArgument("program has no blocks");
  const std::vector<Op>& ops = program.blocks[0].ops;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (!wanted(ops[i])) continue;
    auto column = ReadColumn(ops[i], argument_of(ops[i], slot_name), slot_name);
    if (!column.ok()) return Annotate(column.status(), DescribeOp(program, 0, i));
    columns.push_back(*column);
  }
  std::stable_sort(columns.begin(), columns.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<VarId> vars;
  for (const auto& [column, var] : columns) vars.push_back(var);
  return vars;
}

}  // namespace

bool IsFeed(const Op& op) { return op.type == "feed"; }
bool IsFetch(const Op& op) { return op.type == "fetch" || op.type == "fetch_v2"; }

absl::StatusOr<std::vector<VarId>> FeedVars(const Program& program) {
  INTERP_ASSIGN_OR_RETURN(std::vector<VarId> vars,
                          Columns(program, IsFeed, "Out", [](const Op& op, absl::string_view slot) {
                            return op.FindOutput(slot);
                          }));
  return vars.empty() ? ReadVars(program) : vars;
}

absl::StatusOr<std::vector<VarId>> FetchVars(const Program& program) {
  return Columns(program, IsFetch, "X",
                 [](const Op& op, absl::string_view slot) { return op.FindInput(slot); });
}

absl::StatusOr<std::vector<VarId>> DataVars(const Program& program) {
  INTERP_ASSIGN_OR_RETURN(std::vector<VarId> data, FeedVars(program));
  const std::vector<Op>& ops = program.blocks[0].ops;
  if (std::any_of(ops.begin(), ops.end(), IsFeed)) return data;
  std::vector<bool> written(program.names.size(), false);
  std::vector<bool> open(program.names.size(), false);
  for (const Op& op : ops) {
    // An op that runs a block may list what only the block makes.
    if (!HasSubBlock(op)) {
      for (const VarId id : EachArgument(op.inputs)) open[id] = open[id] || !written[id];
    }
    for (const VarId id : EachArgument(op.outputs)) written[id] = true;
  }
  for (const Var& var : program.blocks[0].vars) {
    if (var.kind != VarKind::kLodTensor || var.persistable) continue;
    if (open[var.id] || (var.need_check_feed && !written[var.id])) data.push_back(var.id);
  }
  return data;
}

}  // namespace interp
