#include "kernels/util/parallel_for.h"

#include <omp.h>

#include "core/machine/distinct_cpus.h"
#include "core/machine/openmp_team.h"
#include "kernels/util/flush_denormals.h"

namespace interp {

namespace {

// Of the calling thread's OpenMP threads so many have begun on CPUs of their own.
thread_local int num_placed = 1;

void OnEachThread(int num_threads, absl::FunctionRef<void()> body) {
  int& placed = num_placed;
  const bool place = num_threads > placed;
  DistinctCpus cpus;
#pragma omp parallel num_threads(num_threads)
  {
    if (place && omp_get_thread_num() > 0) cpus.Take();
    if (place && omp_get_thread_num() == 0) {
      placed = omp_get_num_threads();  // a nested region has fewer than it asks for
      cpus.Await(placed - 1);
    }
    body();
  }
}

// The threads compute with denormal numbers as the calling one does.
void RunOnOpenMpTeam(int num_threads, absl::FunctionRef<void()> body) {
  const FloatMode mode;
  OnEachThread(num_threads, [&] {
    const FloatMode::Scope scope(mode);
    body();
  });
}

[[maybe_unused]] const bool kProvided = ProvideTeam(RunOnOpenMpTeam);

}  // namespace

void FlushDenormalsInTeam(int num_threads) {
  int& flushing = ThisTeam().flushing;
  if (num_threads <= flushing || ThisTeam().alone) return;
  flushing = num_threads;
  OnEachThread(num_threads, [] {
    if (omp_get_thread_num() > 0) FlushDenormals::InThisThread();
  });
}

void ParallelForRanges(int num_threads, int64_t n, int64_t grain, const void* body,
                       void (*call)(const void* body, int64_t begin, int64_t end)) {
  const int64_t ranges = CountRanges(num_threads, n, grain);
  if (ranges == 1) {
    if (n > 0) call(body, 0, n);
    return;
  }
  if (ThisTeam().alone) {
    for (int64_t c = 0; c < ranges; ++c) call(body, n * c / ranges, n * (c + 1) / ranges);
    return;
  }
  const FloatMode mode;
  // Threads that this region starts inherit it, and the pool may lend them to oneDNN next.
  const FlushDenormals flush;
#pragma omp parallel for num_threads(static_cast <int>(ranges)) schedule(static, 1)
  for (int64_t c = 0; c < ranges; ++c) {
    const FloatMode::Scope scope(mode);
    call(body, n * c / ranges, n * (c + 1) / ranges);
  }
}

}  // namespace interp
