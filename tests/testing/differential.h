// Differential testing: a program run by an InterpreterCore in some variant of its options must
// give the bits that Reference gives, in several runs after each other, parameters included.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/program.h"
#include "core/tensor.h"
#include "interpreter/interpreter_core.h"
#include "tests/testing/random_graph.h"

namespace interp::testing {

// A program over ProbeOps() and what it is run with.
struct DifferentialCase {
  Program program;
  std::vector<std::string> params;
  std::vector<Tensor> initial = {};             // by parameter
  std::vector<std::vector<Tensor>> feeds = {};  // by run, then by column

  std::shared_ptr<Scope> MakeScope() const;
};

// Runs with the same rows, with others, with the first again, with none.
DifferentialCase MakeCase(uint64_t seed, const RandomGraphOptions& options);

struct Expected {
  std::vector<std::vector<Tensor>> fetches;  // by run
  std::vector<Tensor> params;                // after the last
};
absl::StatusOr<Expected> RunReference(const DifferentialCase& test);

struct Variant {
  std::string name;
  CoreOptions options;
  bool wait_for_devices = true;
};

// On the host: every scheduler and number of workers, and what can be switched off.
std::vector<Variant> HostVariants();
// What runs a program on devices: every scheduler, every way to free, with threads and without.
std::vector<Variant> DeviceVariants(uint64_t seed);

// OK when all runs of `core` fetch what is expected; else what differs, or the error of a run.
absl::Status CompareFetches(InterpreterCore& core, const DifferentialCase& test,
                            const Expected& expected, const RunOptions& options);
// The same, and the parameters after the last run, for a core that was made with `scope`.
absl::Status Compare(InterpreterCore& core, Scope& scope, const DifferentialCase& test,
                     const Expected& expected, const RunOptions& options);
// The same for a new core of that variant.
absl::Status Compare(const Variant& variant, const DifferentialCase& test,
                     const Expected& expected);

// A failure when Compare finds one, with the smallest program that still shows it, and its plan.
void ExpectAgreement(const Variant& variant, const DifferentialCase& test,
                     const Expected& expected);

}  // namespace interp::testing
