#include "core/machine/openmp_team.h"

#include <thread>
#include <vector>

#include "core/base/catching.h"
#include "core/machine/distinct_cpus.h"

namespace interp {
namespace {

RunOnTeamFn& TeamFn() {
  static RunOnTeamFn run = RunOnThreads;
  return run;
}

}  // namespace

void RunOnThreads(int num_threads, absl::FunctionRef<void()> body) {
  DistinctCpus cpus;
  std::vector<std::thread> threads;
  const auto work = [&cpus, body] {
    cpus.Take();
    body();
  };
  const absl::Status started = Catching([&] {
    threads.reserve(static_cast<size_t>(num_threads));
    for (int i = 1; i < num_threads; ++i) threads.emplace_back(work);
    return absl::OkStatus();
  });
  started.IgnoreError();  // the threads that started do the work
  cpus.Await(static_cast<int>(threads.size()));
  body();
  for (std::thread& thread : threads) thread.join();
}

void RunOnTeam(int num_threads, absl::FunctionRef<void()> body) { TeamFn()(num_threads, body); }

bool ProvideTeam(RunOnTeamFn run) {
  TeamFn() = run;
  return true;
}

}  // namespace interp
