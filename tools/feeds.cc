#include "tools/feeds.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/annotate.h"
#include "core/each_argument.h"
#include "core/io/npy.h"
#include "core/io/npz.h"
#include "passes/feed_fetch.h"
#include "tools/feed_values.h"
#include "tools/model.h"
#include "tools/names.h"
#include "tools/number_flag.h"
#include "tools/repeated_flag.h"
#include "tools/sizes.h"

namespace interp {
namespace {

// NotFound, with the program's inputs, for a variable that it does not have.
absl::Status CheckFed(const Program& program, absl::string_view name) {
  constexpr size_t kMaxShown = 8;  // some programs have hundreds
  const absl::Status known = CheckName(program, name);
  const absl::StatusOr<std::vector<VarId>> inputs = DataVars(program);
  if (known.ok() || !inputs.ok() || inputs->empty()) return known;
  std::string text;
  for (size_t i = 0; i < std::min(inputs->size(), kMaxShown); ++i) {
    absl::StrAppend(&text, i == 0 ? "'" : ", '", program.NameOf((*inputs)[i]), "' ",
                    DescribeVar(FindVar(program, (*inputs)[i])));
  }
  if (inputs->size() > kMaxShown) {
    absl::StrAppend(&text, " and ", inputs->size() - kMaxShown, " more");
  }
  return NotFound(known.message(), "; its inputs are ", text);
}

// "name=value" of one --feed argument; nullopt where it is the path of a file.
std::optional<std::pair<std::string, std::string>> SplitFeed(const Program& program,
                                                             const std::string& argument) {
  std::error_code ignored;
  const bool is_file = std::filesystem::is_regular_file(argument, ignored);
  auto assignment = SplitAssignment(program, argument);
  if (assignment.has_value() && is_file && program.Find(assignment->first) < 0) return std::nullopt;
  return assignment;
}

// The feeds of one --feed argument.
absl::StatusOr<std::vector<NamedTensor>> ReadFeed(const Program& program,
                                                  const std::string& argument, uint64_t seed,
                                                  size_t max_bytes,
                                                  std::vector<FedPicture>* pictures) {
  if (const auto assignment = SplitFeed(program, argument); assignment.has_value()) {
    const auto& [name, value] = *assignment;
    INTERP_RETURN_IF_ERROR(CheckFed(program, name));
    if (value.empty()) {
      return InvalidArgument("expected a file, random, fill:, raw: or image: behind the '='");
    }
    const FeedTarget target = {name, FindVar(program, program.Find(name))};
    absl::StatusOr<Tensor> tensor = ReadFeedValue(target, value, seed, max_bytes, pictures);
    if (!tensor.ok()) return tensor.status();
    return std::vector<NamedTensor>{{name, *std::move(tensor)}};
  }
  if (absl::EndsWith(argument, ".npz")) return ReadNpz(argument, max_bytes);
  INTERP_ASSIGN_OR_RETURN(Tensor tensor, ReadNpy(argument, max_bytes));
  return std::vector<NamedTensor>{
      {VariableOfFile(program, std::filesystem::path(argument).stem().string()),
       std::move(tensor)}};
}

// The random feed of one --shape argument.
absl::StatusOr<std::vector<NamedTensor>> ReadShape(const Program& program,
                                                   const std::string& argument, uint64_t seed) {
  const auto assignment = SplitAssignment(program, argument);
  if (!assignment.has_value()) {
    return InvalidArgument("expected NAME=DIMS, as in x=1x3x224x224");
  }
  return ReadFeed(program, absl::StrCat(assignment->first, "=random:", assignment->second), seed,
                  /*max_bytes=*/0, /*pictures=*/nullptr);
}

NamedTensor* FindFeed(std::vector<NamedTensor>& feeds, absl::string_view name) {
  const auto it = std::find_if(feeds.begin(), feeds.end(),
                               [&](const NamedTensor& feed) { return feed.first == name; });
  return it == feeds.end() ? nullptr : &*it;
}

// Adds what one argument gives.
absl::Status AddFeeds(const Program& program, absl::StatusOr<std::vector<NamedTensor>> read,
                      std::vector<NamedTensor>& feeds) {
  INTERP_RETURN_IF_ERROR(read.status());
  if (read->empty()) return InvalidArgument("there are no arrays in it");
  for (NamedTensor& feed : *read) {
    INTERP_RETURN_IF_ERROR(CheckFed(program, feed.first));
    if (FindFeed(feeds, feed.first) != nullptr) {
      return InvalidArgument("'", feed.first, "' is fed twice");
    }
    feeds.push_back(std::move(feed));
  }
  return absl::OkStatus();
}

absl::Status SetLod(const Program& program, const std::string& argument,
                    std::set<std::string>& given, std::vector<NamedTensor>& feeds) {
  const auto assignment = SplitAssignment(program, argument);
  if (!assignment.has_value()) {
    return InvalidArgument("expected NAME=OFFSETS, as in words=0,2,5");
  }
  NamedTensor* feed = FindFeed(feeds, assignment->first);
  if (feed == nullptr) return InvalidArgument("'", assignment->first, "' is not fed");
  if (!given.insert(assignment->first).second) {
    return InvalidArgument("'", assignment->first, "' gets offsets twice");
  }
  Lod lod;
  for (const absl::string_view level : absl::StrSplit(assignment->second, '/')) {
    std::vector<int64_t>& offsets = lod.emplace_back();
    for (const absl::string_view number : absl::StrSplit(level, ',')) {
      if (!absl::SimpleAtoi(number, &offsets.emplace_back())) {
        return InvalidArgument("'", number, "' is no number");
      }
    }
  }
  INTERP_RETURN_IF_ERROR(CheckLod(lod, feed->second.shape));
  feed->second.lod = std::move(lod);
  return absl::OkStatus();
}

// By VarId: what block 0 has to read or compute to know the value of `fetches`.
std::vector<bool> NeededVars(const Program& program, const std::vector<std::string>& fetches) {
  std::vector<bool> needed(program.names.size(), false);
  for (const std::string& name : fetches) {
    if (const VarId id = program.Find(name); id >= 0) needed[id] = true;
  }
  const std::vector<Op>& ops = program.blocks[0].ops;
  for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
    const bool used = std::any_of(op->outputs.begin(), op->outputs.end(), [&](const Slot& slot) {
      return std::any_of(slot.args.begin(), slot.args.end(), [&](VarId id) { return needed[id]; });
    });
    if (!used) continue;
    for (const VarId id : EachArgument(op->inputs)) needed[id] = true;
  }
  return needed;
}

}  // namespace

