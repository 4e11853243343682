// Flags that say how a program is prepared and run.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "core/status.h"
#include "interpreter/interpreter_core.h"

namespace interp {

// What decides the plan; common to `run` and `dump`.
struct PlanFlags {
  std::vector<std::string> disable_passes;
  std::vector<std::string> enable_passes;
  std::vector<std::string> print_after;
  bool no_prune = false;
  bool in_order = false;
  bool no_gc = false;
  bool no_layout = false;
};
void AddPlanFlags(CLI::App& command, PlanFlags& flags);
PipelineOptions MakePipelineOptions(const PlanFlags& flags);
PlanOptions MakePlanOptions(const PlanFlags& flags);

struct RunFlags {
  std::string scheduler = "auto";
  int workers = 1;
  int threads = 0;
  std::string max_memory;
  std::string timeout;
  bool check_nan_inf = false;
};
void AddRunFlags(CLI::App& command, RunFlags& flags);

// InvalidArgument for a value that cannot be understood.
absl::StatusOr<CoreOptions> MakeCoreOptions(const PlanFlags& plan, const RunFlags& run);

}  // namespace interp
