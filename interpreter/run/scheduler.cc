#include "interpreter/run/scheduler.h"

#include <algorithm>
#include <optional>
#include <random>
#include <system_error>

#include "interpreter/run/engine_scheduler.h"

namespace interp {
namespace {

class TraceScheduler final : public Scheduler {
 public:
  TraceScheduler(const Plan& plan, const RunParts& parts) : plan_(plan), parts_(parts) {}

  void Run(const RunContext& context) override {
    for (const InstrId id : plan_.order) {
      RunOne(parts_, id, context);
      parts_.collector->AfterInOrder(id, context.observer, context.worker);
    }
  }

 private:
  const Plan& plan_;
  const RunParts parts_;
};

std::vector<InstrId> Roots(const Plan& plan) {
  std::vector<InstrId> roots;
  for (size_t i = 0; i < plan.dep_counts.size(); ++i) {
    if (plan.dep_counts[i] == 0) roots.push_back(static_cast<InstrId>(i));
  }
  return roots;
}

// Apart from the instructions, which are large.
std::vector<int32_t> Priorities(const Plan& plan) {
  std::vector<int32_t> priorities;
  priorities.reserve(plan.instructions.size());
  for (const Instruction& i : plan.instructions) priorities.push_back(i.priority);
  return priorities;
}

class SerialScheduler final : public Scheduler {
 public:
  // With a seed, priorities are drawn anew for every run. One that is drawn to be last comes after
  // everything that does not need it, which shows a missing edge with one try in as many as there
  // are instructions (Burckhardt et al., ASPLOS 2010); drawing at each step nearly never would.
  SerialScheduler(const Plan& plan, const RunParts& parts, std::optional<uint64_t> seed)
      : plan_(plan),
        parts_(parts),
        shuffles_(seed.has_value()),
        random_(seed.value_or(0)),
        roots_(Roots(plan)),
        priorities_(Priorities(plan)),
        waiting_(plan.dep_counts) {
    ready_.reserve(plan.dep_counts.size());
  }

  void Run(const RunContext& context) override {
    if (shuffles_) {
      for (int32_t& priority : priorities_) priority = static_cast<int32_t>(random_() >> 33);
    }
    for (const InstrId root : roots_) Push(root);
    while (!ready_.empty()) {
      const InstrId id = Pop();
      RunOne(parts_, id, context);
      parts_.collector->After(id, context.observer, context.worker);
      for (const InstrId next : plan_.successors[id]) {
        if (--waiting_[next] > 0) continue;
        waiting_[next] = plan_.dep_counts[next];  // for the next run
        Push(next);
      }
    }
  }

 private:
  auto RunsLater() const {
    return [this](InstrId a, InstrId b) {
      return priorities_[a] != priorities_[b] ? priorities_[a] > priorities_[b] : a > b;
    };
  }
  void Push(InstrId id) {
    ready_.push_back(id);
    std::push_heap(ready_.begin(), ready_.end(), RunsLater());
  }
  InstrId Pop() {
    std::pop_heap(ready_.begin(), ready_.end(), RunsLater());
    const InstrId id = ready_.back();
    ready_.pop_back();
    return id;
  }

  const Plan& plan_;
  const RunParts parts_;
  const bool shuffles_;
  std::mt19937_64 random_;
  const std::vector<InstrId> roots_;
  std::vector<int32_t> priorities_;
  std::vector<int32_t> waiting_;  // by InstrId; predecessors left
  std::vector<InstrId> ready_;
};

class AsyncScheduler final : public Scheduler {
 public:
  AsyncScheduler(const Plan& plan, const RunParts& parts, int num_workers,
                 SchedulerThreads& threads, bool nested)
      : plan_(plan),
        parts_(parts),
        num_workers_(num_workers),
        nested_(nested),
        roots_(Roots(plan)),
        priorities_(Priorities(plan)),
        waiting_(std::make_unique<std::atomic<int32_t>[]>(plan.dep_counts.size())),
        host_queue_(*threads.host),
        device_queue_(*threads.device) {
    host_lane_.Reserve(plan.dep_counts.size());
    if (parts.with_devices) device_lane_.Reserve(plan.dep_counts.size());
    on_device_.reserve(plan.instructions.size());
    for (const Instruction& i : plan.instructions) {
      on_device_.push_back(i.queue == QueueKind::kDevice);
    }
    for (size_t i = 0; i < plan.dep_counts.size(); ++i) {
      waiting_[i].store(plan.dep_counts[i], std::memory_order_relaxed);
    }
  }

  void Run(const RunContext& context) override {
    context_ = context;
    unfinished_.store(static_cast<int32_t>(plan_.dep_counts.size()), std::memory_order_relaxed);
    // The pushes below publish all this to the workers.
    InstrId mine = -1;
    for (const InstrId root : roots_) Keep(root, /*on_device=*/false, mine);
    if (mine >= 0) RunFrom(mine, context.worker);
    if (nested_) {
      host_queue_.HelpUntilZero(host_lane_, unfinished_, context.worker);
    } else {
      host_queue_.HelpUntilZero(unfinished_);
    }
  }

 private:
  // Keeps the better of `id` and `mine` for this thread and gives the other to its queue.
  // `on_device`: whether this is the thread that launches.
  void Keep(InstrId id, bool on_device, InstrId& mine) {
    if (on_device_[id] != on_device) {
      Push(id);
    } else if (mine < 0) {
      mine = id;
    } else {
      if (priorities_[id] < priorities_[mine]) std::swap(id, mine);
      Push(id);
    }
  }

