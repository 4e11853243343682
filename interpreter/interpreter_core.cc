// Long because how a run begins and ends, on the host and on devices, shares the state of one core.
#include "interpreter/interpreter_core.h"

#include <algorithm>
#include <mutex>
#include <thread>

#include "absl/container/flat_hash_map.h"
#include "core/device/device_heap.h"
#include "core/steady_clock.h"
#include "interpreter/random_ops.h"

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
  Program program;
  Plan plan;
  std::vector<PassTiming> pass_timings;
  CoreOptions options;
  std::vector<std::shared_ptr<Device>> devices;
  ConstantCache constants;               // goes before the devices its values lie on
  std::atomic<uint64_t> next_stream{1};  // of random numbers, for the next clone
};

namespace {

int ThreadsPerOp(const CoreOptions& options) {
  if (options.num_threads > 0) return options.num_threads;
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return std::max(1, cores / std::max(1, options.num_workers));
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
  if (options.host_memory != nullptr && !options.host_memory->place().on_host()) {
    return InvalidArgument("host memory cannot come from ", options.host_memory->name());
  }
  auto model = std::make_shared<Model>();
  model->options = options;
  model->program = std::move(compiled.program);
  model->plan = std::move(compiled.plan);
  model->pass_timings = std::move(compiled.pass_timings);
  INTERP_ASSIGN_OR_RETURN(model->devices, FindDevices(model->plan, options.devices, options.sim));
  if (scope == nullptr) scope = std::make_shared<Scope>();
  std::unique_ptr<InterpreterCore> core(new InterpreterCore(std::move(model), std::move(scope)));
  INTERP_RETURN_IF_ERROR(core->BindInstructions());
  return core;
}

InterpreterCore::InterpreterCore(std::shared_ptr<Model> model, std::shared_ptr<Scope> parent)
    : model_(std::move(model)),
      pool_(MakeHostPool(model_->options)),
      local_(std::make_shared<Scope>(std::move(parent))),
      scheduler_kind_(
          ResolveScheduler(model_->options.scheduler, model_->plan, model_->options.num_workers)),
      num_threads_(ThreadsPerOp(model_->options)),
      random_{.seed = model_->options.random_seed} {
  BindVariables();
}

bool InterpreterCore::has_devices() const { return model_->plan.streams.size() > 1; }

// Makes what runs instructions. Streams of devices are scarce, so this can fail.
absl::Status InterpreterCore::BindInstructions() {
  const Plan& plan = model_->plan;
  const CoreOptions& options = model_->options;
  if (has_devices()) {
    INTERP_ASSIGN_OR_RETURN(devices_,
                            DeviceSet::Create(plan, model_->devices,
                                              {.limit_bytes = options.max_memory_bytes,
                                               .fail_allocation = options.fail_allocation}));
  }
  runner_ = std::make_unique<InstructionRunner>(
      plan, RandomOpIds(plan, model_->program), variables_,
      InstructionRunner::Services{.pool = pool_.get(),
                                  .devices = devices_.get(),
                                  .shared = &model_->constants,
                                  .random = &run_random_},
      RunnerOptions{.num_threads = num_threads_, .check_nan_inf = options.check_nan_inf});
  collector_ = std::make_unique<GarbageCollector>(plan, variables_, devices_.get(), options.gc);
  INTERP_ASSIGN_OR_RETURN(scheduler_,
                          MakeScheduler({.kind = scheduler_kind_,
                                         .num_workers = std::max(1, options.num_workers),
                                         .seed = options.schedule_seed},
                                        plan,
                                        {.runner = runner_.get(),
                                         .collector = collector_.get(),
                                         .control = &control_,
                                         .with_devices = has_devices()}));
  return absl::OkStatus();
}

InterpreterCore::~InterpreterCore() {
  if (devices_ == nullptr) return;
  devices_->Synchronize();
  // Memory of devices is handed back through their streams, which go with devices_.
  collector_.reset();
  for (size_t id = 0; id < variables_.size(); ++id) {
    const PlanVar& var = model_->plan.vars[id];
    const bool outlives = var.persistable && var.copy_of < 0;
    if (!var.place.on_host() && !outlives) variables_[id]->tensor.DropMemory();
  }
}

void InterpreterCore::BindVariables() {
  const Plan& plan = model_->plan;
  Scope& root = local_->root();
  variables_.resize(plan.vars.size(), nullptr);
  own_variables_.resize(plan.vars.size() - plan.num_program_vars);
  for (size_t id = 0; id < plan.vars.size(); ++id) {
    const PlanVar& var = plan.vars[id];
    if (static_cast<VarId>(id) == plan.feed_list) {
      variables_[id] = &feed_list_;
    } else if (static_cast<VarId>(id) == plan.fetch_list) {
      variables_[id] = &fetch_list_;
    } else if (static_cast<int32_t>(id) >= plan.num_program_vars) {
      variables_[id] = &own_variables_[id - plan.num_program_vars];
    } else if (var.name != kEmptyVarName) {
      variables_[id] = (var.persistable ? root : *local_).FindOrCreate(var.name);
      if (var.persistable && var.kind == VarKind::kLodTensor) {
        if (var.constant) constants_.push_back({.variable = variables_[id]});
        (var.constant ? constant_homes_ : written_homes_).push_back({variables_[id], var.place});
      }
      if (var.kind == VarKind::kLodTensorArray && !var.persistable) {
        local_arrays_.push_back(&variables_[id]->array);
      }
    }
  }
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
  INTERP_RETURN_IF_ERROR(CheckFeeds(feeds));
  INTERP_RETURN_IF_ERROR(BeginDevices());
  INTERP_RETURN_IF_ERROR(PrepareParameters());
  const bool same_shapes = StoreFeeds(feeds) && shapes_known_;
  shapes_known_ = false;
  fetch_list_.array.reserve(model_->plan.fetches.size());  // a run's only allocation when warm
  run_random_ = options.random.value_or(random_);
  if (options.observer != nullptr) options.observer->OnRunStart(SteadyNowNs());
  scheduler_->Run(/*infer_all=*/!same_shapes, options.observer);
  collector_->Flush();
  const absl::Status status = FinishDevices(control_.Finish(), options);
  if (options.observer != nullptr) options.observer->OnRunEnd(SteadyNowNs());
  ClearArrays();
  if (!status.ok()) {
    collector_->DropAll();
    fetch_list_.array.clear();
    return status;
  }
  shapes_known_ = true;
  if (!options.random.has_value()) ++random_.step;
  return TakeFetches();
}

absl::Status InterpreterCore::Synchronize() { return FinishDevices(absl::OkStatus(), {}); }

// Makes the streams of a clone, tells what failed after the run before, and waits for other cores.
absl::Status InterpreterCore::BeginDevices() {
  if (runner_ == nullptr) INTERP_RETURN_IF_ERROR(BindInstructions());
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
  return runner_->Explain(error->tag, error->status);
}

// Parameters to where the plan has them, with their present values.
absl::Status InterpreterCore::PrepareParameters() {
  INTERP_RETURN_IF_ERROR(MoveHome(written_homes_));
  const bool changed = NoteConstants();
  if (changed) {
    if (devices_ != nullptr) devices_->Synchronize();
    runner_->ResetKernelStates();
    shapes_known_ = false;
    INTERP_RETURN_IF_ERROR(MoveHome(constant_homes_));
    NoteConstants();
  }
  if (shapes_known_) return absl::OkStatus();
  INTERP_RETURN_IF_ERROR(CheckParameters());
  if (changed || !constants_copied_) INTERP_RETURN_IF_ERROR(CopyConstants());
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

// Gives PlanVar::copy_of variables their values, which all clones share.
absl::Status InterpreterCore::CopyConstants() {
  const Plan& plan = model_->plan;
  constants_copied_ = false;
  for (size_t id = 0; id < plan.vars.size(); ++id) {
    const PlanVar& var = plan.vars[id];
    if (var.copy_of < 0) continue;
    const auto make = [&]() -> absl::StatusOr<std::shared_ptr<const void>> {
      INTERP_ASSIGN_OR_RETURN(
          Tensor copy, CopyToHeap(variables_[var.copy_of]->tensor, devices_->device(var.place),
                                  devices_->heap(var.place)));
      return std::make_shared<const Tensor>(std::move(copy));
    };
    INTERP_ASSIGN_OR_RETURN(const std::shared_ptr<const void> copy,
                            model_->constants.GetOrMake(/*instruction=*/-1, id, make));
    variables_[id]->tensor = *static_cast<const Tensor*>(copy.get());
  }
  constants_copied_ = true;
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

void InterpreterCore::Cancel() { control_.Fail(absl::CancelledError("the run was cancelled")); }

std::unique_ptr<InterpreterCore> InterpreterCore::Clone() const {
  std::unique_ptr<InterpreterCore> clone(new InterpreterCore(model_, local_->parent()));
  clone->random_ = {.seed = random_.seed, .stream = model_->next_stream.fetch_add(1)};
  return clone;
}

const std::vector<std::shared_ptr<Device>>& InterpreterCore::devices() const {
  return model_->devices;
}
const Plan& InterpreterCore::plan() const { return model_->plan; }
const Program& InterpreterCore::program() const { return model_->program; }
const std::vector<PassTiming>& InterpreterCore::pass_timings() const {
  return model_->pass_timings;
}

absl::Status InterpreterCore::CheckFeeds(absl::Span<const Tensor> feeds) const {
  const std::vector<FeedSpec>& specs = model_->plan.feeds;
  if (feeds.size() != specs.size()) {
    return InvalidArgument("got ", feeds.size(), " feeds, expected ", specs.size());
  }
  for (size_t i = 0; i < feeds.size(); ++i) {
    const Tensor& fed = feeds[i];
    const FeedSpec& spec = specs[i];
    const auto mismatch = [&] {
      return InvalidArgument("feed '", spec.name, "' is ", DescribeType(fed), ", expected ",
                             Name(spec.dtype), ToString(spec.shape));
    };
    if (spec.dtype != DType::kUndefined && fed.dtype != spec.dtype) return mismatch();
    if (fed.layout != Layout::kPlain || !fed.shape.CheckedNumel().has_value()) return mismatch();
    if (fed.numel() > 0 && !fed.has_memory()) {
      return InvalidArgument("feed '", spec.name, "' has no memory");
    }
    if (absl::Status lod = CheckLod(fed.lod, fed.shape); !lod.ok()) {
      return Annotate(lod, absl::StrCat("feed '", spec.name, "'"));
    }
    if (!spec.check_shape) continue;
    if (fed.shape.rank() != spec.shape.rank()) return mismatch();
    for (int d = 0; d < fed.shape.rank(); ++d) {
      if (spec.shape[d] >= 0 && spec.shape[d] != fed.shape[d]) return mismatch();
    }
  }
  return absl::OkStatus();
}

absl::Status InterpreterCore::CheckParameters() const {
  const Plan& plan = model_->plan;
  for (const Instruction& instruction : plan.instructions) {
    for (const VarId input : instruction.inputs) {
      const VarId id =
          input >= 0 && plan.vars[input].copy_of >= 0 ? plan.vars[input].copy_of : input;
      if (id < 0 || !plan.vars[id].constant || plan.vars[id].kind != VarKind::kLodTensor) continue;
      const Tensor& tensor = variables_[id]->tensor;
      if (tensor.has_memory() && tensor.dtype == plan.vars[id].dtype) continue;
      if (!tensor.has_memory()) {
        return NotFound("parameter '", plan.vars[id].name, "' of op ", instruction.op_type,
                        " has no value; load the parameters first (--params)");
      }
      return InvalidArgument("parameter '", plan.vars[id].name, "' is ", DescribeType(tensor),
                             ", the program declares ", Name(plan.vars[id].dtype));
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

// Returns whether the feeds have the shapes, dtypes and LoD of the run before.
bool InterpreterCore::StoreFeeds(absl::Span<const Tensor> feeds) {
  bool same = feed_list_.array.size() == feeds.size();
  feed_list_.array.resize(feeds.size());
  for (size_t i = 0; i < feeds.size(); ++i) {
    same = same && SameMetadata(feed_list_.array[i], feeds[i]);
    feed_list_.array[i] = feeds[i];
  }
  return same;
}

absl::StatusOr<std::vector<Tensor>> InterpreterCore::TakeFetches() {
  std::vector<Tensor> fetched = std::move(fetch_list_.array);
  fetch_list_.array.clear();
  // A fetch of something no op has written leaves no entry.
  fetched.resize(model_->plan.fetches.size());
  return fetched;
}

void InterpreterCore::ClearArrays() {
  // The caller's memory is not held beyond the run, only its shape.
  for (Tensor& fed : feed_list_.array) fed.DropMemory();
  for (std::vector<Tensor>* array : local_arrays_) array->clear();
}

}  // namespace interp
