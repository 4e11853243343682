#include "tools/slot_data.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "core/base/annotate.h"
#include "core/io/file.h"
#include "core/io/multi_slot.h"
#include "interpreter/train/slot_source.h"

namespace interp {
namespace {

absl::StatusOr<std::vector<DataSlot>> MakeSlots(const std::vector<std::string>& names,
                                                const std::vector<FeedSpec>& feeds,
                                                const std::vector<std::string>& sparse) {
  std::vector<DataSlot> slots;
  for (const std::string& name : names) {
    const auto feed = std::ranges::find(feeds, name, &FeedSpec::name);
    if (feed == feeds.end()) {
      slots.push_back({.name = name, .is_unused = true});
      continue;
    }
    INTERP_ASSIGN_OR_RETURN(DataSlot slot,
                            SlotFor(*feed, std::ranges::binary_search(sparse, name)));
    slots.push_back(std::move(slot));
  }
  return slots;
}

absl::StatusOr<std::vector<size_t>> FindColumns(const std::vector<std::string>& names,
                                                const std::vector<FeedSpec>& feeds) {
  std::vector<size_t> columns;
  for (const FeedSpec& feed : feeds) {
    const auto found = std::ranges::find(names, feed.name);
    if (found == names.end()) {
      return NotFound("--slots: none is for feed '", feed.name,
                      "', there are: ", absl::StrJoin(names, " "));
    }
    if (std::ranges::count(names, feed.name) > 1) {
      return InvalidArgument("--slots: '", feed.name, "' is there twice");
    }
    columns.push_back(found - names.begin());
  }
  return columns;
}

}  // namespace

bool IsSlotFile(const std::string& argument) { return absl::EndsWith(argument, ".slot"); }

std::vector<std::string> SparseVars(const Program& program) {
  std::vector<std::string> sparse;
  for (const Var& var : program.blocks[0].vars) {
    if (var.lod_level > 0) sparse.push_back(program.NameOf(var.id));
  }
  std::ranges::sort(sparse);
  return sparse;
}

absl::StatusOr<std::shared_ptr<SampleSource>> OpenSlots(const std::vector<std::string>& paths,
                                                        const std::vector<FeedSpec>& feeds,
                                                        const std::vector<std::string>& sparse,
                                                        std::vector<std::string> names,
                                                        size_t max_bytes) {
  if (names.empty()) {
    for (const FeedSpec& feed : feeds) names.push_back(feed.name);
  }
  INTERP_ASSIGN_OR_RETURN(std::vector<size_t> columns, FindColumns(names, feeds));
  INTERP_ASSIGN_OR_RETURN(std::vector<DataSlot> slots, MakeSlots(names, feeds, sparse));
  SlotTable table(slots.size());
  for (const std::string& path : paths) {
    INTERP_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, max_bytes));
    INTERP_RETURN_IF_ERROR(Annotate(ParseMultiSlot(text, slots, max_bytes, table), path));
  }
  if (NumSamples(table) == 0) return InvalidArgument(paths[0], ": there are no samples");
  return SourceOf(std::move(table), std::move(slots), feeds, std::move(columns));
}

}  // namespace interp