  void Push(InstrId id) {
    const Task task{.run = on_device_[id] ? &AsyncScheduler::LaunchTask : &AsyncScheduler::RunTask,
                    .context = this,
                    .argument = id,
                    .priority = priorities_[id]};
    if (on_device_[id]) {
      device_queue_.Push(device_lane_, task);
    } else {
      host_queue_.Push(host_lane_, task);
    }
  }

  static void RunTask(void* context, int32_t id, int worker) {
    static_cast<AsyncScheduler*>(context)->RunFrom(id, worker);
  }
  // The launching thread comes after the host's.
  static void LaunchTask(void* context, int32_t id, int /*worker*/) {
    auto* scheduler = static_cast<AsyncScheduler*>(context);
    scheduler->RunFrom(id, scheduler->num_workers_);
  }

  // Runs `id` and then whatever it makes ready that stays here.
  void RunFrom(InstrId id, int worker) {
    const RunContext context{
        .infer_all = context_.infer_all, .observer = context_.observer, .worker = worker};
    const bool on_device = on_device_[id];
    int32_t finished = 0;
    while (id >= 0) {
      RunOne(parts_, id, context);
      parts_.collector->After(id, context.observer, worker);
      InstrId mine = -1;
      for (const InstrId next : plan_.successors[id]) {
        if (IsReady(next)) Keep(next, on_device, mine);
      }
      id = mine;
      ++finished;
    }
    // Once for all of them: nobody waits for less than zero. The caller of Run may return, and
    // destroy this, as soon as it sees zero; the queue outlives all its schedulers.
    WorkQueue& queue = host_queue_;
    if (unfinished_.fetch_sub(finished, std::memory_order_acq_rel) == finished) queue.WakeAll();
  }

  // Whether the predecessor that has just finished was the last one.
  bool IsReady(InstrId id) {
    const int32_t count = plan_.dep_counts[id];
    if (count == 1) return true;  // a sole predecessor has nobody to race with
    // acq_rel: whoever takes the count to zero sees what all predecessors wrote.
    if (waiting_[id].fetch_sub(1, std::memory_order_acq_rel) > 1) return false;
    waiting_[id].store(count, std::memory_order_relaxed);  // for the next activation
    return true;
  }

  const Plan& plan_;
  const RunParts parts_;
  const int num_workers_;
  const bool nested_;
  const std::vector<InstrId> roots_;
  const std::vector<int32_t> priorities_;
  std::vector<bool> on_device_;  // by InstrId
  RunContext context_;
  std::unique_ptr<std::atomic<int32_t>[]> waiting_;  // by InstrId; predecessors left
  std::atomic<int32_t> unfinished_{0};
  WorkQueue& host_queue_;
  WorkQueue& device_queue_;
  TaskLane host_lane_;
  TaskLane device_lane_;
};

}  // namespace

namespace {

absl::StatusOr<std::unique_ptr<WorkQueue>> MakeQueue(const char* name, int num_threads) {
  try {
    return std::make_unique<WorkQueue>(WorkQueueOptions{.name = name, .num_threads = num_threads});
  } catch (const std::system_error& e) {
    return ResourceExhausted("cannot start ", num_threads, " threads of queue '", name,
                             "': ", e.what(), "; expected fewer workers, or more threads allowed");
  }
}

}  // namespace

absl::StatusOr<SchedulerThreads> MakeSchedulerThreads(const SchedulerOptions& options,
                                                      bool with_devices) {
  SchedulerThreads threads;
  if (options.kind == SchedulerKind::kAsync) {
    INTERP_ASSIGN_OR_RETURN(threads.host, MakeQueue("host", options.num_workers - 1));
    INTERP_ASSIGN_OR_RETURN(threads.device, MakeQueue("device", with_devices ? 1 : 0));
  } else if (options.kind == SchedulerKind::kEngine) {
    INTERP_ASSIGN_OR_RETURN(threads.engine,
                            MakeSchedulerEngine(options.engine_policy, options.num_workers));
  }
  return threads;
}

namespace {

// Whether instructions outnumber the critical path by half: else running side by side cannot pay.
bool IsWide(const Plan& plan) {
  return static_cast<int64_t>(plan.instructions.size()) * 2 >=
         static_cast<int64_t>(plan.critical_path) * 3;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Scheduler>> MakeScheduler(const SchedulerOptions& options,
                                                         const Plan& plan, const RunParts& parts,
                                                         SchedulerThreads& threads, bool nested) {
  std::unique_ptr<Scheduler> scheduler;
  const bool in_place = nested && (options.num_workers == 1 || !IsWide(plan));
  switch (options.kind) {
    case SchedulerKind::kSerial:
      scheduler = std::make_unique<SerialScheduler>(plan, parts, std::nullopt);
      break;
    case SchedulerKind::kShuffle:
      scheduler = std::make_unique<SerialScheduler>(plan, parts, options.seed);
      break;
    case SchedulerKind::kAsync:
      if (in_place) break;
      scheduler =
          std::make_unique<AsyncScheduler>(plan, parts, options.num_workers, threads, nested);
      break;
    case SchedulerKind::kEngine:
      if (in_place) break;
      return MakeEngineScheduler(plan, parts, *threads.engine, nested);
    default:
      break;
  }
  if (scheduler == nullptr) scheduler = std::make_unique<TraceScheduler>(plan, parts);
  return scheduler;
}

SchedulerKind ResolveScheduler(SchedulerKind kind, const Plan& plan, int num_workers) {
  if (kind != SchedulerKind::kAuto) return kind;
  return num_workers > 1 && IsWide(plan) ? SchedulerKind::kAsync : SchedulerKind::kTrace;
}

}  // namespace interp
