#include "core/comm/short_slice.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace interp {
namespace {

constexpr uint64_t kSliceNs = 100'000;  // the least that Linux takes

// The kernel's struct sched_attr in its first version (uapi/linux/sched/types.h), which the C
// library of Debian 12 does not have.
struct SchedulerAttributes {
  uint32_t size;
  uint32_t policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime_ns;  // of SCHED_OTHER: the slice
  uint64_t deadline_ns;
  uint64_t period_ns;
};
static_assert(sizeof(SchedulerAttributes) == 48);

}  // namespace

void AskForShortSlice() {
  SchedulerAttributes attributes = {};
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) != 0) return;
  if (attributes.policy != SCHED_OTHER) return;
  attributes.size = sizeof(attributes);
  attributes.runtime_ns = kSliceNs;
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace interp
