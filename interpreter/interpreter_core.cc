// Long because how a run begins and ends, on the host and on devices, shares the state of one core.
#include "interpreter/interpreter_core.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <shared_mutex>
#include <utility>

#include "absl/algorithm/container.h"
#include "core/base/catching.h"
#include "core/base/steady_clock.h"
#include "core/comm/rings.h"
#include "core/constant_elements.h"
#include "core/io/file_folder.h"
#include "core/machine/openmp_team.h"
#include "core/machine/usable_cpus.h"
#include "core/resource/float32_products.h"
#include "interpreter/analysis/graphs.h"
#include "interpreter/compile/random_ops.h"
#include "interpreter/run/buffer_collector.h"
#include "interpreter/run/check_feeds.h"
#include "interpreter/run/constant_cache.h"
#include "interpreter/run/device_set.h"
#include "interpreter/run/frame.h"
#include "interpreter/run/parameters.h"
#include "interpreter/run/run_control.h"
#include "interpreter/run/scheduler.h"

namespace interp {
// What clones share.
struct CoreModel {
  CompiledProgram compiled;
  CoreOptions options;
  std::vector<std::shared_ptr<Device>> devices;
  ConstantCache constants;               // goes before the devices its values lie on
  std::atomic<uint64_t> next_stream{1};  // of random numbers, for the next clone

  const OpRegistry& ops() const {
    return options.ops != nullptr ? *options.ops : OpRegistry::Global();
  }
};

namespace {

// Tells an observer, if there is one. What it throws becomes an error.
template <typename Call>
absl::Status Tell(RunObserver* observer, const Call& call) {
  if (observer == nullptr) return absl::OkStatus();
  return Catching([&] {
    call(*observer);
    return absl::OkStatus();
  });
}

absl::Status CheckOptions(const CoreOptions& options) {
  if (options.host_memory != nullptr && !options.host_memory->place().on_host()) {
    return InvalidArgument("host memory cannot come from ", options.host_memory->name());
  }
  if (options.num_workers < 1 || options.num_workers > kMaxThreads) {
    return InvalidArgument("num_workers is ", options.num_workers, ", expected 1 to ", kMaxThreads);
  }
  if (options.num_threads < 0 || options.num_threads > kMaxThreads) {
    return InvalidArgument("num_threads is ", options.num_threads, ", expected 0 to ", kMaxThreads);
  }
  if (options.num_streams < 1 || options.num_streams > kMaxThreads) {
    return InvalidArgument("num_streams is ", options.num_streams, ", expected 1 to ", kMaxThreads);
  }
  return absl::OkStatus();
}

absl::Status CheckGraphs(const CoreOptions& options, const Plan& plan) {
  if (!options.cuda_graphs) return absl::OkStatus();
  if (!UsesGpus(plan)) {
    return InvalidArgument("cuda_graphs: nothing of the program runs on a GPU (cuda:N)");
  }
  const SchedulerKind scheduler = options.scheduler;
  if (scheduler != SchedulerKind::kAuto && scheduler != SchedulerKind::kTrace) {
    return InvalidArgument("cuda_graphs: graphs are enqueued in trace order, not by scheduler ",
                           Name(scheduler));
  }
  if (options.check_nan_inf) {
    return InvalidArgument(
        "cuda_graphs: check_nan_inf looks at what each op gives, which needs "
        "each to be launched by itself");
  }
  if (options.gc.policy != GcPolicy::kFast || options.gc.threshold_bytes > 1 ||
      !plan.options.garbage_collection) {
    return InvalidArgument("cuda_graphs: memory has to be collected at once, in stream order");
  }
  return absl::OkStatus();
}

// Lists of feeds and fetches are persistable, too, but each core's own.
bool WritesPersistables(const Plan& plan) {
  const auto writes = [&](VarId id) {
    if (id < 0 || !plan.vars[id].persistable) return false;
    const VarKind kind = plan.vars[id].kind;
    return kind == VarKind::kLodTensor || kind == VarKind::kSelectedRows;
  };
  return absl::c_any_of(plan.instructions, [&](const Instruction& instruction) {
    return absl::c_any_of(instruction.outputs, writes);
  });
}

int ThreadsPerOp(const CoreOptions& options, const Plan& plan, int num_workers) {
  if (options.num_threads > 0) return options.num_threads;
  const int num_streams = WritesPersistables(plan) ? 1 : options.num_streams;
  return std::max(1, UsableCpus() / (num_streams * num_workers));
}

// Any kind of pool can stand on memory of the host.
std::shared_ptr<Pool> MakeHostPool(const CoreOptions& options) {
  std::shared_ptr<MemorySource> source = options.host_memory;
  if (source == nullptr) source = MakeHostMemory(HostMemory::kOrdinary);
  return *Pool::Create(std::move(source), {.kind = options.allocator,
                                           .limits = {.in_use_bytes = options.max_memory_bytes},
                                           .fail = options.fail_allocation});
}

// Gives each fetch memory of its own: whoever has them may write into one. What is fed, and what a
// scope holds, may be what an earlier run gave. The copies are the caller's, and no part of what
// variables take.
absl::Status Separate(absl::Span<const Tensor> feeds, const Parameters& parameters,
                      std::vector<Tensor>& fetched) {
  for (size_t i = 0; i < fetched.size(); ++i) {
    const BufferRef& buffer = fetched[i].buffer();
    if (!buffer || buffer.unique()) [[likely]]
      continue;
    const auto shares = [&](const Tensor& other) { return other.buffer().get() == buffer.get(); };
    const auto before = absl::MakeConstSpan(fetched).first(i);
    if (absl::c_none_of(before, shares) && absl::c_none_of(feeds, shares) &&
        !parameters.LieIn(*buffer.get())) {
      continue;
    }
    INTERP_ASSIGN_OR_RETURN(fetched[i], fetched[i].Clone(SystemAllocator()));
  }
  return absl::OkStatus();
}

// Marks a core as running for its lifetime; ok() is false when it was running already.
class RunningGuard {
 public:
  explicit RunningGuard(std::atomic<bool>& running)
      : running_(running), ok_(!running.exchange(true)) {}
  ~RunningGuard() {
    if (ok_) running_.store(false);
  }
  bool ok() const { return ok_; }

