#include "core/engine/engine.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "core/engine/engine_core.h"

namespace interp::engine {
namespace {

// What a group runs.
using Members = std::vector<Operator>;

// What a group does with each variable: what its members do with it together.
class GroupAccesses {
 public:
  void Add(const Access& access, uint32_t engine) {
    const Variable variable{access.var, access.generation, engine};
    // Of two with one slot one is gone, which the push is to notice.
    const auto [it, is_new] = kinds_.try_emplace(std::pair(access.var, access.generation),
                                                 variables_.size(), access.kind);
    if (is_new) variables_.push_back(variable);
    AccessKind& kind = it->second.second;
    // What one has overwritten whole is the group's own, whatever others do with it then.
    if (kind == AccessKind::kRead && Writes(access.kind)) kind = AccessKind::kUpdate;
  }

  struct Lists {
    std::vector<Variable> reads;
    std::vector<Variable> writes;
    std::vector<Variable> updates;
  };
  Lists Split() const {
    Lists lists;
    for (const auto& [var, found] : kinds_) {
      std::vector<Variable>* const list = found.second == AccessKind::kRead    ? &lists.reads
                                          : found.second == AccessKind::kWrite ? &lists.writes
                                                                               : &lists.updates;
      list->push_back(variables_[found.first]);
    }
    return lists;
  }

 private:
  std::vector<Variable> variables_;
  absl::flat_hash_map<std::pair<Var*, uint32_t>, std::pair<size_t, AccessKind>> kinds_;
};

// What keeps an operator that was recorded with `member` out of a group with `group`, if anything.
absl::Status CheckWhere(const OperationOptions& member, const OperationOptions& group) {
  if (group.place.on_host() && !member.place.on_host()) {
    return InvalidArgument("group '", group.name, "' is to run on ", Name(group.place), ": '",
                           member.name, "' on ", Name(member.place));
  }
  if (member.queue < 0 || member.queue == group.queue) return absl::OkStatus();
  return InvalidArgument(
      "group '", group.name, "' is to run in ",
      group.queue < 0 ? "no queue of the user" : absl::StrCat("queue ", group.queue), ": '",
      member.name, "' in queue ", member.queue);
}

// Threads may begin while the rest of a batch is pushed.
constexpr int kPushesPerFlush = 64;

}  // namespace

Operator::Operator(const Operator& other) : state_(other.state_) {
  if (state_ != nullptr) state_->handles.fetch_add(1, std::memory_order_relaxed);
}

Operator::~Operator() {
  if (state_ != nullptr && state_->DropHandle()) delete state_;
}

Engine::Engine(std::unique_ptr<EngineCore> core) : core_(std::move(core)), id_(core_->id()) {}
Engine::~Engine() = default;

absl::StatusOr<std::unique_ptr<Engine>> Engine::Create(const EngineOptions& options) {
  for (const int count : {options.workers, options.urgent_workers, options.device_workers,
                          options.workers_in_child}) {
    if (count < 1 || count > kMaxWorkers) {
      return InvalidArgument("an engine has ", count, " threads for a queue, expected 1 to ",
                             kMaxWorkers);
    }
  }
  if (options.queues.size() > kMaxQueues) {
    return InvalidArgument("an engine has ", options.queues.size(),
                           " queues of the user, expected ", kMaxQueues, " at most");
  }
  if (options.max_in_flight < 0) {
    return InvalidArgument("max_in_flight is ", options.max_in_flight, ", expected 0 or more");
  }
  if (options.max_stand_ins < 1 || options.max_stand_ins > kMaxStandIns) {
    return InvalidArgument("max_stand_ins is ", options.max_stand_ins, ", expected 1 to ",
                           kMaxStandIns);
  }
  for (size_t i = 0; i < options.devices.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (options.devices[i]->place() == options.devices[k]->place()) {
        return InvalidArgument("an engine has the device ", Name(options.devices[i]->place()),
                               " twice");
      }
    }
  }
  auto core = std::make_unique<EngineCore>(options);
  INTERP_RETURN_IF_ERROR(core->OpenStreams());
  return std::unique_ptr<Engine>(new Engine(std::move(core)));
}

// As Callable<Members> would be, if members could be called without the operation that runs.
struct GroupCallable {
  static Members& Of(void* callable) { return **static_cast<Members**>(callable); }
  static absl::Status Run(void* callable, RunningOperation& running) {
    for (const Operator& member : Of(callable)) {
      INTERP_RETURN_IF_ERROR(member.state_->table->run(member.state_->callable, running));
    }
    return absl::OkStatus();
  }
  static void End(void* callable) { delete &Of(callable); }
  static constexpr CallableTable kTable = {
      .run = &Run, .relocate = nullptr, .drop = nullptr, .destroy = &End, .async = false};
};

