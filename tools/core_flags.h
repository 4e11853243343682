// Flags that say how a program is prepared and run.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "core/device/sim_device.h"
#include "core/status.h"
#include "interpreter/interpreter_core.h"

namespace interp {

// What decides the plan; common to `run` and `dump`.
struct PlanFlags {
  std::vector<std::string> disable_passes;
  std::vector<std::string> enable_passes;
  std::vector<std::string> print_after;
  bool no_prune = false;
  bool keeps_state = false;  // no flag: what a run leaves in variables is read
  bool in_order = false;
  bool no_gc = false;
  bool no_layout = false;
  bool no_fold = false;
  std::string place = "cpu";
  bool single_stream = false;
  std::string precision = "float32";  // or bf16, fp16, int8: the name of the pass
  std::vector<std::string> float32_ops;
};
void AddPlanFlags(CLI::App& command, PlanFlags& flags);
// InvalidArgument when `command` was given one of these flags, or one of `others`: for plans, which
// were decided when they were compiled.
absl::Status CheckNoPlanFlags(const CLI::App& command, const std::vector<std::string>& others = {});
PipelineOptions MakePipelineOptions(const PlanFlags& flags);
// InvalidArgument for passes that are both switched on and off, and for several precisions.
absl::Status CheckPasses(const std::vector<std::string>& enable,
                         const std::vector<std::string>& disable);
// Says so on standard error where `passes` ask for 16 bits and the program that they have left,
// which is that of `path`, has none.
void NoteWhatStaysWide(const std::string& path, const PipelineOptions& passes,
                       const Program& program);
// InvalidArgument for a place that does not exist and for flags that exclude each other.
absl::StatusOr<PlanOptions> MakePlanOptions(const PlanFlags& flags);

// The simulated devices of a run.
struct SimFlags {
  std::string memory = "1G";
  bool interleaved = false;
  std::string delay;  // empty: none
  double copy_gbps = SimOptions{}.copy_bytes_per_s / 1e9;
  double memory_gbps = SimOptions{}.memory_bytes_per_s / 1e9;
  double gflops = SimOptions{}.flops_per_s / 1e9;
  std::string latency = "3us";
  int64_t lose_at = 0;
};

struct RunFlags {
  std::string scheduler = "auto";
  int workers = 1;
  int threads = 0;
  std::string max_memory;
  std::string file_folder;
  std::string allocator = "tlsf";
  std::string host_memory = "ordinary";
  std::string timeout;
  std::string algorithms = "fast";
  bool tf32 = false;
  bool check_nan_inf = false;
  bool no_check_shape = false;
  std::string gc = "fast";
  std::string gc_threshold;
  bool cuda_graph = false;
  uint64_t schedule_seed = 0;
  SimFlags sim;
};
void AddRunFlags(CLI::App& command, RunFlags& flags);

// --no-check-shape and --timeout, two of AddRunFlags, alone.
CLI::Option& AddNoCheckShapeFlag(CLI::App& command, bool& no_check_shape);
CLI::Option& AddTimeoutFlag(CLI::App& command, std::string& timeout);
// The value of --timeout; nullopt for "". InvalidArgument for what is no duration.
absl::StatusOr<std::optional<std::chrono::nanoseconds>> ParseTimeout(const std::string& timeout);

// InvalidArgument for flags of AddRunFlags that have no effect on a plan whose devices, if it has
// any, are of this kind.
absl::Status CheckRunFlags(const CLI::App& command, const RunFlags& flags, PlaceKind kind);

// Without --max-memory, a run on the host may take what the machine has left now, shared by so many
// side by side, but for `reserved_bytes` that others are about to take: it fails then, and the
// system does not kill it. `kind` as of CheckRunFlags.
void LimitToMachine(const RunFlags& flags, PlaceKind kind, int side_by_side, CoreOptions& options,
                    uint64_t reserved_bytes = 0);

// InvalidArgument for a value that cannot be understood.
absl::StatusOr<CoreOptions> MakeCoreOptions(const PlanFlags& plan, const RunFlags& run);

}  // namespace interp
