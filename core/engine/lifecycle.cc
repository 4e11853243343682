#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <system_error>

#include "core/engine/engine_core.h"

namespace interp::engine {
namespace {

// The engines of this process, for the handlers of fork, which cannot be taken back. Never ends.
struct Engines {
  std::mutex mutex;
  std::vector<EngineCore*> all;
};
Engines& AllEngines() {
  static auto* const kEngines = new Engines;
  return *kEngines;
}

// Waits for what operations of each engine do, which may be to push to others, to make or to end
// some: no lock is held meanwhile.
void SettleAll(Engines& engines, std::unique_lock<std::mutex>& lock) {
  for (size_t i = 0; i < engines.all.size(); ++i) {
    EngineCore& core = *engines.all[i];
    core.Pin(true);
    lock.unlock();
    core.Settle();
    lock.lock();
    core.Pin(false);
  }
}

bool HoldWithin(EngineCore& core, std::chrono::microseconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (!core.Hold()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  return true;
}

// All or none. What is held waits for a busy one, which may be waiting for what is held: not for
// longer than `patience`.
bool HoldAll(Engines& engines, std::chrono::microseconds patience) {
  size_t held = 0;
  while (held < engines.all.size() && HoldWithin(*engines.all[held], patience)) ++held;
  if (held == engines.all.size()) return true;
  while (held > 0) engines.all[--held]->LetGo();
  return false;
}

void BeforeForkOfAll() {
  Engines& engines = AllEngines();
  std::unique_lock<std::mutex> lock(engines.mutex);
  std::chrono::microseconds patience{100};
  for (SettleAll(engines, lock); !HoldAll(engines, patience); SettleAll(engines, lock)) {
    patience = std::min<std::chrono::microseconds>(2 * patience, std::chrono::seconds(1));
  }
  for (EngineCore* core : engines.all) core->BeforeFork();
  lock.release();  // AfterForkOfAll opens it
}
void AfterForkOfAll(bool in_child) {
  Engines& engines = AllEngines();
  for (EngineCore* core : engines.all) core->AfterFork(in_child);
  engines.mutex.unlock();
}

void Register(EngineCore& core) {
  static const int kRegistered = pthread_atfork(
      &BeforeForkOfAll, [] { AfterForkOfAll(false); }, [] { AfterForkOfAll(true); });
  (void)kRegistered;
  std::lock_guard<std::mutex> lock(AllEngines().mutex);
  AllEngines().all.push_back(&core);
}

// Waits while a fork looks at it: soon, as nothing is in flight.
void Unregister(EngineCore& core) {
  std::unique_lock<std::mutex> lock(AllEngines().mutex);
  while (core.pinned()) {
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
  }
  std::erase(AllEngines().all, &core);
}

std::vector<Place> PlacesOf(const EngineOptions& options) {
  std::vector<Place> places;
  for (const auto& device : options.devices) places.push_back(device->place());
  return places;
}

// The policy's queues, and behind them the user's own.
Policy PolicyOf(const EngineOptions& options) {
  Policy policy = MakePolicy(options.policy, PlacesOf(options),
                             {.workers = options.workers,
                              .urgent_workers = options.urgent_workers,
                              .device_workers = options.device_workers});
  for (const std::string& name : options.queues) {
    policy.queues.push_back({.name = name, .num_threads = 1, .own = true});
  }
  return policy;
}

// The names of a device's streams, by StreamClass.
constexpr absl::string_view kStreamNames[] = {"engine", "engine-urgent", "engine-from",
                                              "engine-to"};

// As if new: the threads that slept there are not in this process.
void Renew(EventCount& event_count) { new (&event_count) EventCount; }

// Of starting the first thread of a queue, a millisecond further apart each time: 5 s in all.
constexpr int kMostTries = 100;

std::atomic<uint32_t> last_id{0};

int NumWorkers(const Policy& policy) {
  int num_workers = 0;
  for (const QueueSpec& spec : policy.queues) num_workers += spec.num_threads;
  return num_workers;
}

}  // namespace

EngineCore::EngineCore(const EngineOptions& options)
    : id_(last_id.fetch_add(1, std::memory_order_relaxed) + 1),
      options_(options),
      policy_(PolicyOf(options)),
      stand_ins_(*this, options.max_stand_ins, NumWorkers(policy_)) {
  int num_workers = 0;
  for (const QueueSpec& spec : policy_.queues) {
    auto group = std::make_unique<WorkerGroup>();
    group->spec = spec;
    group->number = static_cast<int16_t>(groups_.size());
    for (int i = 0; i < spec.num_threads; ++i) {
      group->workers.push_back(std::make_unique<Worker>());
      Worker& worker = *group->workers.back();
      worker.core = this;
      worker.group = group.get();
      worker.index = i;
      worker.number = num_workers++;
    }
    groups_.push_back(std::move(group));
  }
  room_step_ = std::max<int64_t>(1, options.max_in_flight / (8 * std::max(1, num_workers)));
  Register(*this);
}

absl::Status EngineCore::OpenStreams() {
  for (const auto& device : options_.devices) {
    for (int i = 0; i < kStreamsPerDevice; ++i) {
      const bool urgent = static_cast<StreamClass>(i) == StreamClass::kUrgent;
      INTERP_ASSIGN_OR_RETURN(std::unique_ptr<Stream> stream,
                              device->CreateStream(std::string(kStreamNames[i]), urgent ? -1 : 0));
      INTERP_RETURN_IF_ERROR(order_.AddStream(*device, *stream));
      streams_.push_back(std::move(stream));
    }
  }
  return absl::OkStatus();
}

EngineCore::~EngineCore() {
  Start();
  Drain();
  // An operation that another thread completes is counted before that thread has left the engine.
  for (const Home& home : homes_) {
    while (home.completing.load(std::memory_order_acquire) > 0) std::this_thread::yield();
  }
  if (in_child_) AbandonDevices();
  Unregister(*this);
  EndThreads();
  order_.Synchronize();
}

// Ending a stream or a device waits for its threads, which are not in this process.
void EngineCore::AbandonDevices() {
  for (std::unique_ptr<Stream>& stream : streams_) (void)stream.release();
  (void)new std::vector<std::shared_ptr<Device>>(options_.devices);
}

void EngineCore::Drain() {
  const auto busy = [&] { return running_.load() && InFlight() > 0; };
  if (!busy()) return;
  HandOverBacklogs();
  const LentPlace lent;
  while (busy()) {
    const uint32_t epoch = done_.Prepare();
    if (busy()) {
      done_.Wait(epoch);
    } else {
      done_.Cancel();
    }
  }
}

void EngineCore::EnsureStarted(WorkerGroup& group) {
  std::lock_guard<std::mutex> lock(lifecycle_);
  if (running_.load() && !ending_ && !group.started.load()) StartThreads(group);
}

bool EngineCore::StartThread(WorkerGroup& group) {
  const size_t i = group.threads.size();
  try {
    group.threads.emplace_back([this, &worker = *group.workers[i]] { WorkerLoop(worker); });
  } catch (const std::system_error&) {
    return false;
  }
  const std::string name = absl::StrCat(group.spec.name, i).substr(0, 15);
  pthread_setname_np(group.threads.back().native_handle(), name.c_str());
  return true;
}

void EngineCore::StartThreads(WorkerGroup& group) {
  group.stop.store(false);
  const size_t num_threads = in_child_ ? std::min(options_.workers_in_child, group.spec.num_threads)
                                       : group.spec.num_threads;
  // Fewer threads do the same work, and without any it would wait for ever.
  for (int tries = 0; group.threads.size() < num_threads; ++tries) {
    if (StartThread(group)) continue;
    if (!group.threads.empty()) break;
    if (tries == kMostTries) {
      std::fprintf(stderr, "the system gives no thread to queue '%s'\n", group.spec.name.c_str());
      std::abort();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(tries));
  }
  group.started.store(true, std::memory_order_release);
}

absl::Status EngineCore::StartNow() {
  std::lock_guard<std::mutex> lock(lifecycle_);
  for (const auto& group : groups_) {
    if (group->started.load() || group->spec.num_threads == 0) continue;
    group->stop.store(false);
    if (!StartThread(*group)) {
      return absl::ResourceExhaustedError(absl::StrCat("the system gives no thread to queue '",
                                                       group->spec.name, "' of the engine"));
    }
    StartThreads(*group);
  }
  return absl::OkStatus();
}

void EngineCore::EndThreads() {
  std::vector<std::thread> threads;
  {
    std::lock_guard<std::mutex> lock(lifecycle_);
    ending_ = true;
    for (const auto& group : groups_) {
      group->stop.store(true);
      group->idle.NotifyAll();
      for (std::thread& thread : group->threads) threads.push_back(std::move(thread));
      group->threads.clear();
      group->started.store(false);
    }
  }
  // Without the lock: a worker that has found its last operation may be about to take it, in
  // EnsureStarted.
  for (std::thread& thread : threads) thread.join();
  stand_ins_.End();
  std::lock_guard<std::mutex> lock(lifecycle_);
  ending_ = false;
}

bool EngineCore::LockHomesIfIdle() {
  for (Home& home : homes_) home.lock.lock();
  // No push is under way now.
  if (InFlight() == 0) return true;
  UnlockHomes();
  return false;
}

void EngineCore::UnlockHomes() {
  for (Home& home : homes_) home.lock.unlock();
}

absl::Status EngineCore::Stop() {
  if (Inside()) return absl::FailedPreconditionError("an operation stops its own engine");
  if (groups_.empty()) return absl::OkStatus();
  FlushBatches();
  while (true) {
    Drain();
    order_.Synchronize();
    std::lock_guard<std::mutex> control(control_);
    if (!running_.load()) return absl::OkStatus();
    if (!LockHomesIfIdle()) continue;
    // What is pushed from here on waits for Start.
    running_.store(false);
    for (const auto& group : groups_) group->stop.store(true);
    UnlockHomes();
    EndThreads();
    // They wait for what will not run.
    for (EventCount* e : {&waits_, &done_, &room_}) e->NotifyAll();
    return absl::OkStatus();
  }
}

void EngineCore::Start() {
  // A worker's operation runs before any Stop that waits for it.
  if (const Worker* worker = ThisThread().worker; worker != nullptr && worker->core == this) return;
  std::lock_guard<std::mutex> control(control_);
  std::lock_guard<std::mutex> lock(lifecycle_);
  running_.store(true);
  for (const auto& group : groups_) {
    if (!group->started.load() && !group->ready.seems_empty()) StartThreads(*group);
  }
}

// Forked by an operation: it cannot be waited for. The child must not use this engine.
void EngineCore::Settle() {
  if (Inside()) return;
  FlushBatches();
  Drain();
}

bool EngineCore::Hold() {
  fork_from_inside_ = Inside();
  if (fork_from_inside_) return true;
  control_.lock();
  if (running_.load()) {
    if (LockHomesIfIdle()) return true;
    control_.unlock();
    return false;
  }
  // What a stopped engine holds back stays held back in both.
  for (Home& home : homes_) home.lock.lock();
  return true;
}

void EngineCore::LetGo() {
  if (fork_from_inside_) return;
  UnlockHomes();
  control_.unlock();
}

void EngineCore::BeforeFork() {
  if (fork_from_inside_) return;
  order_.BeforeFork();
  EndThreads();
  lifecycle_.lock();
  names_mutex_.lock();
  errors_.Lock();
}

void EngineCore::AfterFork(bool in_child) {
  if (in_child) num_pins_ = 0;  // of threads that were about to fork, too
  if (fork_from_inside_) return;
  if (in_child) {
    in_child_ = true;
    for (EventCount* e : {&waits_, &done_, &room_}) Renew(*e);
    for (const auto& group : groups_) Renew(group->idle);
    held_up_now_.store(0);
  }
  errors_.Unlock();
  names_mutex_.unlock();
  lifecycle_.unlock();
  order_.AfterFork();
  LetGo();
}

uint64_t EngineCore::Completed() const {
  uint64_t completed = stand_ins_.completed();
  for (const Home& home : homes_) completed += home.completed.load();
  for (const auto& group : groups_) {
    for (const auto& worker : group->workers) {
      completed += worker->completed.load(std::memory_order_acquire);
    }
  }
  return completed;
}

EngineCounters EngineCore::counters() const {
  EngineCounters counters;
  counters.failed = failed_.load();
  counters.skipped = skipped_.load();
  counters.stood_in = stand_ins_.completed();
  counters.held_up = held_up_.load();
  counters.completed = Completed();
  for (const Home& home : homes_) counters.pushed += home.pushed.load();
  return counters;
}

}  // namespace interp::engine
