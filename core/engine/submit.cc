#include <cstring>
#include <memory>
#include <new>

#include "core/engine/engine_core.h"
#include "core/engine/tracker.h"

namespace interp::engine {
namespace {

constexpr size_t kMaxAccesses = 65535;

// Above this bound only every so many pushes look at it.
constexpr int64_t kExactBound = 4096;
constexpr int32_t kPushesBetweenLooks = 64;

std::atomic<uint32_t> next_home{0};

size_t NumAccesses(const Submission& s) {
  if (s.op != nullptr) return s.op->accesses.size();
  return s.accesses->reads.size() + s.accesses->writes.size() + s.accesses->updates.size();
}

void Add(Record& record, absl::Span<const Variable> variables, AccessKind kind) {
  for (const Variable& v : variables) {
    new (record.accesses() + record.num_accesses) Access{
        .var = v.var, .generation = v.generation, .index = record.num_accesses, .kind = kind};
    ++record.num_accesses;
  }
}

// What is wrong with the variables of a push to engine `id`, if anything.
absl::Status Check(const Submission& s, uint32_t id) {
  if (NumAccesses(s) > kMaxAccesses) {
    return InvalidArgument("operation '", s.options->name, "' names ", NumAccesses(s),
                           " variables; at most ", kMaxAccesses, " are possible");
  }
  if (s.accesses == nullptr) return absl::OkStatus();
  for (const absl::Span<const Variable> list :
       {s.accesses->reads, s.accesses->writes, s.accesses->updates}) {
    for (const Variable& v : list) {
      if (v.engine != id) {
        return InvalidArgument("operation '", s.options->name, "' names a variable ",
                               v.var == nullptr ? "that was never made" : "of another engine");
      }
      __builtin_prefetch(v.var, 1);
    }
  }
  return absl::OkStatus();
}

absl::Status Deleted(absl::string_view operation) {
  return InvalidArgument("operation '", operation, "' names a variable that was deleted");
}

absl::Status RunOperator(void* callable, RunningOperation& running) {
  OperatorState* const op = *static_cast<OperatorState**>(callable);
  return op->table->run(op->callable, running);
}
bool DropPush(void* callable) { return (*static_cast<OperatorState**>(callable))->DropPush(); }
void DeleteOperator(void* callable) { delete *static_cast<OperatorState**>(callable); }

// The callable is a pointer to the operator. By whether the operator is asynchronous.
constexpr CallableTable kOperator[] = {{&RunOperator, nullptr, &DropPush, &DeleteOperator, false},
                                       {&RunOperator, nullptr, &DropPush, &DeleteOperator, true}};

constexpr CallableTable kNothing = {[](void*, RunningOperation&) { return absl::OkStatus(); },
                                    nullptr, nullptr, nullptr, false};

constexpr OperationOptions kDeleteOptions{.name = "delete variable", .property = Property::kDelete};

}  // namespace

Home& EngineCore::MyHome() {
  ThreadState& thread = ThisThread();
  if (thread.home < 0) {
    thread.home = static_cast<int>(next_home.fetch_add(1, std::memory_order_relaxed) % kNumHomes);
  }
  return homes_[thread.home];
}

Variable EngineCore::NewVariable(absl::string_view name) {
  Home& home = MyHome();
  std::lock_guard<SpinLock> guard(home.lock);
  Var* const var = home.vars.Take();
  // A handle that is void may be looking at it.
  std::lock_guard<SpinLock> var_guard(var->lock);
  var->home = static_cast<uint8_t>(&home - homes_.data());
  var->first = nullptr;
  var->version.store(0, std::memory_order_relaxed);
  var->NextGeneration();
  var->named = !name.empty();
  if (var->named) {
    std::lock_guard<std::mutex> lock(names_mutex_);
    names_[var] = std::string(name);
  }
  return {var, var->generation.load(std::memory_order_relaxed), id_};
}

absl::StatusOr<Route> EngineCore::FindRoute(const OperationOptions& options) const {
  if (options.queue >= 0) return FindOwnQueue(options);
  if (options.place.on_host()) return policy_.For(0, options.property);
  const int place = policy_.PlaceNumber(options.place);
  if (place < 0) {
    return InvalidArgument("operation '", options.name, "' is to run on ", Name(options.place),
                           ", which is not among the engine's devices");
  }
  return policy_.For(place, options.property);
}

absl::StatusOr<Route> EngineCore::FindOwnQueue(const OperationOptions& options) const {
  const size_t count = options_.queues.size();
  if (static_cast<size_t>(options.queue) >= count || !options.place.on_host()) {
    return InvalidArgument("operation '", options.name, "' is to run on ", Name(options.place),
                           " in queue ", options.queue, ", expected the host and one of the ",
                           count, " queues of EngineOptions::queues");
  }
  const size_t first = policy_.queues.size() - count;
  return Route{.queue = static_cast<int16_t>(first + static_cast<size_t>(options.queue))};
}

Record& EngineCore::NewRecord(const Submission& s, std::unique_lock<SpinLock>& home_lock) {
  const size_t count = NumAccesses(s);
  Home& home = MyHome();
  Record* record = nullptr;
  uint8_t flags = 0;
  if (count <= AccessesIn(kSmallRecord)) {
    record = home.records.Take();
  } else if (count <= AccessesIn(kLargeRecord)) {
    record = home.large_records.Take();
    flags = kLarge;
  } else {
    record = new (::operator new(sizeof(Record) + count * sizeof(Access))) Record;
    flags = kFromHeap;
  }
  const uint64_t serial = home.pushed.load(std::memory_order_relaxed) + 1;
  home.pushed.store(serial, std::memory_order_relaxed);
  record->table = s.table;
  record->num_accesses = 0;
  record->home = static_cast<uint8_t>(&home - homes_.data());
  record->priority = s.options->priority;
  record->queue = s.route.queue;
  record->stream = s.route.stream;
  if (s.options->property == Property::kNoSkip || s.options->property == Property::kDelete) {
    flags |= kRunsOnErrors;
  }
  record->flags = flags;
  record->holders.store(0, std::memory_order_relaxed);
  record->name = s.options->name;
  record->number = serial * kNumHomes + record->home;
  if (s.table->relocate == nullptr) {
    std::memcpy(record->callable, s.callable, kInlineCallable);
  } else {
    home_lock.unlock();
    s.table->relocate(s.callable, record->callable);
    home_lock.lock();
  }
  return *record;
}

void EngineCore::FillAccesses(Record& record, const Submission& s) {
  if (s.op != nullptr) {
    const std::vector<Access>& accesses = s.op->accesses;
    std::uninitialized_copy(accesses.begin(), accesses.end(), record.accesses());
    record.num_accesses = static_cast<uint16_t>(accesses.size());
    return;
  }
  Add(record, s.accesses->reads, AccessKind::kRead);
  Add(record, s.accesses->writes, AccessKind::kWrite);
  Add(record, s.accesses->updates, AccessKind::kUpdate);
  SortAndMerge(record);
}

void EngineCore::Refuse(Record& record) {
  // Counted first: what is destroyed may wait for everything.
  CountCompletion();
  Destroy(*record.table, record.callable);
  Return(record);
}

absl::Status EngineCore::Submit(const Submission& s, RecordList* ready) {
  absl::Status status = Check(s, id_);
  if (in_child_ && s.route.stream >= 0 && status.ok()) {
    status = absl::FailedPreconditionError(
        absl::StrCat("operation '", s.options->name,
                     "' is to run on a device, which a process forked off its own cannot use"));
  }
  if (!status.ok()) {
    Destroy(*s.table, s.callable);
    return status;
  }
  Home& home = MyHome();
  std::unique_lock<SpinLock> lock(home.lock);
  if (options_.max_in_flight > 0 && ThisThread().frames == nullptr && home.unchecked-- <= 0) {
    lock.unlock();
    HoldUp();
    lock.lock();
    home.unchecked = options_.max_in_flight > kExactBound ? kPushesBetweenLooks : 0;
  }
  Record& record = NewRecord(s, lock);
  FillAccesses(record, s);
  const int32_t blocked = AppendAll(record);
  lock.unlock();
  if (blocked == kStale) {
    Refuse(record);
    return Deleted(s.options->name);
  }
  if (blocked > 0) return absl::OkStatus();
  record.next = nullptr;
  if (s.route.on_pusher || s.route.queue < 0) {
    RunBacklog({&record, &record});
  } else if (ready != nullptr) {
    ready->Append(record);
  } else {
    Enqueue(*groups_[record.queue], {&record, &record});
  }
  return absl::OkStatus();
}

absl::Status EngineCore::CheckHandle(Variable variable, absl::string_view what) const {
  if (variable.engine == id_) return absl::OkStatus();
  return InvalidArgument("the variable ", what,
                         variable.var == nullptr ? " was never made" : " is another engine's");
}

absl::Status EngineCore::SubmitDelete(Variable variable, const CallableTable& table,
                                      void* callable) {
  if (absl::Status status = CheckHandle(variable, "to be deleted"); !status.ok()) {
    Destroy(table, callable);
    return status;
  }
  Var& var = *variable.var;
  const Accesses accesses{.writes = absl::MakeConstSpan(&variable, 1)};
  const Submission submission{.table = &table,
                              .callable = callable,
                              .options = &kDeleteOptions,
                              .route = policy_.For(0, Property::kDelete),
                              .accesses = &accesses};
  std::unique_lock<SpinLock> lock(MyHome().lock);
  Record& record = NewRecord(submission, lock);
  record.flags |= kDeletes;
  // A tag alone may go while devices use what it stands for.
  if (table.run == kNothing.run) record.flags |= kIgnoresDevices;
  FillAccesses(record, submission);
  std::unique_lock<SpinLock> var_lock(var.lock);
  if (var.generation != variable.generation) {
    var_lock.unlock();
    lock.unlock();
    Refuse(record);
    return InvalidArgument("the variable to be deleted was deleted before");
  }
  var.NextGeneration();
  const bool ready = AppendLast(record);
  const bool used_by_devices = var.order.load(std::memory_order_relaxed) != nullptr;
  var_lock.unlock();
  lock.unlock();
  if (!ready) return absl::OkStatus();
  record.next = nullptr;
  // A worker waits for the devices, not this thread.
  const bool waits = used_by_devices && (record.flags & kIgnoresDevices) == 0;
  if (waits && record.queue >= 0) {
    Enqueue(*groups_[record.queue], {&record, &record});
  } else {
    RunBacklog({&record, &record});
  }
  return absl::OkStatus();
}

absl::Status EngineCore::DeleteVariable(Variable variable) {
  static unsigned char nothing[kInlineCallable];
  if (variable.engine != id_) return CheckHandle(variable, "to be deleted");
  // Destroyed without a lock.
  ErrorRef error;
  Var& var = *variable.var;
  {
    std::lock_guard<SpinLock> home(MyHome().lock);
    std::unique_lock<SpinLock> lock(var.lock);
    // Nothing to wait for: no operation is needed. What devices did with it goes without a lock.
    if (var.generation == variable.generation && var.first == nullptr &&
        var.order.load(std::memory_order_relaxed) == nullptr) {
      var.NextGeneration();
      error = Retire(var, std::move(lock));
      return absl::OkStatus();
    }
  }
  return SubmitDelete(variable, kNothing, nothing);
}

absl::Status EngineCore::PushOperator(OperatorState& op, const PushOptions& options,
                                      RecordList* ready) {
  if (op.engine != id_) {
    return InvalidArgument("operator '", op.options.name, "' is another engine's");
  }
  OperationOptions changed;
  const OperationOptions* used = &op.options;
  Route route = op.route;
  if (options.place.has_value() || options.priority.has_value()) {
    changed = op.options;
    changed.place = options.place.value_or(changed.place);
    changed.priority = options.priority.value_or(changed.priority);
    used = &changed;
    INTERP_ASSIGN_OR_RETURN(route, FindRoute(changed));
  }
  op.AddPush();
  alignas(16) unsigned char callable[kInlineCallable];
  new (callable) OperatorState*(&op);
  return Submit({.table = &kOperator[op.table->async ? 1 : 0],
                 .callable = callable,
                 .options = used,
                 .route = route,
                 .op = &op},
                ready);
}

absl::StatusOr<OperatorState*> EngineCore::NewOperator(const CallableTable& table, void* callable,
                                                       const Accesses& accesses,
                                                       const OperationOptions& options) {
  const Submission submission{
      .table = &table, .options = &options, .route = {}, .accesses = &accesses};
  absl::StatusOr<Route> route = FindRoute(options);
  absl::Status status = route.ok() ? Check(submission, id_) : route.status();
  if (!status.ok()) {
    Destroy(table, callable);
    return status;
  }
  auto op = std::make_unique<OperatorState>();
  op->engine = id_;
  op->table = &table;
  Relocate(table, callable, op->callable);
  op->options = options;
  op->route = *route;
  const size_t count = NumAccesses(submission);
  const auto memory = std::make_unique<std::byte[]>(sizeof(Record) + count * sizeof(Access));
  auto* record = new (memory.get()) Record;
  FillAccesses(*record, submission);
  op->accesses.assign(record->accesses(), record->accesses() + record->num_accesses);
  return op.release();
}

int64_t EngineCore::InFlight() const {
  // Completions first: what is completed was pushed, so the difference is never too small.
  const uint64_t completed = Completed();
  uint64_t pushed = 0;
  for (const Home& home : homes_) pushed += home.pushed.load(std::memory_order_acquire);
  return static_cast<int64_t>(pushed - completed);
}

void EngineCore::HoldUp() {
  if (InFlight() < options_.max_in_flight) return;
  held_up_.fetch_add(1, std::memory_order_relaxed);
  // What this thread keeps back is in flight, too.
  FlushBatches();
  held_up_now_.fetch_add(1);
  // Goes on when there is room for many, so that threads fall asleep and wake for many at a time. A
  // stopped engine makes no room.
  const int64_t few = options_.max_in_flight - options_.max_in_flight / 8;
  const auto full = [&] { return running_.load() && InFlight() >= few; };
  while (full()) {
    const uint32_t epoch = room_.Prepare();
    if (full()) {
      room_.Wait(epoch);
    } else {
      room_.Cancel();
    }
  }
  held_up_now_.fetch_sub(1);
}

}  // namespace interp::engine
