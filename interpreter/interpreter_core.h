// InterpreterCore: a program made ready once and run many times.
//
//   auto core = InterpreterCore::Create(program, {"image"}, {"loss"}, scope, options);
//   auto result = (*core)->Run({image});
//
// Create compiles the program and binds its plans to variables: persistable ones live in the root
// of the scope it is given, all others in the core's frames. Nothing is executed, so the first Run
// is like any other, but that kernels make their primitives and pack constant weights.
//
// Thread-safety: one Run at a time per core (a second concurrent one gets FailedPrecondition);
// Cancel from any thread. Clone gives a core for another thread: it shares plans, parameters and
// packed weights, and has its own frames, pool and primitives. A Run of a program that writes
// parameters excludes all other Runs on the same scope: whoever comes second gets
// FailedPrecondition.
//
// Errors: after a failed Run the core can run again, and nothing of the run is left but what its
// instructions had written to persistable variables by then.
//
// Long because it is all that a user of the core needs.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/algorithms.h"
#include "core/device/device.h"
#include "core/device/sim_device.h"
#include "core/engine/policy.h"
#include "core/program.h"
#include "core/resource/random_stream.h"
#include "core/scope.h"
#include "core/status.h"
#include "core/storage/pool.h"
#include "interpreter/compile/compiled_program.h"
#include "interpreter/plan/plan.h"
#include "interpreter/run/gc_options.h"
#include "interpreter/run/graph_stats.h"
#include "interpreter/run/observer.h"
#include "interpreter/run/scheduler_kind.h"
#include "passes/pipeline.h"

namespace interp {

class Rings;

// Most threads that a core takes for one purpose.
inline constexpr int kMaxThreads = 1024;

struct CoreOptions {
  SchedulerKind scheduler = SchedulerKind::kAuto;
  // Threads that run instructions side by side under `async`, the caller's included. 1: across ops
  // everything is in order, which is best when ops are large and use threads themselves.
  int num_workers = 1;
  // Which threads run what under `engine`.
  engine::PolicyKind engine_policy = engine::PolicyKind::kPerDevice;
  // Threads inside an op. 0: the CPUs that this process may use (core/machine/usable_cpus.h),
  // divided by the workers that the scheduler takes, so that both together never take more than
  // there are.
  int num_threads = 0;
  // Cores that run side by side, which divide those CPUs among them; Predictor sets it. Those of a
  // program that writes parameters do not: they run one at a time.
  int num_streams = 1;
  // Most bytes that variables of a run may take together; 0: no limit. Parameters do not count.
  size_t max_memory_bytes = 0;
  // How host memory of a run is kept for the next; devices always have a StreamPool. Results do not
  // depend on it.
  PoolKind allocator = PoolKind::kTlsf;
  // Where it comes from; null: the system's heap. Shared by all clones.
  std::shared_ptr<MemorySource> host_memory = nullptr;
  // kDirect: results differ from those of other machines by rounding and the order of sums alone.
  Algorithms algorithms = Algorithms::kFast;
  // GPUs may round factors of float32 to TF32, 10 bits of fraction, in products and convolutions.
  bool tf32 = false;
  // Every float that an op gives is looked at, and the run fails at the first that is not finite.
  // Passes that hide results stay off unless passes.enable names them.
  bool check_nan_inf = false;
  // Whether feeds must have the dims that the program declares, of which -1 is any. False is for
  // programs that declare what they do not mean. Feeds that the program itself wants checked
  // (need_check_feed) are checked in any case: passes rely on them.
  bool check_feed_shapes = true;
  GcOptions gc = {};
  // Work of GPUs goes into CUDA graphs, captured in the second run with the same shapes and
  // enqueued as a whole from the third on. Implies trace order. max_memory_bytes holds for the
  // memory of each stream's graphs apart.
  bool cuda_graphs = false;
  uint64_t schedule_seed = 0;  // of kShuffle
  // Of the ops that draw random numbers and have no seed of their own. The same seed gives the same
  // numbers in every process; EntropySeed() gives one that nobody can foresee.
  uint64_t random_seed = 0;
  // The devices that the plan's places stand for, kept alive by the core; simulated ones that are
  // missing are made, with these options but for the index.
  std::vector<std::shared_ptr<Device>> devices = {};
  SimOptions sim = {};
  // Tests: called before each allocation of a run, on the host and on devices; true makes it fail.
  std::function<bool(size_t bytes)> fail_allocation = nullptr;
  PipelineOptions passes = {};
  PlanOptions plan = {};
  // The ranks that collective ops of the program talk with; null: this process is alone, and they
  // are copies. Where there are several, clones cannot run, and a run that fails ends the talk for
  // good (Rings::Fail): this rank may have missed a collective.
  std::shared_ptr<Rings> rings = nullptr;
  // The folder that ops which read and write files (save, load and their like) may use, with what
  // is below it. Empty: such ops fail, as a program is not trusted with files.
  std::string file_folder = {};
  // Where ops are looked up; must outlive the core. Null: OpRegistry::Global().
  const OpRegistry* ops = nullptr;
};

struct RunOptions {
  std::optional<std::chrono::nanoseconds> timeout = std::nullopt;
  RunObserver* observer = nullptr;  // borrowed for the run; may be null
  // False: Run returns as soon as the fetches are there and the feeds are read; what else devices
  // have to do goes on beside the caller, and its failure is told by Synchronize or the next Run.
  bool wait_for_devices = true;
  // Draw from here instead of the core's own state, which then does not move on: for callers that
  // count steps themselves.
  std::optional<RandomState> random = std::nullopt;
};

class InterpreterCore {
 public:
  // `feeds` and `fetches` name variables, in the order of Run's arguments and results; when both
  // are empty, the program's own feed and fetch ops tell. Parameters must be in `scope` (its root)
  // by the time of Run. `scope` may be null: then the core makes one.
  static absl::StatusOr<std::unique_ptr<InterpreterCore>> Create(
      Program program, const std::vector<std::string>& feeds,
      const std::vector<std::string>& fetches, std::shared_ptr<Scope> scope,
      const CoreOptions& options = {});
  // The same for what Compile or LoadPlan returned; options.passes and options.plan have no effect.
  static absl::StatusOr<std::unique_ptr<InterpreterCore>> Create(CompiledProgram compiled,
                                                                 std::shared_ptr<Scope> scope,
                                                                 const CoreOptions& options = {});
  ~InterpreterCore();

