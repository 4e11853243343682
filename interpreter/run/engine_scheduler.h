// EngineScheduler: the instructions of a plan as operations of the dependency engine.
//
// Each instruction is recorded once, with the variables and the shared storages it reads and
// writes, and pushed in program order in every run: the engine finds anew who waits for whom, where
// the other schedulers follow the edges that the analysis found once. Edges that are no hazards of
// memory (the order within a stream, say) are variables too, that their first end writes and their
// second reads. What launches work of devices runs on one thread of its own.
#pragma once

#include <memory>

#include "interpreter/run/scheduler.h"

namespace interp {

// An engine for the schedulers of one core: `num_workers` threads run the host's instructions,
// whichever thread calls Run. InvalidArgument for more workers than an engine has.
absl::StatusOr<std::unique_ptr<engine::Engine>> MakeSchedulerEngine(engine::PolicyKind policy,
                                                                    int num_workers);

// `nested`: for a block that an op runs. Its operations are pushed by an operation of the engine,
// which waits for them. Borrows the engine.
absl::StatusOr<std::unique_ptr<Scheduler>> MakeEngineScheduler(const Plan& plan,
                                                               const RunParts& parts,
                                                               engine::Engine& engine, bool nested);

}  // namespace interp
