// A program run on the host and on cuda:0 from the same parameters, and what differs.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "interpreter/interpreter_core.h"
#include "tests/testing/golden.h"
#include "tests/testing/golden_steps.h"

namespace interp::cuda_test {

struct ProgramRun {
  Program program;
  std::vector<NamedTensor> parameters;  // each run begins with copies of them
  std::vector<NamedTensor> feeds;       // the same in every step
  std::vector<std::string> fetches;
  int steps = 1;
  bool trains = false;  // keeps updates, and gives the parameters after the last step as well
};

// What each step fetches, then, of training, the parameters.
inline absl::StatusOr<std::vector<NamedTensor>> RunOnPlace(const ProgramRun& run, Place place) {
  const auto scope = std::make_shared<Scope>();
  INTERP_RETURN_IF_ERROR(testing::FillScope(run.parameters, *scope));
  CoreOptions options;
  options.plan.place = place;
  options.random_seed = 5;
  if (run.trains) options.passes.disable = {"prune"};
  std::vector<std::string> names;
  std::vector<Tensor> feeds;
  for (const auto& [name, tensor] : run.feeds) {
    names.push_back(name);
    feeds.push_back(tensor);
  }
  INTERP_ASSIGN_OR_RETURN(const auto core,
                          InterpreterCore::Create(run.program, names, run.fetches, scope, options));
  std::vector<NamedTensor> results;
  for (int step = 0; step < run.steps; ++step) {
    INTERP_ASSIGN_OR_RETURN(std::vector<Tensor> fetched, core->Run(feeds));
    for (size_t i = 0; i < fetched.size(); ++i) {
      results.emplace_back(absl::StrCat(run.fetches[i], " of step ", step), std::move(fetched[i]));
    }
  }
  if (!run.trains) return results;
  for (NamedTensor& value : testing::ValuesInScope(run.parameters, *scope)) {
    results.push_back(std::move(value));
  }
  return results;
}

// What cuda:0 gives that the host does not, a line each. Floats may differ by `tolerance`, both
// relative and absolute.
inline absl::StatusOr<std::vector<std::string>> DifferencesOnGpu(const ProgramRun& run,
                                                                 double tolerance = 1e-4) {
  INTERP_ASSIGN_OR_RETURN(const auto want, RunOnPlace(run, {PlaceKind::kCpu, 0}));
  INTERP_ASSIGN_OR_RETURN(const auto got, RunOnPlace(run, {PlaceKind::kCuda, 0}));
  std::vector<std::string> differences;
  for (size_t i = 0; i < want.size(); ++i) {
    const std::string difference =
        testing::Difference(got[i].second, want[i].second, tolerance, tolerance);
    if (!difference.empty()) differences.push_back(absl::StrCat(want[i].first, " ", difference));
  }
  return differences;
}

}  // namespace interp::cuda_test
