#include "core/device/sim_clock.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace interp {

void SimClock::Launch(int stream, WorkKind kind, const Work& work) {
  StreamClock& clock = streams_[stream];
  if (!clock.timed) return;
  host_ns_ += options_.launch_ns;
  const int64_t start = std::max(clock.ns, host_ns_);
  clock.ns = start + DurationNs(kind, work);
  if (!tracing_) return;
  spans_.push_back({.stream = stream,
                    .tag = work.tag,
                    .kind = kind,
                    .start_ns = start - trace_start_ns_,
                    .end_ns = clock.ns - trace_start_ns_,
                    .bytes = work.bytes});
}

int64_t SimClock::DurationNs(WorkKind kind, const Work& work) const {
  constexpr double kLongest = 1e15;  // eleven days; keeps sums far from overflow
  const bool crosses = kind == WorkKind::kHostToDevice || kind == WorkKind::kDeviceToHost ||
                       kind == WorkKind::kPeerToPeer;
  const double rate = crosses ? options_.copy_bytes_per_s : options_.memory_bytes_per_s;
  const double moving = static_cast<double>(work.bytes) / rate;
  const double computing = static_cast<double>(work.flops) / options_.flops_per_s;
  const double busy_ns = std::clamp(1e9 * std::max(moving, computing), 0.0, kLongest);
  return options_.latency_ns + static_cast<int64_t>(std::llround(busy_ns));
}

void SimClock::Wait(int stream, int64_t until_ns) {
  streams_[stream].ns = std::max(streams_[stream].ns, until_ns);
}

void SimClock::HostWait(int64_t until_ns) { host_ns_ = std::max(host_ns_, until_ns); }

void SimClock::StartTrace() {
  tracing_ = true;
  trace_start_ns_ = host_ns_;
  spans_.clear();
}

std::vector<DeviceSpan> SimClock::StopTrace() {
  tracing_ = false;
  std::stable_sort(spans_.begin(), spans_.end(), [](const DeviceSpan& a, const DeviceSpan& b) {
    return a.start_ns < b.start_ns;
  });
  return std::exchange(spans_, {});
}

}  // namespace interp
