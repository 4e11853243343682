#include "passes/insert_feed_fetch.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/base/near_names.h"
#include "core/each_argument.h"
#include "core/edit_op.h"
#include "passes/feed_fetch.h"
#include "passes/make_op.h"
#include "passes/readers.h"

namespace interp {
namespace {

// What is known of a variable, by VarId.
struct VarFacts {
  bool in_block_0 = false;  // declared or used there, but by feed and fetch ops
  bool has_value = false;   // persistable or written by an op of any block
};

std::vector<VarFacts> CollectFacts(const Program& program) {
  std::vector<VarFacts> facts(program.names.size());
  for (size_t b = 0; b < program.blocks.size(); ++b) {
    for (const Var& var : program.blocks[b].vars) {
      const bool list = var.kind == VarKind::kFeedMinibatch || var.kind == VarKind::kFetchList;
      facts[var.id].in_block_0 |= b == 0 && !list;
      facts[var.id].has_value |= var.persistable;
    }
    for (const Op& op : program.blocks[b].ops) {
      if (IsFeed(op) || IsFetch(op)) continue;
      for (const VarId id : EachArgument(op.inputs)) facts[id].in_block_0 |= b == 0;
      for (const VarId id : EachArgument(op.outputs)) {
        facts[id].in_block_0 |= b == 0;
        facts[id].has_value = true;
      }
    }
  }
  return facts;
}

// The ids of `names`; `verb` is for messages.
absl::StatusOr<std::vector<VarId>> Resolve(const Program& program,
                                           const std::vector<VarFacts>& facts,
                                           const std::vector<std::string>& names,
                                           absl::string_view verb) {
  std::vector<VarId> ids;
  for (const std::string& name : names) {
    const VarId id = program.Find(name);
    if (id < 0 || !facts[id].in_block_0) {
      std::vector<absl::string_view> known;
      for (size_t v = 0; v < facts.size(); ++v) {
        if (facts[v].in_block_0) known.push_back(program.names[v]);
      }
      return NotFound("no variable '", name, "' to ", verb, NearNamesHint(name, known));
    }
    ids.push_back(id);
  }
  return ids;
}

absl::Status CheckColumns(const Program& program, std::vector<VarFacts> facts,
                          const std::vector<VarId>& feeds, const std::vector<VarId>& fetches) {
  std::vector<VarId> sorted = feeds;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    return InvalidArgument("variable '", program.NameOf(*twice), "' is fed twice");
  }
  for (const VarId id : feeds) facts[id].has_value = true;
  for (const VarId id : fetches) {
    if (facts[id].has_value) continue;
    return InvalidArgument("cannot fetch '", program.NameOf(id),
                           "': no op writes it and it is neither fed nor persistable");
  }
  return absl::OkStatus();
}

// The id of the list variable of that kind, declared when there is none.
VarId ListVar(Program& program, const std::vector<VarFacts>& facts, absl::string_view name,
              VarKind kind) {
  Block& block = program.blocks[0];
  for (int suffix = 0;; ++suffix) {
    const VarId id = program.Intern(suffix == 0 ? std::string(name) : absl::StrCat(name, suffix));
    if (id < std::ssize(facts) && facts[id].in_block_0) continue;
    const bool declared = std::any_of(block.vars.begin(), block.vars.end(), [&](const Var& var) {
      return var.id == id && var.kind == kind;
    });
    if (!declared) {
      Var& var = block.vars.emplace_back();
      var.id = id;
      var.kind = kind;
      var.persistable = true;
    }
    return id;
  }
}

Op ColumnOp(absl::string_view type, VarId in, VarId out, int32_t column) {
  Op op = MakeUnaryOp(type, in, out);
  SetAttr(op, "col", column);
  return op;
}

}  // namespace

absl::StatusOr<Program> InsertFeedFetch(Program program, const PassContext& context) {
  INTERP_ASSIGN_OR_RETURN(std::vector<VarId> feeds, FeedVars(program));
  INTERP_ASSIGN_OR_RETURN(std::vector<VarId> fetches, FetchVars(program));
  const std::vector<VarFacts> facts = CollectFacts(program);
  if (context.feeds.has_value()) {
    INTERP_ASSIGN_OR_RETURN(feeds, Resolve(program, facts, *context.feeds, "feed"));
  }
  if (context.fetches.has_value()) {
    INTERP_ASSIGN_OR_RETURN(fetches, Resolve(program, facts, *context.fetches, "fetch"));
  }
  INTERP_RETURN_IF_ERROR(CheckReads(program));
  DropReaders(program, feeds);
  INTERP_RETURN_IF_ERROR(CheckColumns(program, CollectFacts(program), feeds, fetches));

  std::vector<Op> old = std::move(program.blocks[0].ops);
  std::vector<Op> ops;
  ops.reserve(feeds.size() + old.size() + fetches.size());
  if (!feeds.empty()) {
    const VarId list = ListVar(program, facts, "feed", VarKind::kFeedMinibatch);
    for (size_t i = 0; i < feeds.size(); ++i) {
      ops.push_back(ColumnOp("feed", list, feeds[i], static_cast<int32_t>(i)));
    }
  }
  for (Op& op : old) {
    if (!IsFeed(op) && !IsFetch(op)) ops.push_back(std::move(op));
  }
  if (!fetches.empty()) {
    const VarId list = ListVar(program, facts, "fetch", VarKind::kFetchList);
    for (size_t i = 0; i < fetches.size(); ++i) {
      ops.push_back(ColumnOp("fetch", fetches[i], list, static_cast<int32_t>(i)));
    }
  }
  program.blocks[0].ops = std::move(ops);
  return program;
}

}  // namespace interp