 private:
  std::atomic<bool>& running_;
  const bool ok_;
};

// The same for what the variables of a scope hold.
class ScopeClaim {
 public:
  ScopeClaim(Scope& scope, bool writes)
      : scope_(scope), writes_(writes), ok_(scope.TryClaim(writes)) {}
  ~ScopeClaim() {
    if (ok_) scope_.ReleaseClaim(writes_);
  }
  bool ok() const { return ok_; }

 private:
  Scope& scope_;
  const bool writes_;
  const bool ok_;
};

}  // namespace

class InterpreterCore::Impl {
 public:
  Impl(std::shared_ptr<CoreModel> model, std::shared_ptr<Scope> scope);
  ~Impl();

  // Makes what runs instructions, or nothing: streams of devices are scarce, so this can fail.
  absl::Status GiveResources();
  absl::Status MakeFrames();
  std::unique_ptr<Impl> Clone() const;

  absl::StatusOr<std::vector<Tensor>> Run(absl::Span<const Tensor> feeds,
                                          const RunOptions& options);
  absl::Status CheckFeeds(absl::Span<const Tensor> feeds) const;
  // REQUIRES: there are frames.
  absl::Status CheckParameters() const { return parameters_->Check(); }
  absl::Status Synchronize() { return FinishDevices(absl::OkStatus(), {}); }
  RunControl& control() { return control_; }

  const CoreModel& model() const { return *model_; }
  const Plan& plan() const { return model_->compiled.main(); }
  RandomState& random() { return random_; }
  SchedulerKind scheduler_kind() const { return scheduler_kind_; }
  int num_threads() const { return num_threads_; }
  int num_workers() const;
  Pool& pool() const { return *pool_; }
  DeviceSet* devices() const { return devices_.get(); }
  Frame* main() const { return main_.get(); }

 private:
  bool has_devices() const { return plan().streams.size() > 1; }
  absl::StatusOr<std::vector<Tensor>> RunBegun(absl::Span<const Tensor> feeds,
                                               const RunOptions& options);
  absl::StatusOr<std::vector<Tensor>> RunClaimed(absl::Span<const Tensor> feeds,
                                                 const RunOptions& options);
  absl::Status BeginDevices();
  absl::Status FinishDevices(absl::Status status, const RunOptions& options);
  // Of the scope; given up while constants are moved.
  using Places = std::shared_lock<std::shared_mutex>;
  absl::Status PrepareParameters(Places& places);
  absl::Status PrepareConstants(Places& places);
  absl::StatusOr<bool> StoreFeeds(absl::Span<const Tensor> feeds);
  std::vector<Tensor> TakeFetches();
  void DropFeeds();
  Variable* ListOf(VarId list) const;