  // Runs the program once. `feeds` are in the order of plan().feeds, share the caller's memory (but
  // for persistable variables, which get a copy), and may have new shapes in every call. The result
  // is in the order of plan().fetches; its memory stays valid after the core is gone. Errors:
  // InvalidArgument for feeds that do not fit, Cancelled, DeadlineExceeded, ResourceExhausted over
  // max_memory_bytes, and those of kernels.
  absl::StatusOr<std::vector<Tensor>> Run(absl::Span<const Tensor> feeds,
                                          const RunOptions& options = {});

  // InvalidArgument for feeds that Run would refuse.
  absl::Status CheckFeeds(absl::Span<const Tensor> feeds) const;
  // The same of the parameters in the scope: NotFound for one that has no value. REQUIRES: the core
  // is no clone that has not run.
  absl::Status CheckParameters() const;

  // Waits for what devices still have to do after a Run that did not, and tells what failed of it.
  // Parameters are not to be looked at before. Not during a Run.
  absl::Status Synchronize();

  // Ends the run in progress with Cancelled: no further instruction starts. When none is in
  // progress, the next one ends so as it begins: whoever cancels a Run from another thread cannot
  // know whether it has begun. With other ranks (CoreOptions::rings) it ends their talk, too.
  void Cancel();
  // Takes back a Cancel that has ended no run yet. Not during a Run.
  void ForgetCancel();

  // The n-th clone of a core and its clones draws random numbers from stream n, from step 0 on.
  std::unique_ptr<InterpreterCore> Clone() const;

  // Where the next Run's random numbers come from. Each Run that succeeds uses up one step; one
  // that fails can be repeated with the same numbers. Not during a Run.
  const RandomState& random_state() const;
  void SetRandomState(const RandomState& state);

  // Of the main block, which takes the feeds and gives the fetches.
  const Plan& plan() const;
  // Of all blocks; empty for those that never run.
  absl::Span<const Plan> plans() const;
  // The program after the passes, which op_index of the plans' instructions refers to.
  const Program& program() const;
  const std::vector<PassTiming>& pass_timings() const;
  // The scheduler in use; never kAuto.
  SchedulerKind scheduler() const;
  int num_threads() const;
  // Threads that run instructions side by side: 1 under schedulers that use no others.
  int num_workers() const;
  // Whether a run writes variables of the scope, and so takes it alone.
  bool writes_persistables() const;
  // The devices of the plan's streams, each once; shared by all clones.
  const std::vector<std::shared_ptr<Device>>& devices() const;
  // Of the host; and of all devices together.
  MemoryStats memory() const;
  MemoryStats device_memory() const;
  // Of each pool: the host's first, then those of the devices.
  std::vector<PoolStats> pool_stats() const;
  // Gives unused pooled memory back to the system and the devices; returns how many bytes. Not
  // during a Run of this core: its captures take memory of its pools while they hold a device's
  // gate (core/device/cuda/capture_gate.h), which this waits for with a pool locked. Other cores
  // may run.
  size_t TrimMemory();
  // Of the main block, by VarId. Between runs: what the last one left, which of freed variables is
  // shape, dtype and layout. Empty for a clone that has not run.
  absl::Span<Variable* const> variables() const;
  // The same of block `block`; empty for one that never runs.
  absl::Span<Variable* const> variables(int32_t block) const;
  // What CoreOptions::cuda_graphs has made of the main block; nothing without, and for a clone that
  // has not run. Between runs.
  std::optional<GraphStats> graph_stats() const;
  // What kernels computed with when they last ran, by the number of their instruction in the
  // program; empty for those that do not choose. Between runs.
  std::vector<std::string> algorithms() const;
  // What runs of this core and its clones have computed of constants and a plan file can keep
  // (PackedConstants::entries): packed weights, folded constants, casts. Between runs.
  std::vector<PackedEntry> PackedEntries() const;

 private:
  class Impl;
  explicit InterpreterCore(std::unique_ptr<Impl> impl);

  const std::unique_ptr<Impl> impl_;
};

}  // namespace interp