void AddFeedFlags(CLI::App& command, FeedFlags& flags) {
  AddRepeatedFlag(command, "--feed", flags.feeds,
                  "x.npy (feeds x), name=x.npy, file.npz with one array per variable, "
                  "name=random:1x3x224x224, name=fill:0.5:1x3x224x224, "
                  "name=raw:file:float32:1x3x224x224, or name=image:cat.jpg,size=224; repeatable");
  AddRepeatedFlag(command, "--feed-lod", flags.lods,
                  "LoD of a feed, as in words=0,2,5; levels separated by '/'; repeatable");
  command.add_option("--max-file-memory", flags.limits.max_file_memory,
                     "most that the arrays of one file of feeds may take, as in 512M; default 16G");
  command.add_option("--seed", flags.limits.seed, "seed of random feeds and of random ops")
      ->transform(Whole(0, kMaxSeed))
      ->capture_default_str();
}

absl::StatusOr<size_t> MaxFileBytes(const DataLimits& limits) {
  if (limits.max_file_memory.empty()) return kMaxArrayBytes;
  INTERP_ASSIGN_OR_RETURN(const uint64_t bytes,
                          Annotate(ParseBytes(limits.max_file_memory), "--max-file-memory"));
  return static_cast<size_t>(bytes);
}

absl::StatusOr<std::vector<NamedTensor>> ReadFeeds(const Program& program, const FeedFlags& flags,
                                                   std::vector<FedPicture>* pictures) {
  INTERP_ASSIGN_OR_RETURN(const size_t max_bytes, MaxFileBytes(flags.limits));
  std::vector<NamedTensor> feeds;
  for (const std::string& argument : flags.feeds) {
    INTERP_RETURN_IF_ERROR(Annotate(
        AddFeeds(program, ReadFeed(program, argument, flags.limits.seed, max_bytes, pictures),
                 feeds),
        absl::StrCat("--feed ", argument)));
  }
  for (const std::string& argument : flags.shapes) {
    INTERP_RETURN_IF_ERROR(
        Annotate(AddFeeds(program, ReadShape(program, argument, flags.limits.seed), feeds),
                 absl::StrCat("--shape ", argument)));
  }
  std::set<std::string> given;  // feeds that have got offsets
  for (const std::string& argument : flags.lods) {
    INTERP_RETURN_IF_ERROR(
        Annotate(SetLod(program, argument, given, feeds), absl::StrCat("--feed-lod ", argument)));
  }
  return feeds;
}

bool GivesFeed(const Program& program, const std::string& argument) {
  if (ResolveNames(program, {argument}).ok()) return false;
  std::error_code ignored;
  return absl::StrContains(argument, '=') || absl::EndsWith(argument, ".npy") ||
         absl::EndsWith(argument, ".npz") || std::filesystem::exists(argument, ignored);
}

