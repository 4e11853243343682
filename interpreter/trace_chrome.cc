#include <algorithm>
#include <map>

#include "core/trace_events.h"
#include "interpreter/instruction_name.h"
#include "interpreter/trace.h"

namespace interp {
namespace {

constexpr int kNoSpan = -1;

class ChromeTrace {
 public:
  ChromeTrace(const RunTrace& trace, const Plan& plan, absl::Span<Variable* const> variables)
      : trace_(trace), plan_(plan), variables_(variables), freed_(plan.instructions.size()) {
    for (size_t var = 0; var < trace.freed_after.size(); ++var) {
      const InstrId after = trace.freed_after[var];
      if (after >= 0) freed_[after].push_back(static_cast<VarId>(var));
    }
  }

  std::string Write() && {
    WriteHost();
    WriteMemory();
    WriteHostArrows();
    for (size_t i = 0; i < trace_.devices.size(); ++i) WriteDevice(static_cast<int>(i));
    return std::move(events_).Take();
  }

 private:
  int64_t OfRun(int64_t steady_ns) const { return steady_ns - trace_.start_ns; }

  void WriteHost() {
    int workers = 1;
    for (const RunTrace::Execution& e : trace_.executions)
      workers = std::max(workers, e.worker + 1);
    for (const RunTrace::Wait& w : trace_.waits) workers = std::max(workers, w.worker + 1);
    events_.NameProcess("host", {});
    for (int i = 0; i < workers; ++i) {
      events_.NameThread(absl::StrCat("worker ", i), {.thread = i});
    }
    for (size_t id = 0; id < trace_.executions.size(); ++id) {
      WriteExecution(static_cast<InstrId>(id));
    }
    for (const RunTrace::Wait& wait : trace_.waits) WriteWait(wait);
  }

  void WriteExecution(InstrId id) {
    const RunTrace::Execution& execution = trace_.executions[id];
    if (execution.worker < 0) return;
    const Instruction& instruction = plan_.instructions[id];
    const bool launch = !instruction.place.on_host();
    events_.BeginSlice(launch ? absl::StrCat("launch ", instruction.op_type) : instruction.op_type,
                       launch ? "launch" : "op", {.thread = execution.worker},
                       OfRun(execution.start_ns), OfRun(execution.end_ns));
    WriteFacts(id);
    events_.EndSlice();
  }

  void WriteWait(const RunTrace::Wait& wait) {
    const bool for_event = wait.event >= 0;
    const InstrId recorder = for_event ? plan_.events[wait.event].recorder : -1;
    events_.BeginSlice(recorder >= 0
                           ? absl::StrCat("wait for ", NameOf(plan_.instructions[recorder]))
                           : "wait for devices",
                       "wait", {.thread = wait.worker}, OfRun(wait.start_ns), OfRun(wait.end_ns));
    if (for_event) json_.Field("event", wait.event);
    if (wait.instruction >= 0) {
      json_.Field("waiting", NameOf(plan_.instructions[wait.instruction]));
    }
    events_.EndSlice();
  }

  // What does not depend on when it ran.
  void WriteFacts(InstrId id) {
    const Instruction& instruction = plan_.instructions[id];
    json_.Field("instruction", id);
    if (instruction.op_index >= 0) json_.Field("op", instruction.op_index);
    if (instruction.dtype != DType::kUndefined) json_.Field("kernel", Name(instruction.dtype));
    WriteSlots("inputs", instruction.def->inputs, instruction.input_counts, instruction.inputs);
    WriteSlots("outputs", instruction.def->outputs, instruction.output_counts, instruction.outputs);
    if (!freed_[id].empty()) {
      json_.Key("frees");
      json_.BeginArray();
      for (const VarId var : freed_[id]) json_.Value(Describe(var));
      json_.EndArray();
    }
  }

  void WriteSlots(absl::string_view key, const std::vector<SlotDef>& slots,
                  const std::vector<int32_t>& counts, const std::vector<VarId>& vars) {
    json_.Key(key);
    json_.BeginObject();
    size_t arg = 0;
    for (size_t slot = 0; slot < counts.size(); ++slot) {
      if (counts[slot] == 0) continue;
      std::string text;
      for (int32_t i = 0; i < counts[slot]; ++i, ++arg) {
        if (vars[arg] < 0) continue;
        absl::StrAppend(&text, text.empty() ? "" : ", ", Describe(vars[arg]));
      }
      json_.Field(slots[slot].name, text);
    }
    json_.EndObject();
  }

  // "x float32[2,3]"
  std::string Describe(VarId id) const {
    const PlanVar& var = plan_.vars[id];
    const bool tensor = var.kind == VarKind::kLodTensor && !variables_.empty();
    return tensor ? absl::StrCat(var.name, " ", DescribeType(variables_[id]->tensor)) : var.name;
  }

