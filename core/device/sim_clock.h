// SimClock: the time of a simulated device, computed from the order in which work is enqueued.
//
// Each stream has a clock, that of its last work's end, and so has the host. Nothing here looks at
// real time or at what has run, so with one launching thread times are the same in every run.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/device/sim_device.h"

namespace interp {

// Thread-safety: none; the device's lock is held.
class SimClock {
 public:
  explicit SimClock(const SimOptions& options) : options_(options) {}

  // Streams that are not `timed` take no time and their records stand for time 0.
  void OpenStream(int stream, bool timed) { streams_[stream] = {.timed = timed}; }
  // The host launches a kernel or a copy.
  void Launch(int stream, WorkKind kind, const Work& work);
  // The time that a record stands for.
  int64_t RecordTime(int stream) const { return streams_[stream].timed ? streams_[stream].ns : 0; }
  void Wait(int stream, int64_t until_ns);
  void HostWait(int64_t until_ns);
  int64_t host_ns() const { return host_ns_; }

  void StartTrace();
  // By start.
  std::vector<DeviceSpan> StopTrace();

 private:
  struct StreamClock {
    int64_t ns = 0;
    bool timed = true;
  };

  int64_t DurationNs(WorkKind kind, const Work& work) const;

  const SimOptions options_;
  std::array<StreamClock, kMaxStreams> streams_ = {};
  int64_t host_ns_ = 0;
  bool tracing_ = false;
  int64_t trace_start_ns_ = 0;
  std::vector<DeviceSpan> spans_;
};

}  // namespace interp
