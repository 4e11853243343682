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
  return s.recorded != nullptr ? s.recorded->accesses.size()
                               : s.accesses->reads.size() + s.accesses->writes.size();
}

void Add(Record& record, absl::Span<const Variable> variables, AccessKind kind) {
  for (const Variable& v : variables) {
    new (record.accesses() + record.num_accesses) Access{
        .var = v.var, .generation = v.generation, .index = record.num_accesses, .kind = kind};
    ++record.num_accesses;
  }
}

// Null, or what is wrong with the variables of a push.
absl::Status Check(const Submission& s) {
  if (NumAccesses(s) > kMaxAccesses) {
    return InvalidArgument("operation '", s.options->name, "' names ", NumAccesses(s),
                           " variables; at most ", kMaxAccesses, " are possible");
  }
  if (s.accesses == nullptr) return absl::OkStatus();
  for (const absl::Span<const Variable> list : {s.accesses->reads, s.accesses->writes}) {
    for (const Variable& v : list) {
      if (v.var == nullptr) {
        return InvalidArgument("operation '", s.options->name,
                               "' names a variable that was never made");
      }
      __builtin_prefetch(v.var, 1);
    }
  }
  return absl::OkStatus();
}

absl::Status Deleted(absl::string_view operation) {
  return InvalidArgument("operation '", operation, "' names a variable that was deleted");
}

absl::Status RunRecorded(void* callable, RunningOperation& running) {
  OperatorState* const op = *static_cast<OperatorState**>(callable);
  return op->table->run(op->callable, running);
}
void RelocateRecorded(void* from, void* to) { std::memcpy(to, from, sizeof(void*)); }
void DropRecorded(void* callable) { (*static_cast<OperatorState**>(callable))->DropPush(); }

constexpr CallableTable kRecorded[] = {{&RunRecorded, &RelocateRecorded, &DropRecorded, false},
                                       {&RunRecorded, &RelocateRecorded, &DropRecorded, true}};

void DoNothing(void* /*callable*/) {}
constexpr CallableTable kNothing = {[](void*, RunningOperation&) { return absl::OkStatus(); },
                                    [](void*, void*) {}, &DoNothing, false};

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
  return {var, var->generation.load(std::memory_order_relaxed)};
}

absl::StatusOr<Route> EngineCore::FindRoute(const OperationOptions& options) const {
  if (options.place.on_host()) return policy_.For(0, options.property);
  const int place = policy_.PlaceNumber(options.place);
  if (place < 0) {
    return InvalidArgument("operation '", options.name, "' is to run on ", Name(options.place),
                           ", which is not among the engine's devices");
  }
  return policy_.For(place, options.property);
}

Record& EngineCore::NewRecord(Home& home, const Submission& s) {
  const size_t count = NumAccesses(s);
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
  return *record;
}

void EngineCore::FillAccesses(Record& record, const Submission& s) {
  if (s.recorded != nullptr) {
    const std::vector<Access>& accesses = s.recorded->accesses;
    std::uninitialized_copy(accesses.begin(), accesses.end(), record.accesses());
    record.num_accesses = static_cast<uint16_t>(accesses.size());
    return;
  }
  Add(record, s.accesses->reads, AccessKind::kRead);
  Add(record, s.accesses->writes, AccessKind::kWrite);
  SortAndMerge(record);
}

void EngineCore::Recycle(Record& record, Home& home) {
  home.completed.fetch_add(1);
  if ((record.flags & kFromHeap) != 0) {
    ::operator delete(&record);
  } else if ((record.flags & kLarge) != 0) {
    home.large_records.Return(&record);
  } else {
    home.records.Return(&record);
  }
}

