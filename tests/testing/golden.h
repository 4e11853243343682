// Golden data: what Paddle computed, as recorded by tests/goldens/make_goldens.py. See the README
// there for the files of a case.
#pragma once

#include <string>
#include <vector>

#include "core/status.h"
#include "core/tensor.h"

namespace interp::testing {

// One op (or the few ops of one gradient) with its inputs and results.
struct GoldenCase {
  std::vector<std::string> ops;  // op types in the program but feed and fetch
  std::string program;           // the bytes of a ProgramDesc with feed and fetch ops
  std::vector<NamedTensor> feeds;
  std::vector<NamedTensor> fetches;  // expected, with their LoD
  double rtol = 0;
  double atol = 0;
};

// The sets to read: the unpacked archives of tests/goldens, or the folder that the environment
// variable INTERP_GOLDENS names, alone.
std::vector<std::string> GoldenSets();
// True when INTERP_GOLDENS names the set.
bool GoldenSetIsForeign();

// Folders of the op cases below `set`, sorted: "<set>/<op type>/<case>". Whole programs are left
// out.
std::vector<std::string> GoldenCaseFolders(const std::string& set);

absl::StatusOr<GoldenCase> ReadGoldenCase(const std::string& folder);

// A whole program with its parameters, run several times.
struct GoldenProgram {
  struct Step {
    std::vector<NamedTensor> set;  // values of persistable variables, written before the step
    std::vector<NamedTensor> feeds;
    std::vector<NamedTensor> fetches;
  };
  std::string program;  // without feed and fetch ops
  std::vector<std::string> feed_order;
  std::vector<std::string> fetch_order;
  std::vector<NamedTensor> initial;  // persistable variables before the first step
  std::vector<NamedTensor> final;    // and after the last
  std::vector<Step> steps;
  // Of a random program: what it was before minimize, which loss, and the text of the optimizer
  // that interp takes (ParseOptimizerSpec). Empty for the others.
  std::string forward;
  std::string loss;
  std::string optimizer;
  double rtol = 0;
  double atol = 0;
};

// Folders of the training programs below `set`, sorted: "<set>/programs/<name>".
std::vector<std::string> GoldenProgramFolders(const std::string& set);

absl::StatusOr<GoldenProgram> ReadGoldenProgram(const std::string& folder);

// Empty when `got` is `want` within |got - want| <= atol + rtol * |want|, else what differs. NaN
// equals NaN. Shapes, dtypes, LoD, integers and booleans must be the same.
std::string Difference(const Tensor& got, const Tensor& want, double rtol, double atol);

}  // namespace interp::testing
