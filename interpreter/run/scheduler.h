// Schedulers: run the instructions of a plan, each once, in an order its edges allow.
//
//   trace   Plan::order on the calling thread: no counters, no atomics
//   serial  dependency counts on the calling thread; of the ready instructions the one with the
//           lowest priority value runs, then the first in the program
//   async   dependency counts on several threads; see below
//   engine  the dependency engine (core/engine), which finds the order anew in every run from what
//           each instruction reads and writes; see engine_scheduler.h
//   shuffle as serial, but with priorities drawn from a seed in every run: for finding orders that
//           a plan lacks
//
// All give the same bits, since every conflict between instructions is an edge.
//
// async: the thread that finishes an instruction lowers the counts of its successors. The best of
// those that become ready it runs itself; the others go to the work queue, where an idle thread
// takes them. So a chain never leaves its thread, and costs little more than trace. The calling
// thread takes part as worker 0.
//
// Work of a device is launched, not waited for: an instruction of a device counts as finished when
// its stream has it. Under async one thread of its own launches all of it (the device queue), while
// the host queue's threads may block for results.
//
// Blocks within blocks: an instruction that runs a block runs that block's scheduler on its own
// thread. Schedulers of one core share threads, so a body that is wide spreads over the same work
// queues or the same engine; one that is not runs in trace order where it is.
//
// Errors: the first failure is kept in the RunControl. Instructions not yet started are then
// skipped but still counted, so that every activation drains and returns.
#pragma once

#include <memory>
#include <string>

#include "core/engine/engine.h"
#include "core/status.h"
#include "interpreter/plan/plan.h"
#include "interpreter/run/run_one.h"
#include "interpreter/run/scheduler_kind.h"
#include "interpreter/run/work_queue.h"

namespace interp {

// Thread-safety: one Run at a time. A warm Run allocates nothing.
class Scheduler {
 public:
  virtual ~Scheduler() = default;
  // Runs every instruction, or until the control says stop. `context.worker` is the calling thread.
  virtual void Run(const RunContext& context) = 0;
};

// The threads that the schedulers of a core share; null where the kind of scheduler needs none.
struct SchedulerThreads {
  std::unique_ptr<WorkQueue> host;
  std::unique_ptr<WorkQueue> device;  // one thread, which launches all work of devices
  std::unique_ptr<engine::Engine> engine;
};

struct SchedulerOptions {
  SchedulerKind kind = SchedulerKind::kTrace;  // not kAuto; see ResolveScheduler
  int num_workers = 1;  // kAsync, kEngine: threads for the host's instructions
  engine::PolicyKind engine_policy = engine::PolicyKind::kPerDevice;  // kEngine
  uint64_t seed = 0;                                                  // kShuffle
  bool graphs = false;  // of the main block, kTrace: see graph_scheduler.h
};
// Fails for kEngine alone, when there cannot be an engine with so many workers.
absl::StatusOr<SchedulerThreads> MakeSchedulerThreads(const SchedulerOptions& options,
                                                      bool with_devices);

// `nested`: for a block that an op runs. Borrows `threads`.
absl::StatusOr<std::unique_ptr<Scheduler>> MakeScheduler(const SchedulerOptions& options,
                                                         const Plan& plan, const RunParts& parts,
                                                         SchedulerThreads& threads, bool nested);

// What kAuto means for a plan: kAsync with more than one worker when the plan's instructions
// outnumber its critical path by half, else kTrace.
SchedulerKind ResolveScheduler(SchedulerKind kind, const Plan& plan, int num_workers);

}  // namespace interp
