#include "tests/testing/golden_run.h"

#include <algorithm>
#include <filesystem>

#include "core/op_def.h"
#include "core/program_load.h"

namespace interp::testing {
namespace {

const Tensor* FindByName(const std::vector<NamedTensor>& tensors, absl::string_view name) {
  for (const NamedTensor& t : tensors) {
    if (t.first == name) return &t.second;
  }
  return nullptr;
}

absl::StatusOr<std::vector<Tensor>> FeedsInOrder(const InterpreterCore& core,
                                                 const GoldenCase& golden) {
  std::vector<Tensor> feeds;
  for (const FeedSpec& spec : core.plan().feeds) {
    const Tensor* feed = FindByName(golden.feeds, spec.name);
    if (feed == nullptr) return NotFound("no value for feed '", spec.name, "'");
    feeds.push_back(*feed);
  }
  return feeds;
}

}  // namespace

CoreOptions DamagedOptions() {
  CoreOptions options;
  options.max_memory_bytes = size_t{64} << 20;
  options.allocator = PoolKind::kNaive;
  return options;
}

absl::Status RunDamagedTwice(InterpreterCore& core, const std::vector<NamedTensor>& feeds) {
  std::vector<Tensor> values;
  for (const FeedSpec& spec : core.plan().feeds) {
    const Tensor* const feed = FindByName(feeds, spec.name);
    values.push_back(feed == nullptr ? Tensor() : *feed);
  }
  INTERP_RETURN_IF_ERROR(core.Run(values).status());
  return core.Run(values).status();
}

const std::map<std::string, std::vector<std::string>>& GoldenCasesByOp() {
  static const auto* cases = [] {
    auto* by_op = new std::map<std::string, std::vector<std::string>>;
    for (const std::string& set : GoldenSets()) {
      for (const std::string& folder : GoldenCaseFolders(set)) {
        (*by_op)[std::filesystem::path(folder).parent_path().filename().string()].push_back(folder);
      }
    }
    return by_op;
  }();
  return *cases;
}

std::vector<std::string> GoldenOpTypes() {
  std::vector<std::string> types;
  for (const auto& [type, folders] : GoldenCasesByOp()) {
    if (OpRegistry::Global().Find(type) != nullptr) types.push_back(type);
  }
  return types;
}

bool IsComparable(const GoldenCase& golden) {
  return std::all_of(golden.ops.begin(), golden.ops.end(), [](const std::string& type) {
    return OpRegistry::Global().Find(type) != nullptr && type != "eig" && type != "eigvals";
  });
}

absl::StatusOr<std::unique_ptr<InterpreterCore>> MakeGoldenCore(const GoldenCase& golden,
                                                                const CoreOptions& options) {
  INTERP_ASSIGN_OR_RETURN(Program program, LoadProgram(golden.program));
  return InterpreterCore::Create(std::move(program), {}, {}, nullptr, options);
}

std::vector<std::string> RunGolden(InterpreterCore& core, const GoldenCase& golden) {
  const absl::StatusOr<std::vector<Tensor>> feeds = FeedsInOrder(core, golden);
  if (!feeds.ok()) return {feeds.status().ToString()};
  const absl::StatusOr<std::vector<Tensor>> results = core.Run(*feeds);
  if (!results.ok()) return {results.status().ToString()};
  std::vector<std::string> errors;
  for (size_t i = 0; i < results->size(); ++i) {
    const std::string& name = core.plan().fetches[i];
    const Tensor* want = FindByName(golden.fetches, name);
    if (want == nullptr) {
      errors.push_back(absl::StrCat("no expected value for '", name, "'"));
      continue;
    }
    const std::string difference = Difference((*results)[i], *want, golden.rtol, golden.atol);
    if (!difference.empty()) errors.push_back(absl::StrCat("'", name, "' ", difference));
  }
  return errors;
}

}  // namespace interp::testing
