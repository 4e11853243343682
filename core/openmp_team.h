// What a thread knows of the OpenMP threads that it shares with oneDNN and with the embedding
// program's own parallel regions.
#pragma once

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

}  // namespace interp
