// Long because it holds all flags of plans and runs, and what they mean together.
#include "tools/core_flags.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "absl/algorithm/container.h"
#include "core/base/annotate.h"
#include "core/base/terminal_text.h"
#include "core/device/sim_device.h"
#include "core/machine/usable_memory.h"
#include "core/program_print.h"
#include "interpreter/load_cuda.h"
#include "passes/prune.h"
#include "tools/engine_environment.h"
#include "tools/exit_code.h"
#include "tools/flag_effects.h"
#include "tools/number_flag.h"
#include "tools/ranks.h"
#include "tools/repeated_flag.h"
#include "tools/sizes.h"

namespace interp {
namespace {

constexpr const char* kPlanGroup = "Passes and plan";
constexpr const char* kRunGroup = "Running";
constexpr const char* kSimGroup = "Simulated devices";

void PrintProgram(absl::string_view pass, const Program& program) {
  const std::string text = absl::StrCat("after pass ", pass, ":\n", TerminalText(ToText(program)));
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace

void AddPlanFlags(CLI::App& command, PlanFlags& flags) {
  const auto add_list = [&](const char* name, std::vector<std::string>& list, const char* help) {
    AddRepeatedFlag(command, name, list, help).group(kPlanGroup);
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
  command
      .add_option("--place", flags.place,
                  "where ops run: cpu, cuda:N, a GPU, cuda, the first one or that of a rank, or "
                  "sim:N, a simulated device")
      ->capture_default_str()
      ->group(kPlanGroup);
  command.add_flag("--single-stream", flags.single_stream, "all work of a device on one stream")
      ->group(kPlanGroup);
  command
      .add_option("--precision,--amp", flags.precision,
                  "what products and what follows them are computed in: float32, bf16 or fp16, "
                  "parameters staying float32, or int8, of programs quantised in training")
      ->check(CLI::IsMember({"float32", "bf16", "fp16", "int8"}))
      ->capture_default_str()
      ->group(kPlanGroup);
  command
      .add_option("--float32-ops", flags.float32_ops,
                  "types of ops that --precision leaves in float32, as in softmax,layer_norm")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->group(kPlanGroup);
  command.add_flag("--no-layout", flags.no_layout, "no channels-last layouts")->group(kPlanGroup);
  command
      .add_flag("--no-fold", flags.no_fold,
                "compute in every run what depends on parameters and constants alone")
      ->group(kPlanGroup);
}

absl::Status CheckNoPlanFlags(const CLI::App& command, const std::vector<std::string>& others) {
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    const bool decides = option->get_group() == kPlanGroup || absl::c_linear_search(others, name);
    if (!decides || option->count() == 0) continue;
    return InvalidArgument(name,
                           " is decided when a plan is compiled: give it to `interp compile`");
  }
  return absl::OkStatus();
}

PipelineOptions MakePipelineOptions(const PlanFlags& flags) {
  PipelineOptions options;
  options.disable = flags.disable_passes;
  options.enable = flags.enable_passes;
  options.print_after = flags.print_after;
  options.print = PrintProgram;
  if (flags.no_prune) options.disable.emplace_back(kPrunePass);
  if (!flags.keeps_state) KeepNoState(options);
  if (flags.precision != PlanFlags{}.precision) options.enable.push_back(flags.precision);
  options.float32_ops = flags.float32_ops;
  return options;
}

namespace {

absl::Status CheckPrecision(const PlanFlags& flags) {
  const bool narrow = flags.precision != PlanFlags{}.precision ||
                      absl::c_linear_search(flags.enable_passes, "bf16") ||
                      absl::c_linear_search(flags.enable_passes, "fp16");
  if (!narrow && !flags.float32_ops.empty()) {
    return InvalidArgument("--float32-ops has no effect without --precision");
  }
  if (absl::c_linear_search(flags.disable_passes, flags.precision)) {
    return InvalidArgument("--precision ", flags.precision, " and --disable-pass ", flags.precision,
                           ": expected one of the two");
  }
  std::vector<std::string> enable = flags.enable_passes;
  if (flags.precision != PlanFlags{}.precision) enable.push_back(flags.precision);
  return CheckPasses(enable, flags.disable_passes);
}

}  // namespace

absl::Status CheckPasses(const std::vector<std::string>& enable,
                         const std::vector<std::string>& disable) {
  for (const std::string& pass : enable) {
    if (!absl::c_linear_search(disable, pass)) continue;
    return InvalidArgument("--enable-pass ", pass, " and --disable-pass ", pass,
                           ": expected one of the two");
  }
  // They change the same products: which of them would is nothing to depend on.
  absl::string_view precision;
  for (const absl::string_view other : {"bf16", "fp16", "int8"}) {
    if (!absl::c_linear_search(enable, other)) continue;
    if (!precision.empty()) {
      return InvalidArgument("precisions ", precision, " and ", other, ": expected one of the two");
    }
    precision = other;
  }
  return absl::OkStatus();
}

void NoteWhatStaysWide(const std::string& path, const PipelineOptions& passes,
                       const Program& program) {
  for (const auto& [pass, dtype] :
       {std::pair("bf16", DType::kBFloat16), std::pair("fp16", DType::kFloat16)}) {
    if (!absl::c_linear_search(passes.enable, pass)) continue;
    const bool narrowed = std::any_of(
        program.blocks.begin(), program.blocks.end(), [dtype = dtype](const Block& block) {
          return std::any_of(block.vars.begin(), block.vars.end(),
                             [dtype](const Var& var) { return var.dtype == dtype; });
        });
    if (narrowed) continue;
    Note(absl::StrCat(path, ": nothing is computed in ", pass,
                      ": no product of the program, but for those of --float32-ops, "
                      "has a kernel for it"));
  }
}

absl::StatusOr<PlanOptions> MakePlanOptions(const PlanFlags& flags) {
  INTERP_ASSIGN_OR_RETURN(const Place place, Annotate(LoadPlace(flags.place), "--place"));
  INTERP_RETURN_IF_ERROR(CheckPrecision(flags));
  if (flags.single_stream && place.on_host()) {
    return InvalidArgument("--single-stream has no effect without a device (--place sim)");
  }
  return PlanOptions{.sequential = flags.in_order,
                     .garbage_collection = !flags.no_gc,
                     .optimize_layout = !flags.no_layout,
                     .fold_constants = !flags.no_fold,
                     .place = place,
                     .single_stream = flags.single_stream};
}

namespace {

void AddThreadFlags(CLI::App& command, RunFlags& flags) {
  command
      .add_option("--scheduler", flags.scheduler, "auto, trace, serial, async, engine or shuffle")
      ->capture_default_str()
      ->group(kRunGroup);
  command
      .add_option("--workers", flags.workers, "threads that run ops side by side (async, engine)")
      ->transform(Whole(1, kMaxThreads))
      ->capture_default_str()
      ->group(kRunGroup);
  command.add_option("--threads", flags.threads, "threads inside an op; 0: usable CPUs / workers")
      ->transform(Whole(0, kMaxThreads))
      ->capture_default_str()
      ->group(kRunGroup);
}

void AddDeviceFlags(CLI::App& command, RunFlags& flags) {
  command
      .add_flag("--tf32", flags.tf32,
                "GPUs multiply float32 as TF32, with 10 bits of fraction: faster")
      ->group(kRunGroup);
  command
      .add_flag("--cuda-graph", flags.cuda_graph,
                "work of GPUs in CUDA graphs, from the third run with the same shapes on")
      ->group(kRunGroup);
  command
      .add_option("--gc", flags.gc,
                  "how memory of devices is freed: fast (in stream order) or event (after its use)")
      ->capture_default_str()
      ->group(kRunGroup);
  command
      .add_option("--gc-threshold", flags.gc_threshold,
                  "free memory when this much has come together, as in 16M")
      ->group(kRunGroup);
}

void AddSimFlags(CLI::App& command, RunFlags& run) {
  SimFlags& flags = run.sim;
  const auto add = [&](const char* name, auto& value, const char* help) {
    return command.add_option(name, value, help)->capture_default_str()->group(kSimGroup);
  };
  add("--schedule-seed", run.schedule_seed, "of the shuffle scheduler and of simulated delays")
      ->transform(Whole(0, kMaxSeed));
  add("--sim-memory", flags.memory, "of each device, as in 64M");
  command
      .add_flag("--sim-interleaved", flags.interleaved,
                "no threads: work runs in an order drawn from the seed")
      ->group(kSimGroup);
  add("--sim-delay", flags.delay, "longest random pause before a piece of work, as in 50us");
  add("--sim-copy-gbps", flags.copy_gbps, "GB/s between host and device, in simulated time")
      ->check(Real(0, /*least_included=*/false));
  add("--sim-memory-gbps", flags.memory_gbps, "GB/s of device memory")
      ->check(Real(0, /*least_included=*/false));
  add("--sim-gflops", flags.gflops, "billion operations per second")
      ->check(Real(0, /*least_included=*/false));
  add("--sim-latency", flags.latency, "of each kernel and copy, as in 3us");
  add("--sim-lose-at", flags.lose_at,
      "each device breaks down for good at its n-th kernel or copy; 0: never")
      ->transform(Whole(0));
}

absl::StatusOr<SimOptions> MakeSimOptions(const RunFlags& run) {
  const SimFlags& flags = run.sim;
  SimOptions options{.seed = run.schedule_seed};
  INTERP_ASSIGN_OR_RETURN(const uint64_t memory,
                          Annotate(ParseBytes(flags.memory), "--sim-memory"));
  if (memory < kBufferAlignment || memory > kMaxSimBytes) {
    return InvalidArgument("--sim-memory: '", flags.memory, "' is not between ", kBufferAlignment,
                           " bytes and 16T");
  }
  if (!flags.delay.empty()) {
    INTERP_ASSIGN_OR_RETURN(const std::chrono::nanoseconds delay,
                            Annotate(ParseDuration(flags.delay), "--sim-delay"));
    options.max_kernel_delay_ns = options.max_copy_delay_ns = delay.count();
  }
  INTERP_ASSIGN_OR_RETURN(const std::chrono::nanoseconds latency,
                          Annotate(ParseDuration(flags.latency), "--sim-latency"));
  options.capacity_bytes = memory;
  if (flags.interleaved) options.execution = SimOptions::Execution::kInterleaved;
  options.copy_bytes_per_s = flags.copy_gbps * 1e9;
  options.memory_bytes_per_s = flags.memory_gbps * 1e9;
  options.flops_per_s = flags.gflops * 1e9;
  options.latency_ns = latency.count();
  options.lose_at = flags.lose_at;
  return options;
}

absl::StatusOr<GcOptions> MakeGcOptions(const RunFlags& run) {
  GcOptions options;
  if (run.gc != "fast" && run.gc != "event") {
    return InvalidArgument("--gc: '", run.gc, "' is neither fast nor event");
  }
  options.policy = run.gc == "fast" ? GcPolicy::kFast : GcPolicy::kEvent;
  if (!run.gc_threshold.empty()) {
    INTERP_ASSIGN_OR_RETURN(options.threshold_bytes,
                            Annotate(ParseBytes(run.gc_threshold), "--gc-threshold"));
  }
  return options;
}

}  // namespace

void AddRunFlags(CLI::App& command, RunFlags& flags) {
  AddThreadFlags(command, flags);
  command
      .add_option(
          "--max-memory", flags.max_memory,
          "most memory for variables, parameters apart, as in 512M or 2G; default: what the "
          "machine or the container has left")
      ->group(kRunGroup);
  command
      .add_option("--allow-files", flags.file_folder,
                  "let ops like save and load use files in this folder; without it they fail")
      ->check(CLI::ExistingDirectory)
      ->group(kRunGroup);
  command
      .add_option("--allocator", flags.allocator,
                  "how host memory is kept for later: tlsf, naive, power_of_two, linear or exact")
      ->capture_default_str()
      ->group(kRunGroup);
  command
      .add_option("--host-memory", flags.host_memory,
                  "where it comes from: ordinary, pinned (locked pages) or shared (segments)")
      ->capture_default_str()
      ->group(kRunGroup);
  AddTimeoutFlag(command, flags.timeout).group(kRunGroup);
  command
      .add_option("--algorithms", flags.algorithms,
                  "fast, or direct: convolutions as the sums that define them")
      ->capture_default_str()
      ->group(kRunGroup);
  command
      .add_flag("--check-nan-inf", flags.check_nan_inf,
                "fail at the first op whose result has a NaN or an infinity")
      ->group(kRunGroup);
  AddNoCheckShapeFlag(command, flags.no_check_shape).group(kRunGroup);
  AddDeviceFlags(command, flags);
  AddSimFlags(command, flags);
}

CLI::Option& AddNoCheckShapeFlag(CLI::App& command, bool& no_check_shape) {
  return *command.add_flag(
      "--no-check-shape", no_check_shape,
      "also take feeds whose shapes are not those that the program declares, unless it asks for "
      "this check itself (need_check_feed)");
}

CLI::Option& AddTimeoutFlag(CLI::App& command, std::string& timeout) {
  return *command.add_option("--timeout", timeout,
                             "end each run after, for example, 2.5s or 250ms");
}

absl::StatusOr<std::optional<std::chrono::nanoseconds>> ParseTimeout(const std::string& timeout) {
  if (timeout.empty()) return std::nullopt;
  return Annotate(ParseDuration(timeout), "--timeout");
}

absl::Status CheckRunFlags(const CLI::App& command, const RunFlags& flags, PlaceKind kind) {
  const bool with_devices = kind != PlaceKind::kCpu;
  INTERP_RETURN_IF_ERROR(CheckEffect(command, {"--tf32", "--cuda-graph"}, kind == PlaceKind::kCuda,
                                     "without a GPU (--place cuda:0)"));
  constexpr const char* kWithoutDevice = "without a device (--place sim)";
  INTERP_RETURN_IF_ERROR(
      CheckEffect(command,
                  {"--sim-memory", "--sim-interleaved", "--sim-delay", "--sim-copy-gbps",
                   "--sim-memory-gbps", "--sim-gflops", "--sim-latency", "--sim-lose-at", "--gc"},
                  with_devices, kWithoutDevice));
  INTERP_RETURN_IF_ERROR(CheckEffect(command, {"--schedule-seed"},
                                     with_devices || flags.scheduler == "shuffle",
                                     "without --scheduler shuffle or a device (--place sim)"));
  const bool one_thread =
      flags.scheduler == "trace" || flags.scheduler == "serial" || flags.scheduler == "shuffle";
  return CheckEffect(command, {"--workers"}, !one_thread || flags.workers == 1,
                     absl::StrCat("with --scheduler ", flags.scheduler, ", which uses one"));
}

namespace {

absl::Status SetMemory(const RunFlags& run, CoreOptions& options) {
  if (!run.max_memory.empty()) {
    INTERP_ASSIGN_OR_RETURN(const uint64_t limit,
                            Annotate(ParseBytes(run.max_memory), "--max-memory"));
    // A limit of nothing is not the same as no limit.
    options.max_memory_bytes = std::max<uint64_t>(limit, 1);
  }
  INTERP_ASSIGN_OR_RETURN(options.allocator,
                          Annotate(PoolKindFromName(run.allocator), "--allocator"));
  INTERP_ASSIGN_OR_RETURN(const HostMemory memory,
                          Annotate(HostMemoryFromName(run.host_memory), "--host-memory"));
  options.host_memory = MakeHostMemory(memory);
  return absl::OkStatus();
}

}  // namespace

void LimitToMachine(const RunFlags& flags, PlaceKind kind, int side_by_side, CoreOptions& options,
                    uint64_t reserved_bytes) {
  if (!flags.max_memory.empty() || kind != PlaceKind::kCpu) return;
  const std::optional<uint64_t> usable = UsableMemory();
  if (!usable.has_value()) return;
  // Libraries and the system's tables take some, too.
  const uint64_t most = *usable - *usable / 16;
  const uint64_t left = most - std::min(most, reserved_bytes);
  const auto shares = static_cast<uint64_t>(side_by_side) * RanksOfThisMachine();
  options.max_memory_bytes = std::max<uint64_t>(left / shares, 1);
}

absl::StatusOr<CoreOptions> MakeCoreOptions(const PlanFlags& plan, const RunFlags& run) {
  CoreOptions options;
  options.file_folder = run.file_folder;
  INTERP_ASSIGN_OR_RETURN(options.scheduler,
                          Annotate(SchedulerFromName(run.scheduler), "--scheduler"));
  options.num_workers = run.workers;
  if (options.scheduler == SchedulerKind::kEngine) {
    INTERP_ASSIGN_OR_RETURN(const engine::EngineOptions engine,
                            engine::FromEnvironment({.workers = run.workers}));
    options.engine_policy = engine.policy;
    options.num_workers = engine.workers;
    if (engine.workers > engine::kMaxWorkers) {
      return InvalidArgument("--workers ", engine.workers, ": expected ", engine::kMaxWorkers,
                             " at most with --scheduler engine");
    }
  }
  options.num_threads = run.threads;
  INTERP_RETURN_IF_ERROR(SetMemory(run, options));
  INTERP_ASSIGN_OR_RETURN(options.algorithms,
                          Annotate(AlgorithmsFromName(run.algorithms), "--algorithms"));
  options.tf32 = run.tf32;
  options.check_nan_inf = run.check_nan_inf;
  options.check_feed_shapes = !run.no_check_shape;
  options.passes = MakePipelineOptions(plan);
  INTERP_ASSIGN_OR_RETURN(options.plan, MakePlanOptions(plan));
  INTERP_ASSIGN_OR_RETURN(options.gc, MakeGcOptions(run));
  options.cuda_graphs = run.cuda_graph;
  options.schedule_seed = run.schedule_seed;
  INTERP_ASSIGN_OR_RETURN(options.sim, MakeSimOptions(run));
  INTERP_RETURN_IF_ERROR(DefaultPipeline(options.passes).status());
  return options;
}

}  // namespace interp
