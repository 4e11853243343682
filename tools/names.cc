#include "tools/names.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/base/annotate.h"
#include "core/base/near_names.h"
#include "passes/feed_fetch.h"
#include "passes/prune.h"
#include "passes/verify.h"

namespace interp {

absl::Status CheckName(const Program& program, absl::string_view name) {
  if (program.Find(name) >= 0) return absl::OkStatus();
  const std::vector<absl::string_view> names(program.names.begin(), program.names.end());
  return NotFound("the program has no variable '", name, "'", NearNamesHint(name, names));
}

absl::StatusOr<std::vector<std::string>> ResolveNames(const Program& program,
                                                      const std::vector<std::string>& arguments) {
  std::vector<std::string> names;
  const auto add = [&](absl::string_view name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
  };
  for (const std::string& argument : arguments) {
    if (program.Find(argument) >= 0) {
      add(argument);
      continue;
    }
    for (const absl::string_view part : absl::StrSplit(argument, ',')) {
      INTERP_RETURN_IF_ERROR(CheckName(program, part));
      add(part);
    }
  }
  return names;
}

absl::StatusOr<std::vector<std::string>> FetchNames(const Program& program,
                                                    const std::vector<std::string>& arguments) {
  INTERP_ASSIGN_OR_RETURN(std::vector<std::string> names,
                          Annotate(ResolveNames(program, arguments), "--fetch"));
  if (!names.empty()) return names;
  INTERP_ASSIGN_OR_RETURN(const std::vector<VarId> own, FetchVars(program));
  for (const VarId id : own) names.push_back(program.NameOf(id));
  return names;
}

absl::StatusOr<PassContext> ContextFor(const Program& program,
                                       const std::vector<std::string>& feeds,
                                       const std::vector<std::string>& fetches) {
  INTERP_ASSIGN_OR_RETURN(auto fed, Annotate(ResolveNames(program, feeds), "--feed"));
  INTERP_ASSIGN_OR_RETURN(auto fetched, Annotate(ResolveNames(program, fetches), "--fetch"));
  PassContext context{.ops = OpRegistry::Global()};
  if (!fed.empty()) context.feeds = std::move(fed);
  if (!fetched.empty()) context.fetches = std::move(fetched);
  return context;
}

absl::Status CheckFetchesAny(absl::string_view model, const std::vector<std::string>& fetches,
                             absl::string_view hint) {
  if (!fetches.empty()) return absl::OkStatus();
  return InvalidArgument(model, ": the program fetches nothing itself; name variables with --fetch",
                         hint);
}

absl::Status CheckSeen(absl::string_view model, const Program& program,
                       const std::vector<std::string>& fetches, const PipelineOptions& passes) {
  const auto& off = passes.disable;
  if (!fetches.empty() || absl::c_linear_search(off, kPrunePass)) return absl::OkStatus();
  // What is wrong with the program is said by what compiles it.
  if (!VerifyStructure(program).ok()) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(const Program pruned, Prune(program, {.ops = OpRegistry::Global()}));
  const std::vector<Op>& ops = pruned.blocks[0].ops;
  const bool seen =
      std::any_of(ops.begin(), ops.end(), [](const Op& op) { return !IsFeed(op) && !IsFetch(op); });
  return seen ? absl::OkStatus() : CheckFetchesAny(model, fetches);
}

std::optional<std::pair<std::string, std::string>> SplitAssignment(const Program& program,
                                                                   absl::string_view argument) {
  const size_t first = argument.find('=');
  if (first == absl::string_view::npos) return std::nullopt;
  size_t split = first;
  for (size_t at = first; at != absl::string_view::npos; at = argument.find('=', at + 1)) {
    if (program.Find(argument.substr(0, at)) < 0) continue;
    split = at;
    break;
  }
  return std::pair(std::string(argument.substr(0, split)), std::string(argument.substr(split + 1)));
}

std::string FileStem(absl::string_view variable) {
  return absl::StrReplaceAll(variable, {{"/", "_"}});
}

std::string VariableOfFile(const Program& program, const std::string& stem) {
  if (program.Find(stem) >= 0) return stem;
  const auto matches = [&](const std::string& name) { return FileStem(name) == stem; };
  const auto found = std::find_if(program.names.begin(), program.names.end(), matches);
  if (found == program.names.end()) return stem;
  const bool ambiguous = std::any_of(found + 1, program.names.end(), matches);
  return ambiguous ? stem : *found;
}

}  // namespace interp
