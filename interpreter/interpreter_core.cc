// Long because how a run begins and ends, on the host and on devices, shares the state of one core.
#include "interpreter/interpreter_core.h"

#include <algorithm>
#include <mutex>

#include "absl/container/flat_hash_map.h"
#include "core/device/device_heap.h"
#include "core/steady_clock.h"
#include "core/usable_cpus.h"
#include "interpreter/compile/random_ops.h"

namespace interp {

// Packed weights by (instruction, key), shared by all clones.
class InterpreterCore::ConstantCache final : public SharedConstants {
 public:
  absl::StatusOr<std::shared_ptr<const void>> GetOrMake(
      int instruction, uint64_t key,
      const std::function<absl::StatusOr<std::shared_ptr<const void>>()>& make) override {
    const auto at = std::make_pair(instruction, key);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (const auto it = values_.find(at); it != values_.end()) return it->second;
    }
    // Made without the lock: packing one layer must not hold up another thread's.
    INTERP_ASSIGN_OR_RETURN(std::shared_ptr<const void> value, make());
    std::lock_guard<std::mutex> lock(mutex_);
    return values_.try_emplace(at, std::move(value)).first->second;
  }

  // From now on values are made from these parameters; older ones are forgotten.
  void UseConstants(const std::vector<Constant>& constants) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (made_from_ == constants) return;
    made_from_ = constants;
    values_.clear();
  }

 private:
  std::mutex mutex_;  // guards what follows
  std::vector<Constant> made_from_;
  absl::flat_hash_map<std::pair<int, uint64_t>, std::shared_ptr<const void>> values_;
};

struct InterpreterCore::Model {
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
  return absl::OkStatus();
}

int ThreadsPerOp(const CoreOptions& options, int num_workers) {
  if (options.num_threads > 0) return options.num_threads;
  return std::max(1, UsableCpus() / num_workers);
}

// Any kind of pool can stand on memory of the host.
std::shared_ptr<Pool> MakeHostPool(const CoreOptions& options) {
  std::shared_ptr<MemorySource> source = options.host_memory;
  if (source == nullptr) source = MakeHostMemory(HostMemory::kOrdinary);
  return *Pool::Create(std::move(source), {.kind = options.allocator,
                                           .limits = {.in_use_bytes = options.max_memory_bytes},
                                           .fail = options.fail_allocation});
}

bool SameMetadata(const Tensor& a, const Tensor& b) {
  return a.shape == b.shape && a.dtype == b.dtype && a.lod == b.lod;
}