  const std::shared_ptr<CoreModel> model_;
  const std::shared_ptr<Pool> pool_;
  const std::shared_ptr<Scope> scope_;
  const SchedulerKind scheduler_kind_;
  const int num_threads_;
  RandomState random_;      // of the next run
  RandomState run_random_;  // of the run in progress, or of the last
  RunControl control_;
  // What frames use, in the order in which it goes: after them.
  std::unique_ptr<DeviceSet> devices_;  // null for plans without
  // After what uses them, before the streams that handles of libraries work on.
  std::map<std::string, PlaceResources> resources_;
  std::unique_ptr<BufferCollector> buffers_;
  SchedulerThreads threads_;
  std::unique_ptr<Frame> main_;  // null for a clone that has not run
  std::optional<Parameters> parameters_;
  std::atomic<bool> running_{false};
  bool is_clone_ = false;
  bool constants_copied_ = false;
};

InterpreterCore::Impl::Impl(std::shared_ptr<CoreModel> model, std::shared_ptr<Scope> scope)
    : model_(std::move(model)),
      pool_(MakeHostPool(model_->options)),
      scope_(std::move(scope)),
      scheduler_kind_(
          model_->options.cuda_graphs
              ? SchedulerKind::kTrace
              : ResolveScheduler(model_->options.scheduler, plan(), model_->options.num_workers)),
      num_threads_(ThreadsPerOp(model_->options, plan(), num_workers())),
      random_{.seed = model_->options.random_seed} {}

InterpreterCore::Impl::~Impl() {
  if (devices_ != nullptr) devices_->Synchronize().IgnoreError();
}

std::unique_ptr<InterpreterCore::Impl> InterpreterCore::Impl::Clone() const {
  auto clone = std::make_unique<Impl>(model_, scope_);
  clone->is_clone_ = true;
  clone->random_ = {.seed = random_.seed, .stream = model_->next_stream.fetch_add(1)};
  return clone;
}

int InterpreterCore::Impl::num_workers() const {
  const bool several =
      scheduler_kind_ == SchedulerKind::kAsync || scheduler_kind_ == SchedulerKind::kEngine;
  return several ? model_->options.num_workers : 1;
}

absl::Status InterpreterCore::Impl::GiveResources() {
  const CoreOptions& options = model_->options;
  for (const PlanStream& stream : plan().streams) {
    if (stream.place.kind != PlaceKind::kCuda) continue;
    INTERP_ASSIGN_OR_RETURN(Float32Products* const products,
                            Float32Products::Of(resources_[Name(stream.place)]));
    products->as_tf32 = options.tf32;
  }
  if (is_clone_ && options.rings != nullptr && options.rings->size() > 1) {
    return Unimplemented("a clone of a core of ", options.rings->size(),
                         " ranks: runs side by side could meet each other's collectives; make a "
                         "core with rings of its own");
  }
  if (options.rings != nullptr) {
    const auto make = [&options]() -> absl::StatusOr<std::unique_ptr<RingsHandle>> {
      return std::make_unique<RingsHandle>(RingsHandle{.rings = options.rings});
    };
    // The host's is among the streams.
    for (const PlanStream& stream : plan().streams) {
      PlaceResources& resources = resources_[Name(stream.place)];
      INTERP_RETURN_IF_ERROR(resources.GetOrMake<RingsHandle>("", make).status());
    }
  }
  if (options.file_folder.empty()) return absl::OkStatus();
  const auto open = [&options]() -> absl::StatusOr<std::unique_ptr<FileFolder>> {
    INTERP_ASSIGN_OR_RETURN(FileFolder folder, FileFolder::Open(options.file_folder));
    return std::make_unique<FileFolder>(std::move(folder));
  };
  // Ops on files run on the host.
  return resources_[Name(Place{})].GetOrMake<FileFolder>("", open).status();
}

absl::Status InterpreterCore::Impl::MakeFrames() {
  const CoreOptions& options = model_->options;
  const std::vector<Plan>& plans = model_->compiled.plans;
  std::unique_ptr<DeviceSet> devices;
  if (has_devices()) {
    INTERP_ASSIGN_OR_RETURN(devices,
                            DeviceSet::Create(plans, model_->devices,
                                              {.limit_bytes = options.max_memory_bytes,
                                               .graphs = options.cuda_graphs,
                                               .fail_allocation = options.fail_allocation}));
  }
  std::unique_ptr<BufferCollector> buffers =
      BufferCollector::Create(plan().streams, devices.get(), options.gc);
  const SchedulerOptions scheduler{.kind = scheduler_kind_,
                                   .num_workers = num_workers(),
                                   .engine_policy = options.engine_policy,
                                   .seed = options.schedule_seed,
                                   .graphs = options.cuda_graphs};
  INTERP_ASSIGN_OR_RETURN(threads_, MakeSchedulerThreads(scheduler, has_devices()));
  INTERP_RETURN_IF_ERROR(GiveResources());
  INTERP_ASSIGN_OR_RETURN(std::unique_ptr<Frame> main,
                          Frame::Create(model_->compiled, scope_->root(), control_, run_random_,
                                        {.pool = pool_.get(),
                                         .devices = devices.get(),
                                         .buffers = buffers.get(),
                                         .shared = &model_->constants,
                                         .ops = &model_->ops(),
                                         .resources = &resources_,
                                         .threads = &threads_,
                                         .scheduler = scheduler,
                                         .runner = {.num_threads = num_threads_,
                                                    .algorithms = options.algorithms,
                                                    .check_nan_inf = options.check_nan_inf}}));
  devices_ = std::move(devices);
  buffers_ = std::move(buffers);
  main_ = std::move(main);
  parameters_.emplace(plan(), main_->variables());
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> InterpreterCore::Impl::Run(absl::Span<const Tensor> feeds,
                                                               const RunOptions& options) {
  const RunningGuard guard(running_);
  if (!guard.ok()) {
    return absl::FailedPreconditionError(
        "the core is running already; Clone() gives one for another thread");
  }
  std::optional<RunControl::Clock::time_point> deadline;
  if (options.timeout.has_value()) deadline = DeadlineAfter(*options.timeout);
  control_.Begin(deadline);
  ThisTeam() = OpenMpTeam();
  absl::StatusOr<std::vector<Tensor>> fetched = Catching([&] { return RunBegun(feeds, options); });
  TrimCopiesOfConstants();
  // It may have ended anywhere: the feeds that the next run is compared with may be half of these.
  if (!fetched.ok() && main_ != nullptr) {
    main_->ForgetShapes();
    DropFeeds();
  }
  // Also where no instruction was reached: what is cancelled from here on is the next run.
  control_.Finish().IgnoreError();
  // The other ranks may wait in a collective that this one has not come to.
  if (!fetched.ok() && model_->options.rings != nullptr) {
    model_->options.rings->Fail(fetched.status());
  }
  return fetched;
}

// REQUIRES: no other run of this core.
absl::StatusOr<std::vector<Tensor>> InterpreterCore::Impl::RunBegun(absl::Span<const Tensor> feeds,
                                                                    const RunOptions& options) {
  if (main_ == nullptr) INTERP_RETURN_IF_ERROR(MakeFrames());
  const bool writes = parameters_->any_written();
  const ScopeClaim claim(scope_->root(), writes);
  if (!claim.ok()) {
    return absl::FailedPreconditionError(
        writes ? "this program writes parameters that another core is using: run one at a time, or "
                 "give each a scope of its own"
               : "another core is writing the parameters of this scope: run one at a time");
  }
  return RunClaimed(feeds, options);
}

// REQUIRES: nobody else writes the parameters, and if this program does, nobody else reads them.
absl::StatusOr<std::vector<Tensor>> InterpreterCore::Impl::RunClaimed(
    absl::Span<const Tensor> feeds, const RunOptions& options) {
  INTERP_RETURN_IF_ERROR(CheckFeeds(feeds));
  INTERP_RETURN_IF_ERROR(BeginDevices());
  std::shared_lock places(scope_->root().places());
  INTERP_RETURN_IF_ERROR(PrepareParameters(places));
  if (Variable* list = ListOf(plan().fetch_list)) {
    list->array.reserve(plan().fetches.size());  // a run's only allocation when warm
  }
  INTERP_ASSIGN_OR_RETURN(const bool same_feeds, StoreFeeds(feeds));
  run_random_ = options.random.value_or(random_);
  if (options.observer != nullptr) options.observer->OnRunStart(SteadyNowNs());
  main_->RunMain(same_feeds, options.observer);
  if (buffers_ != nullptr) buffers_->Flush();
  absl::Status status = FinishDevices(control_.Finish(), options);
  status.Update(
      Tell(options.observer, [](RunObserver& observer) { observer.OnRunEnd(SteadyNowNs()); }));
  DropFeeds();
  std::vector<Tensor> fetched = TakeFetches();
  if (status.ok()) status = Separate(feeds, *parameters_, fetched);
  if (!status.ok()) {
    main_->DropAll();
    if (buffers_ != nullptr) buffers_->Flush();
    return status;
  }
  if (!options.random.has_value()) ++random_.step;
  return fetched;
}

absl::Status InterpreterCore::Impl::CheckFeeds(absl::Span<const Tensor> feeds) const {
  return interp::CheckFeeds(feeds, plan().feeds, model_->options.check_feed_shapes);
}

// Tells what failed after the run before, and waits for other cores.
absl::Status InterpreterCore::Impl::BeginDevices() {
  if (devices_ == nullptr) return absl::OkStatus();
  if (devices_->errors().any()) {
    return Annotate(Synchronize(), "after the run before this one had returned");
  }
  return devices_->BeginRun();
}

// Waits as far as the caller wants, and for everything when something has failed.
absl::Status InterpreterCore::Impl::FinishDevices(absl::Status status, const RunOptions& options) {
  if (devices_ == nullptr) return status;
  const int64_t start_ns = options.observer != nullptr ? SteadyNowNs() : 0;
  status.Update(Tell(options.observer, [start_ns](RunObserver& observer) {
    observer.OnWaitStart(-1, -1, /*worker=*/0, start_ns);
  }));
  const absl::Status done = status.ok() && !options.wait_for_devices
                                ? devices_->SynchronizeHostMemory()
                                : devices_->Synchronize();
  status.Update(Tell(options.observer, [start_ns](RunObserver& observer) {
    observer.OnWaitEnd(-1, -1, /*worker=*/0, start_ns, SteadyNowNs());
  }));
  status.Update(done);
  // Work in flight may fail from here on: the run after this one tells.
  if (status.ok() && !devices_->errors().any()) return status;
  devices_->Synchronize().IgnoreError();
  if (!devices_->errors().any()) return status;
  const std::optional<WorkError> error = devices_->errors().Take();
  return main_->Explain(error->tag, error->status).value_or(error->status);
}

// Parameters to where the plan has them, with their present values.
absl::Status InterpreterCore::Impl::PrepareParameters(Places& places) {
  INTERP_RETURN_IF_ERROR(parameters_->MoveWritten(devices_.get()));
  INTERP_RETURN_IF_ERROR(PrepareConstants(places));
  INTERP_RETURN_IF_ERROR(parameters_->CheckWritten());
  if (constants_copied_) return absl::OkStatus();
  INTERP_RETURN_IF_ERROR(parameters_->Check());
  INTERP_RETURN_IF_ERROR(main_->CopyConstants());
  constants_copied_ = true;
  return absl::OkStatus();
}

// When they changed, what was computed of their old values is forgotten.
absl::Status InterpreterCore::Impl::PrepareConstants(Places& places) {
  if (!parameters_->NoteConstants()) return absl::OkStatus();
  if (devices_ != nullptr) {
    // Work of clones might yet leave what it makes of the old values where all find it.
    const bool forgets = model_->constants.Forgets(parameters_->constants());
    INTERP_RETURN_IF_ERROR(forgets ? devices_->SynchronizeDevices() : devices_->Synchronize());
  }
  main_->ResetKernelStates();
  main_->ForgetShapes();
  constants_copied_ = false;
  model_->constants.UseConstants(parameters_->constants());
  // A core that has them at another place may take them there before this one holds them again.
  while (!parameters_->ConstantsAreHome()) {
    places.unlock();
    {
      const std::unique_lock alone(scope_->root().places());
      INTERP_RETURN_IF_ERROR(parameters_->MoveConstants(devices_.get()));
    }
    places.lock();
  }
  parameters_->NoteConstants();
  model_->constants.UseConstants(parameters_->constants());
  const std::shared_ptr<const PackedConstants>& packed = model_->compiled.packed;
  if (packed != nullptr && parameters_->AreThose(packed->parameters)) {
    model_->constants.Offer(packed);
  }
  return absl::OkStatus();
}

Variable* InterpreterCore::Impl::ListOf(VarId list) const {
  return list < 0 ? nullptr : main_->variables()[list];
}

// Returns whether the feeds have the shapes, dtypes and LoD of the run before.
absl::StatusOr<bool> InterpreterCore::Impl::StoreFeeds(absl::Span<const Tensor> feeds) {
  Variable* const list = ListOf(plan().feed_list);
  if (list == nullptr) return true;
  bool same = list->array.size() == feeds.size();
  list->array.resize(feeds.size());
  for (size_t i = 0; i < feeds.size(); ++i) {
    same = same && SameMetadata(list->array[i], feeds[i]);
    if (plan().feeds[i].persistable && feeds[i].has_memory()) {
      INTERP_ASSIGN_OR_RETURN(list->array[i], feeds[i].Clone(SystemAllocator()));
      list->array[i].lod = feeds[i].lod;
    } else {
      list->array[i] = feeds[i];
    }
    if (HasOtherBools(list->array[i])) [[unlikely]] {
      INTERP_ASSIGN_OR_RETURN(list->array[i], WithBoolsOf0And1(list->array[i]));
    }
  }
  return same;
}

std::vector<Tensor> InterpreterCore::Impl::TakeFetches() {
  std::vector<Tensor> fetched;
  if (Variable* list = ListOf(plan().fetch_list)) fetched = std::exchange(list->array, {});
  // A fetch of something no op has written leaves no entry.
  fetched.resize(plan().fetches.size());
  return fetched;
}

// The caller's memory is not held beyond the run, only its shape.
void InterpreterCore::Impl::DropFeeds() {
  Variable* const list = ListOf(plan().feed_list);
  if (list == nullptr) return;
  for (Tensor& fed : list->array) fed.DropMemory();
}

namespace {

PipelineOptions PassesOf(const CoreOptions& options) {
  PipelineOptions passes = options.passes;
  for (const Pass& pass : AllPasses()) {
    const bool asked = absl::c_linear_search(passes.enable, pass.name);
    if (options.check_nan_inf && pass.hides_results && !asked)
      passes.disable.emplace_back(pass.name);
  }
  return passes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<InterpreterCore>> InterpreterCore::Create(
    Program program, const std::vector<std::string>& feeds, const std::vector<std::string>& fetches,
    std::shared_ptr<Scope> scope, const CoreOptions& options) {
  const OpRegistry& ops = options.ops != nullptr ? *options.ops : OpRegistry::Global();
  INTERP_ASSIGN_OR_RETURN(CompiledProgram compiled, Compile(std::move(program), feeds, fetches,
                                                            PassesOf(options), options.plan, ops));
  return Create(std::move(compiled), std::move(scope), options);
}

absl::StatusOr<std::unique_ptr<InterpreterCore>> InterpreterCore::Create(
    CompiledProgram compiled, std::shared_ptr<Scope> scope, const CoreOptions& options) {
  INTERP_RETURN_IF_ERROR(CheckOptions(options));
  INTERP_RETURN_IF_ERROR(CheckGraphs(options, compiled.main()));
  auto model = std::make_shared<CoreModel>();
  model->options = options;
  model->compiled = std::move(compiled);
  INTERP_ASSIGN_OR_RETURN(model->devices,
                          FindDevices(model->compiled.plans, options.devices, options.sim));
  if (scope == nullptr) scope = std::make_shared<Scope>();
  auto impl = std::make_unique<Impl>(std::move(model), std::move(scope));
  INTERP_RETURN_IF_ERROR(Catching([&] { return impl->MakeFrames(); }));
  return std::unique_ptr<InterpreterCore>(new InterpreterCore(std::move(impl)));
}

InterpreterCore::InterpreterCore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
InterpreterCore::~InterpreterCore() = default;

absl::StatusOr<std::vector<Tensor>> InterpreterCore::Run(absl::Span<const Tensor> feeds,
                                                         const RunOptions& options) {
  return impl_->Run(feeds, options);
}

absl::Status InterpreterCore::CheckFeeds(absl::Span<const Tensor> feeds) const {
  return impl_->CheckFeeds(feeds);
}
absl::Status InterpreterCore::CheckParameters() const { return impl_->CheckParameters(); }
absl::Status InterpreterCore::Synchronize() { return impl_->Synchronize(); }
void InterpreterCore::Cancel() {
  impl_->control().Cancel();
  // What waits for other ranks looks at nothing else.
  const std::shared_ptr<Rings>& rings = impl_->model().options.rings;
  if (rings != nullptr) rings->Fail(absl::CancelledError("the run was cancelled"));
}
void InterpreterCore::ForgetCancel() { impl_->control().ForgetCancel(); }

std::unique_ptr<InterpreterCore> InterpreterCore::Clone() const {
  return std::unique_ptr<InterpreterCore>(new InterpreterCore(impl_->Clone()));
}

const RandomState& InterpreterCore::random_state() const { return impl_->random(); }
void InterpreterCore::SetRandomState(const RandomState& state) { impl_->random() = state; }

const Plan& InterpreterCore::plan() const { return impl_->plan(); }
absl::Span<const Plan> InterpreterCore::plans() const { return impl_->model().compiled.plans; }
const Program& InterpreterCore::program() const { return impl_->model().compiled.program; }
const std::vector<PassTiming>& InterpreterCore::pass_timings() const {
  return impl_->model().compiled.pass_timings;
}
SchedulerKind InterpreterCore::scheduler() const { return impl_->scheduler_kind(); }
int InterpreterCore::num_threads() const { return impl_->num_threads(); }
int InterpreterCore::num_workers() const { return impl_->num_workers(); }
bool InterpreterCore::writes_persistables() const { return WritesPersistables(plan()); }
const std::vector<std::shared_ptr<Device>>& InterpreterCore::devices() const {
  return impl_->model().devices;
}

MemoryStats InterpreterCore::memory() const { return impl_->pool().stats(); }

MemoryStats InterpreterCore::device_memory() const {
  const DeviceSet* const devices = impl_->devices();
  return devices == nullptr ? MemoryStats{} : devices->memory();
}

std::vector<PoolStats> InterpreterCore::pool_stats() const {
  std::vector<PoolStats> stats = {impl_->pool().pool_stats()};
  if (const DeviceSet* const devices = impl_->devices()) {
    for (PoolStats& of_device : devices->pool_stats()) stats.push_back(std::move(of_device));
  }
  return stats;
}

size_t InterpreterCore::TrimMemory() {
  DeviceSet* const devices = impl_->devices();
  return impl_->pool().Trim() + (devices == nullptr ? 0 : devices->Trim());
}

absl::Span<Variable* const> InterpreterCore::variables() const { return variables(0); }

absl::Span<Variable* const> InterpreterCore::variables(int32_t block) const {
  std::vector<const Frame*> open;
  if (impl_->main() != nullptr) open.push_back(impl_->main());
  while (!open.empty()) {
    const Frame& frame = *open.back();
    open.pop_back();
    if (frame.plan().block == block) return frame.variables();
    for (const std::unique_ptr<Frame>& child : frame.children()) open.push_back(child.get());
  }
  return {};
}

std::vector<PackedEntry> InterpreterCore::PackedEntries() const {
  std::vector<PackedEntry> entries = impl_->model().constants.Entries();
  std::erase_if(
      entries, [this](const PackedEntry& entry) { return !CheckPackedEntry(plans(), entry).ok(); });
  return entries;
}

std::optional<GraphStats> InterpreterCore::graph_stats() const {
  if (impl_->main() == nullptr) return std::nullopt;
  return impl_->main()->graph_stats();
}

std::vector<std::string> InterpreterCore::algorithms() const {
  std::vector<std::string> algorithms(static_cast<size_t>(CountInstructions(plans())));
  if (impl_->main() != nullptr) impl_->main()->CollectAlgorithms(algorithms);
  return algorithms;
}

}  // namespace interp