absl::Status EngineCore::Submit(const Submission& s, RecordList* ready) {
  absl::Status status = Check(s);
  if (in_child_ && s.route.stream >= 0 && status.ok()) {
    status = absl::FailedPreconditionError(
        absl::StrCat("operation '", s.options->name,
                     "' is to run on a device, which a process forked off its own cannot use"));
  }
  if (!status.ok()) {
    s.table->destroy(s.callable);
    return status;
  }
  Home& home = MyHome();
  std::unique_lock<SpinLock> lock(home.lock);
  if (options_.max_in_flight > 0 && home.unchecked-- <= 0 && ThisThread().frames == nullptr) {
    lock.unlock();
    HoldUp();
    lock.lock();
    home.unchecked = options_.max_in_flight > kExactBound ? kPushesBetweenLooks : 0;
  }
  Record& record = NewRecord(home, s);
  FillAccesses(record, s);
  // Before the queues know of it: as soon as they do, it may run.
  s.table->relocate(s.callable, record.callable);
  const int32_t blocked = AppendAll(record);
  if (blocked == kStale) {
    s.table->destroy(record.callable);
    Recycle(record, home);
    return Deleted(s.options->name);
  }
  lock.unlock();
  if (blocked > 0) return absl::OkStatus();
  if (s.route.on_pusher || s.route.queue < 0) {
    RunHere(record);
  } else if (ready != nullptr) {
    ready->Append(record);
  } else {
    record.next = nullptr;
    Enqueue(*groups_[record.queue], {&record, &record});
  }
  return absl::OkStatus();
}

absl::Status EngineCore::SubmitDelete(Variable variable, const CallableTable& table,
                                      void* callable) {
  static constexpr OperationOptions kOptions{.name = "delete variable",
                                             .property = Property::kDelete};
  const auto refuse = [&](const absl::Status& status) {
    table.destroy(callable);
    return status;
  };
  Var* const var = variable.var;
  if (var == nullptr) return refuse(InvalidArgument("a variable that was never made is deleted"));
  const Accesses accesses{.writes = absl::MakeConstSpan(&variable, 1)};
  const Submission submission{.table = &table,
                              .callable = callable,
                              .options = &kOptions,
                              .route = policy_.For(0, Property::kDelete),
                              .accesses = &accesses};
  Home& home = MyHome();
  std::unique_lock<SpinLock> lock(home.lock);
  std::unique_lock<SpinLock> var_lock(var->lock);
  if (var->generation != variable.generation) {
    return refuse(InvalidArgument("a variable is deleted that was deleted before"));
  }
  var->NextGeneration();
  Record& record = NewRecord(home, submission);
  record.flags |= kDeletes;
  FillAccesses(record, submission);
  table.relocate(callable, record.callable);
  const bool ready = AppendLast(record);
  var_lock.unlock();
  lock.unlock();
  if (ready) RunHere(record);
  return absl::OkStatus();
}

absl::Status EngineCore::DeleteVariable(Variable variable) {
  if (Var* const var = variable.var) {
    std::lock_guard<SpinLock> home(MyHome().lock);
    std::unique_lock<SpinLock> lock(var->lock);
    // Nothing to wait for: no operation is needed.
    if (var->generation == variable.generation && var->first == nullptr &&
        var->order.load(std::memory_order_relaxed) == nullptr) {
      var->NextGeneration();
      RetireVariable(*var, std::move(lock));
      return absl::OkStatus();
    }
  }
  return SubmitDelete(variable, kNothing, nullptr);
}

absl::Status EngineCore::PushRecorded(OperatorState& op, RecordList* ready) {
  op.AddPush();
  OperatorState* callable = &op;
  return Submit({.table = &kRecorded[op.table->async ? 1 : 0],
                 .callable = &callable,
                 .options = &op.options,
                 .route = op.route,
                 .recorded = &op},
                ready);
}

absl::StatusOr<OperatorState*> EngineCore::NewOperator(const CallableTable& table, void* callable,
                                                       const Accesses& accesses,
                                                       const OperationOptions& options) {
  const Submission submission{
      .table = &table, .options = &options, .route = {}, .accesses = &accesses};
  absl::StatusOr<Route> route = FindRoute(options);
  absl::Status status = route.ok() ? Check(submission) : route.status();
  if (!status.ok()) {
    table.destroy(callable);
    return status;
  }
  auto op = std::make_unique<OperatorState>();
  op->table = &table;
  table.relocate(callable, op->callable);
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
  uint64_t completed = 0;
  for (const Home& home : homes_) completed += home.completed.load();
  for (const auto& group : groups_) {
    for (const auto& worker : group->workers) {
      completed += worker->completed.load(std::memory_order_acquire);
    }
  }
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
