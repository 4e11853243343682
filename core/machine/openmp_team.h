// The OpenMP threads that a thread shares with oneDNN and with the embedding program's own parallel
// regions: what it knows of them, and a way to work on them that needs no OpenMP.
#pragma once

#include "absl/functional/function_ref.h"

namespace interp {

struct OpenMpTeam {
  // So many threads flush denormal numbers (kernels/util/flush_denormals.h), the calling one among
  // them.
  int flushing = 1;
  // The thread does whole loops by itself: it is one of several that prepare kernels.
  bool alone = false;
};

// That of the calling thread. A run makes it anew: regions of the embedding program may have
// started other threads since the last.
inline OpenMpTeam& ThisTeam() {
  thread_local OpenMpTeam team;
  return team;
}

// Calls `body` once on each of up to `num_threads` threads, the calling one among them; the others
// are new and begin on CPUs of their own (distinct_cpus.h). `body` must not throw.
void RunOnThreads(int num_threads, absl::FunctionRef<void()> body);

// The same on the OpenMP threads of the calling one, which ops work on next, where kernels are
// linked (kernels/util/parallel_for.cc).
void RunOnTeam(int num_threads, absl::FunctionRef<void()> body);

// What RunOnTeam calls: the library of kernels knows OpenMP, this one does not.
using RunOnTeamFn = void (*)(int num_threads, absl::FunctionRef<void()> body);

// Has RunOnTeam call `run`. For static initialization: not thread-safe, and true for the variable
// that is initialized.
bool ProvideTeam(RunOnTeamFn run);

}  // namespace interp
