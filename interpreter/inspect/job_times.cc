#include "interpreter/inspect/job_times.h"

#include <algorithm>
#include <map>
#include <utility>

#include "passes/train/micro_batches.h"

namespace interp {
namespace {

struct Interval {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

// Where intervals overlap counts once.
int64_t LengthWithin(std::vector<Interval> intervals, Interval window) {
  std::sort(intervals.begin(), intervals.end(),
            [](const Interval& a, const Interval& b) { return a.start_ns < b.start_ns; });
  int64_t length = 0;
  int64_t at = window.start_ns;
  for (const Interval& interval : intervals) {
    const int64_t start = std::max(interval.start_ns, at);
    const int64_t end = std::min(interval.end_ns, window.end_ns);
    if (end <= start) continue;
    length += end - start;
    at = end;
  }
  return length;
}

class Collector {
 public:
  Collector(const Plan& plan, const Program& program) : plan_(plan), program_(program) {}

  void Add(InstrId id, Interval interval) {
    const Instruction& instruction = plan_.instructions[id];
    if (instruction.op_index < 0) return;
    const Op& op = program_.blocks[0].ops[instruction.op_index];
    const Attr* const attr = op.FindAttr(kStageAttr);
    const auto* const stage = attr == nullptr ? nullptr : std::get_if<int32_t>(&attr->value);
    if (stage == nullptr || *stage < 0 || *stage >= kMaxSegments) return;
    if (*stage >= std::ssize(busy_)) busy_.resize(*stage + 1);
    busy_[*stage].push_back(interval);
    places_[*stage] = instruction.place;
    const Attr* const job = op.FindAttr(kJobAttr);
    const auto* const name = job == nullptr ? nullptr : std::get_if<std::string>(&job->value);
    if (name == nullptr) return;
    Interval& whole = jobs_.try_emplace({*stage, *name}, interval).first->second;
    whole.start_ns = std::min(whole.start_ns, interval.start_ns);
    whole.end_ns = std::max(whole.end_ns, interval.end_ns);
  }

  std::optional<PipelineTimes> Take() && {
    if (jobs_.empty()) return std::nullopt;
    PipelineTimes times;
    Interval window = jobs_.begin()->second;
    for (const auto& [key, interval] : jobs_) {
      window.start_ns = std::min(window.start_ns, interval.start_ns);
      window.end_ns = std::max(window.end_ns, interval.end_ns);
      times.jobs.push_back({.name = key.second,
                            .stage = key.first,
                            .start_ns = interval.start_ns,
                            .end_ns = interval.end_ns});
    }
    std::stable_sort(times.jobs.begin(), times.jobs.end(),
                     [](const JobTime& a, const JobTime& b) { return a.start_ns < b.start_ns; });
    int64_t busy_ns = 0;
    for (size_t stage = 0; stage < busy_.size(); ++stage) {
      times.stages.push_back({.place = places_[static_cast<int32_t>(stage)],
                              .busy_ns = LengthWithin(std::move(busy_[stage]), window)});
      busy_ns += times.stages.back().busy_ns;
    }
    times.start_ns = window.start_ns;
    times.end_ns = window.end_ns;
    const double all_ns = static_cast<double>(window.end_ns - window.start_ns) *
                          static_cast<double>(times.stages.size());
    times.bubble = all_ns > 0 ? 1 - static_cast<double>(busy_ns) / all_ns : 0;
    return times;
  }

 private:
  const Plan& plan_;
  const Program& program_;
  std::vector<std::vector<Interval>> busy_;  // by stage
  std::map<int32_t, Place> places_;          // by stage
  std::map<std::pair<int32_t, std::string>, Interval> jobs_;
};

}  // namespace

int64_t SimulatedOffsetNs(const RunTrace& trace, const RunTrace::OnDevice& device) {
  int64_t first = device.device_start_ns;
  for (const RunTrace::OnDevice& other : trace.devices) {
    if (other.place.kind == PlaceKind::kSim) first = std::min(first, other.device_start_ns);
  }
  return device.device_start_ns - first;
}

std::optional<PipelineTimes> TimesOfJobs(const RunTrace& trace, const Plan& plan,
                                         const Program& program) {
  Collector on_devices(plan, program);
  const auto count = static_cast<int32_t>(plan.instructions.size());
  for (const RunTrace::OnDevice& device : trace.devices) {
    if (device.place.kind != PlaceKind::kSim) continue;
    const int64_t offset = SimulatedOffsetNs(trace, device);
    for (const DeviceSpan& span : device.spans) {
      if (span.kind != WorkKind::kKernel || span.tag < 0 || span.tag >= count) continue;
      on_devices.Add(span.tag, {offset + span.start_ns, offset + span.end_ns});
    }
  }
  std::optional<PipelineTimes> times = std::move(on_devices).Take();
  if (times.has_value()) {
    times->simulated = true;
    return times;
  }
  Collector on_host(plan, program);
  for (InstrId id = 0; id < std::min(count, static_cast<int32_t>(trace.executions.size())); ++id) {
    const RunTrace::Execution& execution = trace.executions[id];
    if (execution.worker < 0) continue;
    on_host.Add(id, {execution.start_ns - trace.start_ns, execution.end_ns - trace.start_ns});
  }
  return std::move(on_host).Take();
}

}  // namespace interp