std::vector<std::string> FilesOfFeeds(const Program& program, const FeedFlags& flags) {
  std::vector<std::string> files;
  for (const std::string& argument : flags.feeds) {
    const auto assignment = SplitFeed(program, argument);
    files.push_back(assignment.has_value() ? FileOfFeed(assignment->second) : argument);
  }
  return files;
}

absl::Status AddRandomFeeds(const Program& program, uint64_t seed,
                            std::vector<NamedTensor>& feeds) {
  INTERP_ASSIGN_OR_RETURN(const std::vector<VarId> wanted, DataVars(program));
  std::vector<std::string> names;
  for (const VarId id : wanted) names.push_back(program.NameOf(id));
  return AddRandomFeeds(program, names, seed, feeds);
}

absl::Status AddRandomFeeds(const Program& program, const std::vector<std::string>& wanted,
                            uint64_t seed, std::vector<NamedTensor>& feeds) {
  std::vector<std::pair<std::string, Var>> missing;
  for (const std::string& name : wanted) {
    if (FindFeed(feeds, name) != nullptr) continue;
    const Var* const declared = FindVar(program, program.Find(name));
    Var& var = missing.emplace_back(name, declared == nullptr ? Var() : *declared).second;
    if (!var.dims.empty() && var.dims[0] < 0) var.dims[0] = 1;
  }
  size_t left = kMaxArrayBytes;
  for (const auto& [name, var] : missing) {
    const absl::Status taken =
        TakeDeclaredBytes(name, var, "random feeds", "a value or a smaller shape for it", left);
    if (!taken.ok()) return InvalidArgument(taken.message());
  }
  for (const auto& [name, var] : missing) {
    INTERP_ASSIGN_OR_RETURN(Tensor tensor,
                            Annotate(ReadFeedValue({name, &var}, "random", seed, /*max_bytes=*/0),
                                     absl::StrCat("--feed ", name, "=random")));
    feeds.emplace_back(name, std::move(tensor));
  }
  return absl::OkStatus();
}

void AddDefaultLods(const Program& program, std::vector<NamedTensor>& feeds) {
  for (auto& [name, feed] : feeds) {
    const Var* const var = FindVar(program, program.Find(name));
    if (var == nullptr || var->lod_level <= 0 || !feed.lod.empty() || feed.shape.rank() == 0) {
      continue;
    }
    feed.lod.assign(var->lod_level, {0, 1});
    feed.lod.back() = {0, feed.shape[0]};
  }
}

int64_t CountItems(const Tensor& feed) {
  if (!feed.lod.empty()) return std::ssize(feed.lod[0]) - 1;
  return feed.shape.rank() == 0 ? 1 : feed.shape[0];
}

absl::StatusOr<Tensor> RepeatFeed(const Tensor& feed, int64_t times) {
  if (feed.shape.rank() == 0) return InvalidArgument("a feed without dims cannot be repeated");
  std::vector<int64_t> dims(feed.shape.begin(), feed.shape.end());
  if (__builtin_mul_overflow(dims[0], times, &dims[0])) {
    return InvalidArgument(DescribeType(feed), " cannot be repeated ", times, " times");
  }
  INTERP_ASSIGN_OR_RETURN(Tensor repeated, MakeFeed(feed.dtype, dims));
  const size_t size_bytes = feed.size_bytes();
  for (int64_t i = 0; size_bytes > 0 && i < times; ++i) {
    std::memcpy(static_cast<char*>(repeated.mutable_raw_data()) + i * size_bytes, feed.raw_data(),
                size_bytes);
  }
  for (const std::vector<int64_t>& level : feed.lod) {
    std::vector<int64_t>& offsets = repeated.lod.emplace_back(std::vector<int64_t>{0});
    for (int64_t i = 0; i < times; ++i) {
      const int64_t start = offsets.back();
      for (size_t j = 1; j < level.size(); ++j) offsets.push_back(start + level[j]);
    }
  }
  return repeated;
}

absl::Status CheckNoFeedMissing(const Program& program, const std::vector<NamedTensor>& feeds,
                                const std::vector<std::string>& fetches, bool all) {
  INTERP_ASSIGN_OR_RETURN(const std::vector<VarId> wanted, FeedVars(program));
  const std::vector<bool> needed = NeededVars(program, fetches);
  std::vector<std::string> missing;
  for (const VarId id : wanted) {
    const std::string& name = program.NameOf(id);
    const bool fed = std::any_of(feeds.begin(), feeds.end(),
                                 [&](const NamedTensor& feed) { return feed.first == name; });
    if (!fed && (all || needed[id])) {
      missing.push_back(absl::StrCat("'", name, "' ", DescribeVar(FindVar(program, id))));
    }
  }
  if (missing.empty()) return absl::OkStatus();
  return InvalidArgument("nothing is fed to ", absl::StrJoin(missing, ", "),
                         "; use --feed NAME=FILE.npy or --feed NAME=random:1x3x224x224");
}

}  // namespace interp
