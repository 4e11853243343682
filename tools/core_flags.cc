#include "tools/core_flags.h"

#include <algorithm>
#include <cstdio>

#include "core/program_print.h"
#include "tools/sizes.h"

namespace interp {
namespace {

constexpr const char* kPlanGroup = "Passes and plan";
constexpr const char* kRunGroup = "Running";
constexpr int kMaxThreads = 1024;
constexpr absl::string_view kPrunePass = "prune";

void PrintProgram(absl::string_view pass, const Program& program) {
  std::fprintf(stderr, "after pass %.*s:\n%s", static_cast<int>(pass.size()), pass.data(),
               ToText(program).c_str());
}

}  // namespace

void AddPlanFlags(CLI::App& command, PlanFlags& flags) {
  const auto add_list = [&](const char* name, std::vector<std::string>& list, const char* help) {
    command.add_option(name, list, help)->allow_extra_args(false)->group(kPlanGroup);
  };
  add_list("--disable-pass", flags.disable_passes, "leave out a pass; repeatable");
  add_list("--enable-pass", flags.enable_passes, "run a pass that is off by default; repeatable");
  add_list("--print-after", flags.print_after,
           "print the program to standard error after this pass ('all': after each); repeatable");
  command.add_flag("--no-prune", flags.no_prune, "also run ops that no fetch depends on")
      ->group(kPlanGroup);
  command.add_flag("--in-order", flags.in_order, "keep all ops in program order")
      ->group(kPlanGroup);
  command.add_flag("--no-gc", flags.no_gc, "keep all variables until the end")->group(kPlanGroup);
  command.add_flag("--no-layout", flags.no_layout, "no channels-last layouts")->group(kPlanGroup);
}

PipelineOptions MakePipelineOptions(const PlanFlags& flags) {
  PipelineOptions options;
  options.disable = flags.disable_passes;
  options.enable = flags.enable_passes;
  options.print_after = flags.print_after;
  options.print = PrintProgram;
  if (flags.no_prune) options.disable.emplace_back(kPrunePass);
  return options;
}

PlanOptions MakePlanOptions(const PlanFlags& flags) {
  return {.sequential = flags.in_order,
          .garbage_collection = !flags.no_gc,
          .optimize_layout = !flags.no_layout};
}

void AddRunFlags(CLI::App& command, RunFlags& flags) {
  command.add_option("--scheduler", flags.scheduler, "auto, trace, serial or async")
      ->capture_default_str()
      ->group(kRunGroup);
  command.add_option("--workers", flags.workers, "threads that run ops side by side (async)")
      ->check(CLI::Range(1, kMaxThreads))
      ->capture_default_str()
      ->group(kRunGroup);
  command.add_option("--threads", flags.threads, "threads inside an op; 0: cores / workers")
      ->check(CLI::Range(0, kMaxThreads))
      ->capture_default_str()
      ->group(kRunGroup);
  command
      .add_option("--max-memory", flags.max_memory,
                  "most memory for variables, parameters apart, as in 512M or 2G")
      ->group(kRunGroup);
  command.add_option("--timeout", flags.timeout, "end each run after, for example, 2.5s or 250ms")
      ->group(kRunGroup);
  command
      .add_flag("--check-nan-inf", flags.check_nan_inf,
                "fail at the first op whose result has a NaN or an infinity")
      ->group(kRunGroup);
}

absl::StatusOr<CoreOptions> MakeCoreOptions(const PlanFlags& plan, const RunFlags& run) {
  CoreOptions options;
  const absl::StatusOr<SchedulerKind> scheduler = SchedulerFromName(run.scheduler);
  if (!scheduler.ok()) return Annotate(scheduler.status(), "--scheduler");
  options.scheduler = *scheduler;
  options.num_workers = run.workers;
  options.num_threads = run.threads;
  if (!run.max_memory.empty()) {
    const absl::StatusOr<uint64_t> limit = ParseBytes(run.max_memory);
    if (!limit.ok()) return Annotate(limit.status(), "--max-memory");
    // A limit of nothing is not the same as no limit.
    options.max_memory_bytes = std::max<uint64_t>(*limit, 1);
  }
  options.check_nan_inf = run.check_nan_inf;
  options.passes = MakePipelineOptions(plan);
  options.plan = MakePlanOptions(plan);
  const absl::StatusOr<std::vector<Pass>> passes = DefaultPipeline(options.passes);
  if (!passes.ok()) return passes.status();
  return options;
}

}  // namespace interp
