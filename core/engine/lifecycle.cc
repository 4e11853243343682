#include <pthread.h>

#include <algorithm>
#include <new>

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

void BeforeForkOfAll() {
  Engines& engines = AllEngines();
  engines.mutex.lock();
  for (EngineCore* core : engines.all) core->BeforeFork();
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

std::vector<Place> PlacesOf(const EngineOptions& options) {
  std::vector<Place> places;
  for (const auto& device : options.devices) places.push_back(device->place());
  return places;
}

// The names of a device's streams, by StreamClass.
constexpr absl::string_view kStreamNames[] = {"engine", "engine-urgent", "engine-from",
                                              "engine-to"};

bool Inside(const EngineCore& core) {
  for (const ThreadState::Frame* f = ThisThread().frames; f != nullptr; f = f->outer) {
    if (f->core == &core) return true;
  }
  return false;
}

// As if new: whoever slept there is not in this process.
void Renew(EventCount& event_count) { new (&event_count) EventCount; }

}  // namespace

EngineCore::EngineCore(const EngineOptions& options)
    : options_(options),
      policy_(MakePolicy(options.policy, PlacesOf(options),
                         {.workers = options.workers,
                          .urgent_workers = options.urgent_workers,
                          .device_workers = options.device_workers})) {
  int num_workers = 0;
  for (const QueueSpec& spec : policy_.queues) {
    auto group = std::make_unique<WorkerGroup>();
    group->spec = spec;
    group->number = static_cast<int8_t>(groups_.size());
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
      order_.AddStream(*device, *stream);
      streams_.push_back(std::move(stream));
    }
  }
  return absl::OkStatus();
}

EngineCore::~EngineCore() {
  Start();
  Drain();
  if (in_child_) AbandonDevices();
  {
    std::lock_guard<std::mutex> lock(AllEngines().mutex);
    std::erase(AllEngines().all, this);
  }
  std::lock_guard<std::mutex> lock(lifecycle_);
  EndThreads();
  order_.Synchronize();
}

// Ending a stream or a device waits for its threads, which are not in this process.
void EngineCore::AbandonDevices() {
  for (std::unique_ptr<Stream>& stream : streams_) (void)stream.release();
  (void)new std::vector<std::shared_ptr<Device>>(options_.devices);
}

void EngineCore::Drain() {
  while (InFlight() > 0) {
    const uint32_t epoch = done_.Prepare();
    if (InFlight() > 0) {
      done_.Wait(epoch);
    } else {
      done_.Cancel();
    }
  }
}

void EngineCore::EnsureStarted(WorkerGroup& group) {
  std::lock_guard<std::mutex> lock(lifecycle_);
  if (running_.load() && !group.started.load()) StartThreads(group);
}

void EngineCore::StartThreads(WorkerGroup& group) {
  group.stop.store(false);
  const int num_threads = in_child_ ? std::min(options_.workers_in_child, group.spec.num_threads)
                                    : group.spec.num_threads;
  for (int i = 0; i < num_threads; ++i) {
    group.threads.emplace_back([this, &worker = *group.workers[i]] { WorkerLoop(worker); });
    const std::string name = absl::StrCat(group.spec.name, i).substr(0, 15);
    pthread_setname_np(group.threads.back().native_handle(), name.c_str());
  }
  group.started.store(true, std::memory_order_release);
}

void EngineCore::EndThreads() {
  for (const auto& group : groups_) {
    group->stop.store(true);
    group->idle.NotifyAll();
  }
  for (const auto& group : groups_) {
    for (std::thread& thread : group->threads) thread.join();
    group->threads.clear();
    group->started.store(false);
  }
}

absl::Status EngineCore::Stop() {
  if (Inside(*this)) return absl::FailedPreconditionError("an operation stops its own engine");
  if (!running_.load()) return absl::OkStatus();
  FlushBatches();
  Drain();
  order_.Synchronize();
  std::lock_guard<std::mutex> lock(lifecycle_);
  if (groups_.empty()) return absl::OkStatus();
  running_.store(false);
  EndThreads();
  // Those who wait for what will not run are told so.
  for (EventCount* e : {&waits_, &done_, &room_}) e->NotifyAll();
  return absl::OkStatus();
}

void EngineCore::Start() {
  std::lock_guard<std::mutex> lock(lifecycle_);
  running_.store(true);
  for (const auto& group : groups_) {
    if (!group->started.load() && !group->ready.seems_empty()) StartThreads(*group);
  }
}

void EngineCore::BeforeFork() {
  // Forked by an operation: it cannot be waited for. The child must not use this engine.
  fork_from_inside_ = Inside(*this);
  if (fork_from_inside_) return;
  FlushBatches();
  while (true) {
    if (running_.load()) Drain();
    for (Home& home : homes_) home.lock.lock();
    // No push is under way now. What a stopped engine holds back stays held back in both.
    if (!running_.load() || InFlight() == 0) break;
    for (Home& home : homes_) home.lock.unlock();
  }
  order_.BeforeFork();
  lifecycle_.lock();
  EndThreads();
  names_mutex_.lock();
  errors_mutex_.lock();
}

void EngineCore::AfterFork(bool in_child) {
  if (fork_from_inside_) return;
  if (in_child) {
    in_child_ = true;
    for (EventCount* e : {&waits_, &done_, &room_}) Renew(*e);
    for (const auto& group : groups_) Renew(group->idle);
    helping_.store(0);
    held_up_now_.store(0);
  }
  errors_mutex_.unlock();
  names_mutex_.unlock();
  lifecycle_.unlock();
  order_.AfterFork();
  for (Home& home : homes_) home.lock.unlock();
}

EngineCounters EngineCore::counters() const {
  EngineCounters counters;
  counters.failed = failed_.load();
  counters.skipped = skipped_.load();
  counters.helped = helped_.load();
  counters.held_up = held_up_.load();
  for (const Home& home : homes_) counters.completed += home.completed.load();
  for (const auto& group : groups_) {
    for (const auto& worker : group->workers) counters.completed += worker->completed.load();
  }
  for (const Home& home : homes_) counters.pushed += home.pushed.load();
  return counters;
}

}  // namespace interp::engine