absl::StatusOr<Operator> Engine::NewGroup(absl::Span<const Operator> ops,
                                          const OperationOptions& options) {
  if (ops.empty()) return InvalidArgument("group '", options.name, "' has no operators");
  GroupAccesses accesses;
  for (const Operator& op : ops) {
    if (!op || op.state_->engine != id_ || op.state_->table->async) {
      const absl::string_view what = !op                        ? "no operator"
                                     : op.state_->engine != id_ ? "another engine's"
                                                                : "asynchronous";
      return InvalidArgument("group '", options.name, "': '", op ? op.state_->options.name : "",
                             "' is ", what);
    }
    INTERP_RETURN_IF_ERROR(CheckWhere(op.state_->options, options));
    for (const Access& access : op.state_->accesses) accesses.Add(access, id_);
  }
  const GroupAccesses::Lists lists = accesses.Split();
  alignas(16) unsigned char callable[kInlineCallable];
  new (callable) Members*(new Members(ops.begin(), ops.end()));
  return MakeOperator(GroupCallable::kTable, callable,
                      {.reads = lists.reads, .writes = lists.writes, .updates = lists.updates},
                      options);
}

Variable Engine::NewVariable(absl::string_view name) { return core_->NewVariable(name); }

absl::Status Engine::DeleteVariable(Variable variable) { return core_->DeleteVariable(variable); }

absl::Status Engine::SubmitDelete(Variable variable, const CallableTable& table, void* callable) {
  return core_->SubmitDelete(variable, table, callable);
}

absl::Status Engine::Submit(const CallableTable& table, void* callable, const Accesses& accesses,
                            const OperationOptions& options, RecordList* ready) {
  const absl::StatusOr<Route> route = core_->FindRoute(options);
  if (!route.ok()) {
    Destroy(table, callable);
    return route.status();
  }
  return core_->Submit({.table = &table,
                        .callable = callable,
                        .options = &options,
                        .route = *route,
                        .accesses = &accesses},
                       ready);
}

absl::StatusOr<Operator> Engine::MakeOperator(const CallableTable& table, void* callable,
                                              const Accesses& accesses,
                                              const OperationOptions& options) {
  INTERP_ASSIGN_OR_RETURN(OperatorState * state,
                          core_->NewOperator(table, callable, accesses, options));
  return Operator(state);
}

absl::Status Engine::Push(const Operator& op, const PushOptions& options) {
  if (!op) return InvalidArgument("an operator that was never made is pushed");
  return core_->PushOperator(*op.state_, options);
}

absl::Status Engine::PushAll(absl::Span<const Operator> ops) {
  Batch batch(*this);
  for (const Operator& op : ops) INTERP_RETURN_IF_ERROR(batch.Push(op));
  return absl::OkStatus();
}

Batch::Batch(Engine& engine) : engine_(engine), outer_(std::exchange(ThisThread().batch, this)) {}

Batch::~Batch() {
  Flush();
  ThisThread().batch = outer_;
}

absl::Status Batch::Push(const Operator& op, const PushOptions& options) {
  if (!op) return InvalidArgument("an operator that was never made is pushed");
  return FlushNowAndThen(engine_.core_->PushOperator(*op.state_, options, &ready_));
}

absl::Status Batch::FlushNowAndThen(absl::Status status) {
  if (++pushed_ % kPushesPerFlush == 0) Flush();
  return status;
}

void Batch::Flush() { engine_.core_->Dispatch(std::exchange(ready_, {})); }

absl::Status Engine::WaitFor(Variable variable, AccessKind kind, std::chrono::nanoseconds timeout) {
  return core_->Wait(variable, kind, timeout);
}
absl::Status Engine::WaitForAll(std::chrono::nanoseconds timeout) {
  return core_->WaitForAll(timeout);
}
std::vector<ErrorRef> Engine::TakeErrors() { return core_->TakeErrors(); }

uint64_t Engine::Version(Variable variable) const {
  if (variable.engine != id_) return 0;
  std::lock_guard<SpinLock> guard(variable.var->lock);
  return variable.var->generation == variable.generation
             ? variable.var->version.load(std::memory_order_relaxed)
             : 0;
}

bool Engine::InOperation() const { return core_->Inside(); }

ErrorRef Engine::ErrorOf(Variable variable) const {
  return variable.engine == id_ ? core_->ErrorOf(variable) : ErrorRef();
}

absl::Status Engine::Stop() { return core_->Stop(); }
void Engine::Start() { core_->Start(); }
absl::Status Engine::StartNow() { return core_->StartNow(); }
std::string Engine::Describe(Variable variable) const { return core_->Describe(variable); }
EngineCounters Engine::counters() const { return core_->counters(); }
void Engine::SetObserver(EngineObserver* observer) { core_->SetObserver(observer); }
const Policy& Engine::policy() const { return core_->policy(); }

}  // namespace interp::engine