// -1, as any negative dim, fits every size.
bool FitsDeclared(const Shape& shape, const Shape& declared) {
  return std::equal(shape.begin(), shape.end(), declared.begin(), declared.end(),
                    [](int64_t dim, int64_t want) { return want < 0 || dim == want; });
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

absl::StatusOr<std::unique_ptr<InterpreterCore>> InterpreterCore::Create(
    Program program, const std::vector<std::string>& feeds, const std::vector<std::string>& fetches,
    std::shared_ptr<Scope> scope, const CoreOptions& options) {
  const OpRegistry& ops = options.ops != nullptr ? *options.ops : OpRegistry::Global();
  INTERP_ASSIGN_OR_RETURN(CompiledProgram compiled, Compile(std::move(program), feeds, fetches,
                                                            options.passes, options.plan, ops));
  return Create(std::move(compiled), std::move(scope), options);
}

absl::StatusOr<std::unique_ptr<InterpreterCore>> InterpreterCore::Create(
    CompiledProgram compiled, std::shared_ptr<Scope> scope, const CoreOptions& options) {
  INTERP_RETURN_IF_ERROR(CheckOptions(options));
  auto model = std::make_shared<Model>();
  model->options = options;
  model->compiled = std::move(compiled);
  INTERP_ASSIGN_OR_RETURN(model->devices,
                          FindDevices(model->compiled.plans, options.devices, options.sim));
  if (scope == nullptr) scope = std::make_shared<Scope>();
  std::unique_ptr<InterpreterCore> core(new InterpreterCore(std::move(model), std::move(scope)));
  INTERP_RETURN_IF_ERROR(core->MakeFrames());
  return core;
}

InterpreterCore::InterpreterCore(std::shared_ptr<Model> model, std::shared_ptr<Scope> scope)
    : model_(std::move(model)),
      pool_(MakeHostPool(model_->options)),
      scope_(std::move(scope)),
      scheduler_kind_(
          ResolveScheduler(model_->options.scheduler, plan(), model_->options.num_workers)),
      num_threads_(ThreadsPerOp(model_->options, num_workers())),
      random_{.seed = model_->options.random_seed} {}

InterpreterCore::~InterpreterCore() {
  if (devices_ != nullptr) devices_->Synchronize();
}

bool InterpreterCore::has_devices() const { return plan().streams.size() > 1; }

// Makes what runs instructions, or nothing: streams of devices are scarce, so this can fail.
absl::Status InterpreterCore::MakeFrames() {
  const CoreOptions& options = model_->options;
  const std::vector<Plan>& plans = model_->compiled.plans;
  std::unique_ptr<DeviceSet> devices;
  if (has_devices()) {
    INTERP_ASSIGN_OR_RETURN(devices,
                            DeviceSet::Create(plans, model_->devices,
                                              {.limit_bytes = options.max_memory_bytes,
                                               .fail_allocation = options.fail_allocation}));
  }
  std::unique_ptr<BufferCollector> buffers =
      BufferCollector::Create(plan().streams, devices.get(), options.gc);
  const SchedulerOptions scheduler{.kind = scheduler_kind_,
                                   .num_workers = num_workers(),
                                   .engine_policy = options.engine_policy,
                                   .seed = options.schedule_seed};
  INTERP_ASSIGN_OR_RETURN(threads_, MakeSchedulerThreads(scheduler, has_devices()));
  INTERP_ASSIGN_OR_RETURN(std::unique_ptr<Frame> main,
                          Frame::Create(model_->compiled, scope_->root(), control_, run_random_,
                                        {.pool = pool_.get(),
                                         .devices = devices.get(),
                                         .buffers = buffers.get(),
                                         .shared = &model_->constants,
                                         .resources = &resources_,
                                         .threads = &threads_,
                                         .scheduler = scheduler,
                                         .runner = {.num_threads = num_threads_,
                                                    .algorithms = options.algorithms,
                                                    .check_nan_inf = options.check_nan_inf}}));
  devices_ = std::move(devices);
  buffers_ = std::move(buffers);
  main_ = std::move(main);
  for (size_t id = 0; id < plan().vars.size(); ++id) {
    const PlanVar& var = plan().vars[id];
    const bool parameter = var.persistable && var.copy_of < 0 && var.kind == VarKind::kLodTensor;
    if (!parameter) continue;
    Variable* const variable = main_->variables()[id];
    if (var.constant) constants_.push_back({.variable = variable});
    (var.constant ? constant_homes_ : written_homes_).push_back({variable, var.place});
    if (!var.constant) written_.push_back(static_cast<VarId>(id));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> InterpreterCore::Run(absl::Span<const Tensor> feeds,
                                                         const RunOptions& options) {
  const RunningGuard guard(running_);
  if (!guard.ok()) {
    return absl::FailedPreconditionError(
        "the core is running already; Clone() gives one for another thread");
  }
  std::optional<RunControl::Clock::time_point> deadline;
  if (options.timeout.has_value()) deadline = RunControl::Clock::now() + *options.timeout;
  control_.Begin(deadline);
  absl::StatusOr<std::vector<Tensor>> fetched = RunBegun(feeds, options);
  // Also where no instruction was reached: what is cancelled from here on is the next run.
  control_.Finish().IgnoreError();
  return fetched;
}

// REQUIRES: no other run of this core.
absl::StatusOr<std::vector<Tensor>> InterpreterCore::RunBegun(absl::Span<const Tensor> feeds,
                                                              const RunOptions& options) {
  if (main_ == nullptr) INTERP_RETURN_IF_ERROR(MakeFrames());
  const bool writes = !written_.empty();
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
absl::StatusOr<std::vector<Tensor>> InterpreterCore::RunClaimed(absl::Span<const Tensor> feeds,
                                                                const RunOptions& options) {
  INTERP_RETURN_IF_ERROR(CheckFeeds(feeds));
  INTERP_RETURN_IF_ERROR(BeginDevices());
  INTERP_RETURN_IF_ERROR(PrepareParameters());
  INTERP_ASSIGN_OR_RETURN(const bool same_feeds, StoreFeeds(feeds));
  if (Variable* list = ListOf(plan().fetch_list)) {
    list->array.reserve(plan().fetches.size());  // a run's only allocation when warm
  }
  run_random_ = options.random.value_or(random_);
  if (options.observer != nullptr) options.observer->OnRunStart(SteadyNowNs());
  main_->RunMain(same_feeds, options.observer);
  if (buffers_ != nullptr) buffers_->Flush();
  const absl::Status status = FinishDevices(control_.Finish(), options);
  if (options.observer != nullptr) options.observer->OnRunEnd(SteadyNowNs());
  DropFeeds();
  std::vector<Tensor> fetched = TakeFetches();
  if (!status.ok()) {
    main_->DropAll();
    main_->ForgetShapes();
    if (buffers_ != nullptr) buffers_->Flush();
    return status;
  }
  if (!options.random.has_value()) ++random_.step;
  return fetched;
}

absl::Status InterpreterCore::Synchronize() { return FinishDevices(absl::OkStatus(), {}); }

// Tells what failed after the run before, and waits for other cores.
absl::Status InterpreterCore::BeginDevices() {
  if (devices_ == nullptr) return absl::OkStatus();
  if (devices_->errors().any()) {
    return Annotate(Synchronize(), "after the run before this one had returned");
  }
  devices_->BeginRun();
  return absl::OkStatus();
}

// Waits as far as the caller wants, and for everything when something has failed.
absl::Status InterpreterCore::FinishDevices(absl::Status status, const RunOptions& options) {
  if (devices_ == nullptr) return status;
  const int64_t start_ns = options.observer != nullptr ? SteadyNowNs() : 0;
  if (options.observer != nullptr) options.observer->OnWaitStart(-1, -1, /*worker=*/0, start_ns);
  if (status.ok() && !options.wait_for_devices) {
    devices_->SynchronizeFeeds();
  } else {
    devices_->Synchronize();
  }
  if (options.observer != nullptr) {
    options.observer->OnWaitEnd(-1, -1, /*worker=*/0, start_ns, SteadyNowNs());
  }
  if (!devices_->errors().any()) return status;
  devices_->Synchronize();
  const std::optional<WorkError> error = devices_->errors().Take();
  return main_->Explain(error->tag, error->status).value_or(error->status);
}

// Parameters to where the plan has them, with their present values.
absl::Status InterpreterCore::PrepareParameters() {
  INTERP_RETURN_IF_ERROR(MoveHome(written_homes_));
  const bool changed = NoteConstants();
  if (changed) {
    if (devices_ != nullptr) devices_->Synchronize();
    main_->ResetKernelStates();
    main_->ForgetShapes();
    constants_copied_ = false;
    INTERP_RETURN_IF_ERROR(MoveHome(constant_homes_));
    NoteConstants();
  }
  INTERP_RETURN_IF_ERROR(CheckWritten());
  if (constants_copied_) return absl::OkStatus();
  INTERP_RETURN_IF_ERROR(CheckConstants());
  INTERP_RETURN_IF_ERROR(main_->CopyConstants(model_->ops()));
  constants_copied_ = true;
  return absl::OkStatus();
}

absl::Status InterpreterCore::MoveHome(const std::vector<Home>& homes) {
  for (const Home& home : homes) {
    Tensor& tensor = home.variable->tensor;
    if (!tensor.has_memory() || tensor.place() == home.place) continue;
    if (!tensor.place().on_host()) {
      INTERP_ASSIGN_OR_RETURN(tensor, CopyToHost(tensor, SystemAllocator()));
    }
    if (home.place.on_host()) continue;
    INTERP_ASSIGN_OR_RETURN(
        tensor, CopyToHeap(tensor, devices_->device(home.place), devices_->heap(home.place)));
  }
  return absl::OkStatus();
}

MemoryStats InterpreterCore::device_memory() const {
  return devices_ == nullptr ? MemoryStats{} : devices_->memory();
}

std::vector<PoolStats> InterpreterCore::pool_stats() const {
  std::vector<PoolStats> stats = {pool_->pool_stats()};
  if (devices_ != nullptr) {
    for (PoolStats& of_device : devices_->pool_stats()) stats.push_back(std::move(of_device));
  }
  return stats;
}

void InterpreterCore::ResetPeakMemory() {
  pool_->ResetPeak();
  if (devices_ != nullptr) devices_->ResetPeak();
}

size_t InterpreterCore::TrimMemory() {
  return pool_->Trim() + (devices_ == nullptr ? 0 : devices_->Trim());
}

void InterpreterCore::Cancel() { control_.Cancel(); }
void InterpreterCore::ForgetCancel() { control_.ForgetCancel(); }

std::unique_ptr<InterpreterCore> InterpreterCore::Clone() const {
  std::unique_ptr<InterpreterCore> clone(new InterpreterCore(model_, scope_));
  clone->random_ = {.seed = random_.seed, .stream = model_->next_stream.fetch_add(1)};
  return clone;
}

const std::vector<std::shared_ptr<Device>>& InterpreterCore::devices() const {
  return model_->devices;
}
int InterpreterCore::num_workers() const {
  const bool several =
      scheduler_kind_ == SchedulerKind::kAsync || scheduler_kind_ == SchedulerKind::kEngine;
  return several ? model_->options.num_workers : 1;
}
const Plan& InterpreterCore::plan() const { return model_->compiled.main(); }
absl::Span<const Plan> InterpreterCore::plans() const { return model_->compiled.plans; }
const Program& InterpreterCore::program() const { return model_->compiled.program; }
const std::vector<PassTiming>& InterpreterCore::pass_timings() const {
  return model_->compiled.pass_timings;
}

absl::Span<Variable* const> InterpreterCore::variables() const { return variables(0); }

std::vector<std::string> InterpreterCore::algorithms() const {
  std::vector<std::string> algorithms(static_cast<size_t>(CountInstructions(plans())));
  if (main_ != nullptr) main_->CollectAlgorithms(algorithms);
  return algorithms;
}

absl::Span<Variable* const> InterpreterCore::variables(int32_t block) const {
  std::vector<const Frame*> open;
  if (main_ != nullptr) open.push_back(main_.get());
  while (!open.empty()) {
    const Frame& frame = *open.back();
    open.pop_back();
    if (frame.plan().block == block) return frame.variables();
    for (const std::unique_ptr<Frame>& child : frame.children()) open.push_back(child.get());
  }
  return {};
}

absl::Status InterpreterCore::CheckFeeds(absl::Span<const Tensor> feeds) const {
  const std::vector<FeedSpec>& specs = plan().feeds;
  if (feeds.size() != specs.size()) {
    return InvalidArgument("got ", feeds.size(), " feeds, expected ", specs.size());
  }
  for (size_t i = 0; i < feeds.size(); ++i) {
    const Tensor& fed = feeds[i];
    const FeedSpec& spec = specs[i];
    const auto mismatch = [&](absl::string_view hint = "") {
      return InvalidArgument("feed '", spec.name, "' is ", DescribeType(fed), ", expected ",
                             Name(spec.dtype), ToString(spec.shape), hint);
    };
    if (spec.dtype != DType::kUndefined && fed.dtype != spec.dtype) return mismatch();
    if (fed.layout != Layout::kPlain || !fed.shape.CheckedNumel().has_value()) return mismatch();
    if (fed.numel() > 0 && !fed.has_memory()) {
      return InvalidArgument("feed '", spec.name, "' has no memory");
    }
    if (absl::Status lod = CheckLod(fed.lod, fed.shape); !lod.ok()) {
      return Annotate(lod, absl::StrCat("feed '", spec.name, "'"));
    }
    if (FitsDeclared(fed.shape, spec.shape)) continue;
    if (spec.check_shape) return mismatch();
    // Programs also declare no dims where they know none.
    if (!model_->options.check_feed_shapes || spec.shape.rank() == 0) continue;
    return mismatch(
        "; if the program declares the wrong shape, turn this check off (--no-check-shape)");
  }
  return absl::OkStatus();
}

absl::Status InterpreterCore::CheckDType(VarId id) const {
  const PlanVar& var = plan().vars[id];
  const Tensor& tensor = main_->variables()[id]->tensor;
  const bool fits = !tensor.has_memory() || tensor.dtype == var.dtype;
  if (fits || var.dtype == DType::kUndefined) return absl::OkStatus();
  return InvalidArgument("parameter '", var.name, "' is ", DescribeType(tensor),
                         ", the program declares ", Name(var.dtype));
}

// Kernels were chosen by declared dtypes. What instructions write may come without a value.
absl::Status InterpreterCore::CheckWritten() const {
  for (const VarId id : written_) INTERP_RETURN_IF_ERROR(CheckDType(id));
  return absl::OkStatus();
}

absl::Status InterpreterCore::CheckParameters() const {
  INTERP_RETURN_IF_ERROR(CheckWritten());
  return CheckConstants();
}

absl::Status InterpreterCore::CheckConstants() const {
  for (const Instruction& instruction : plan().instructions) {
    for (const VarId input : instruction.inputs) {
      if (input < 0) continue;
      const VarId id = plan().vars[input].copy_of >= 0 ? plan().vars[input].copy_of : input;
      const PlanVar& var = plan().vars[id];
      if (!var.constant || var.kind != VarKind::kLodTensor) continue;
      if (main_->variables()[id]->tensor.has_memory()) {
        INTERP_RETURN_IF_ERROR(CheckDType(id));
        continue;
      }
      return NotFound("parameter '", var.name, "' of op ", instruction.op_type,
                      " has no value; load the parameters first (--params)");
    }
  }
  return absl::OkStatus();
}

// Returns whether a parameter has other values than in the run before; forgets those packed from
// the old ones.
bool InterpreterCore::NoteConstants() {
  bool changed = false;
  for (Constant& constant : constants_) {
    const Buffer* buffer = constant.variable->tensor.buffer().get();
    const Constant now{.variable = constant.variable,
                       .version = constant.variable->version,
                       .buffer = buffer,
                       .serial = buffer != nullptr ? buffer->serial : 0};
    if (now == constant) continue;
    changed = true;
    constant = now;
  }
  if (changed) model_->constants.UseConstants(constants_);
  return changed;
}

Variable* InterpreterCore::ListOf(VarId list) const {
  return list < 0 ? nullptr : main_->variables()[list];
}

// Returns whether the feeds have the shapes, dtypes and LoD of the run before.
absl::StatusOr<bool> InterpreterCore::StoreFeeds(absl::Span<const Tensor> feeds) {
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
  }
  return same;
}

std::vector<Tensor> InterpreterCore::TakeFetches() {
  std::vector<Tensor> fetched;
  if (Variable* list = ListOf(plan().fetch_list)) fetched = std::exchange(list->array, {});
  // A fetch of something no op has written leaves no entry.
  fetched.resize(plan().fetches.size());
  return fetched;
}

// The caller's memory is not held beyond the run, only its shape.
void InterpreterCore::DropFeeds() {
  Variable* const list = ListOf(plan().feed_list);
  if (list == nullptr) return;
  for (Tensor& fed : list->array) fed.DropMemory();
}

}  // namespace interp