  void WriteMemory() {
    struct Sample {
      int64_t at_ns;
      uint64_t host_bytes, device_bytes;
    };
    std::vector<Sample> samples;
    for (const RunTrace::Execution& e : trace_.executions) {
      if (e.worker < 0) continue;
      samples.push_back({e.start_ns, e.host_bytes[0], e.device_bytes[0]});
      samples.push_back({e.end_ns, e.host_bytes[1], e.device_bytes[1]});
    }
    std::stable_sort(samples.begin(), samples.end(),
                     [](const Sample& a, const Sample& b) { return a.at_ns < b.at_ns; });
    for (const Sample& sample : samples) {
      events_.Begin("C", "memory in use", {}, OfRun(sample.at_ns));
      json_.Key("args");
      json_.BeginObject();
      json_.Field("host bytes", sample.host_bytes);
      if (!trace_.devices.empty()) json_.Field("device bytes", sample.device_bytes);
      events_.EndSlice();
    }
  }

  // From the end of one slice to the start of another. A viewer takes the end of an arrow for the
  // slice that is open at its time, so it starts within the first one.
  void WriteArrow(const Edge& edge, TraceLane from, int64_t from_start_ns, int64_t from_end_ns,
                  TraceLane to, int64_t to_start_ns) {
    const int64_t at_ns = std::max(from_start_ns, from_end_ns - 1);
    const std::string name = edge.var >= 0
                                 ? absl::StrCat(Name(edge.kind), " ", plan_.vars[edge.var].name)
                                 : std::string(Name(edge.kind));
    for (const bool start : {true, false}) {
      events_.Begin(start ? "s" : "f", name, start ? from : to, start ? at_ns : to_start_ns);
      json_.Field("cat", "dependency");
      json_.Field("id", num_arrows_);
      if (!start) json_.Field("bp", "e");
      json_.EndObject();
    }
    ++num_arrows_;
  }

  void WriteHostArrows() {
    if (trace_.executions.empty()) return;  // nothing has run
    for (const Edge& edge : plan_.edges) {
      const RunTrace::Execution& from = trace_.executions[edge.from];
      const RunTrace::Execution& to = trace_.executions[edge.to];
      if (edge.shrunk || from.worker < 0 || to.worker < 0 || from.worker == to.worker) continue;
      WriteArrow(edge, {.thread = from.worker}, OfRun(from.start_ns), OfRun(from.end_ns),
                 {.thread = to.worker}, OfRun(to.start_ns));
    }
  }

  void WriteDevice(int index) {
    const RunTrace::OnDevice& on_device = trace_.devices[index];
    const int process = TraceLane().process + 1 + index;
    const bool simulated = on_device.place.kind == PlaceKind::kSim;
    const int64_t offset_ns = simulated ? 0 : OfRun(on_device.start_ns);
    events_.NameProcess(absl::StrCat(Name(on_device.place), simulated ? " (simulated time)" : ""),
                        {.process = process});
    std::vector<int> span_of(plan_.instructions.size(), kNoSpan);
    std::map<int32_t, std::string> lanes;  // by Stream::index
    for (size_t i = 0; i < on_device.spans.size(); ++i) {
      const DeviceSpan& span = on_device.spans[i];
      if (span.kind == WorkKind::kFill) continue;  // poison, which takes no time
      const bool known = span.tag >= 0 && span.tag < static_cast<int32_t>(span_of.size());
      std::string& lane = lanes.try_emplace(span.stream).first->second;
      if (known) {
        span_of[span.tag] = static_cast<int>(i);
        lane = plan_.streams[plan_.instructions[span.tag].stream].name;
      }
      WriteSpan(span, known, process, offset_ns);
    }
    for (const auto& [stream, name] : lanes) {
      events_.NameThread(name.empty() ? absl::StrCat("stream ", stream) : name, {process, stream});
    }
    WriteDeviceArrows(on_device.spans, span_of, process, offset_ns);
  }

  void WriteSpan(const DeviceSpan& span, bool known, int process, int64_t offset_ns) {
    const absl::string_view name =
        known ? absl::string_view(plan_.instructions[span.tag].op_type) : Name(span.kind);
    events_.BeginSlice(name, Name(span.kind), {process, span.stream}, offset_ns + span.start_ns,
                       offset_ns + span.end_ns);
    if (span.bytes > 0) json_.Field("bytes", span.bytes);
    if (known) WriteFacts(span.tag);
    events_.EndSlice();
  }

  void WriteDeviceArrows(const std::vector<DeviceSpan>& spans, const std::vector<int>& span_of,
                         int process, int64_t offset_ns) {
    for (const Edge& edge : plan_.edges) {
      if (edge.shrunk || span_of[edge.from] == kNoSpan || span_of[edge.to] == kNoSpan) continue;
      const DeviceSpan& from = spans[span_of[edge.from]];
      const DeviceSpan& to = spans[span_of[edge.to]];
      if (from.stream == to.stream) continue;
      WriteArrow(edge, {process, from.stream}, offset_ns + from.start_ns, offset_ns + from.end_ns,
                 {process, to.stream}, offset_ns + to.start_ns);
    }
  }

  const RunTrace& trace_;
  const Plan& plan_;
  const absl::Span<Variable* const> variables_;
  std::vector<std::vector<VarId>> freed_;  // by InstrId
  int64_t num_arrows_ = 0;
  TraceEvents events_;
  JsonWriter& json_ = events_.json();
};

}  // namespace

std::string ToChromeTrace(const RunTrace& trace, const Plan& plan,
                          absl::Span<Variable* const> variables) {
  return ChromeTrace(trace, plan, variables).Write();
}

}  // namespace interp
