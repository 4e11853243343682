#include <algorithm>
#include <map>

#include "core/base/trace_events.h"
#include "core/comm/communicator.h"
#include "interpreter/inspect/job_times.h"
#include "interpreter/inspect/trace.h"
#include "interpreter/plan/instruction_name.h"

namespace interp {
namespace {

constexpr int kNoSpan = -1;
constexpr absl::string_view kHiddenSlot = "sub-block";  // of hidden arguments

class ChromeTrace {
 public:
  using VariablesOf = absl::FunctionRef<absl::Span<Variable* const>(int32_t block)>;

  ChromeTrace(const RunTrace& trace, absl::Span<const Plan> plans, VariablesOf variables)
      : trace_(trace), plans_(plans), plan_(plans[0]), freed_(plans[0].instructions.size()) {
    for (const Plan& plan : plans) variables_.push_back(variables(plan.block));
    for (size_t var = 0; var < trace.freed_after.size(); ++var) {
      const InstrId after = trace.freed_after[var];
      if (after >= 0) freed_[after].push_back(static_cast<VarId>(var));
    }
  }

  // `times`: of the jobs, if there are any.
  std::string Write(const std::optional<PipelineTimes>& times) && {
    WriteHost();
    WriteComm();
    WriteMemory();
    WriteHostArrows();
    for (size_t i = 0; i < trace_.devices.size(); ++i) WriteDevice(static_cast<int>(i));
    if (times.has_value()) WriteJobs(*times);
    return std::move(events_).Take();
  }

 private:
  int64_t OfRun(int64_t steady_ns) const { return steady_ns - trace_.start_ns; }

  void WriteHost() {
    int workers = 1;
    for (const RunTrace::Execution& e : trace_.executions)
      workers = std::max(workers, e.worker + 1);
    for (const RunTrace::Nested& n : trace_.nested) {
      workers = std::max(workers, n.execution.worker + 1);
    }
    for (const RunTrace::Wait& w : trace_.waits) workers = std::max(workers, w.worker + 1);
    events_.NameProcess("host", {});
    for (int i = 0; i < workers; ++i) {
      events_.NameThread(absl::StrCat("worker ", i), {.thread = i});
    }
    for (size_t id = 0; id < trace_.executions.size(); ++id) {
      WriteExecution(static_cast<int32_t>(id), trace_.executions[id]);
    }
    for (const RunTrace::Nested& nested : trace_.nested) {
      WriteExecution(nested.instruction, nested.execution);
    }
    for (const RunTrace::Wait& wait : trace_.waits) WriteWait(wait);
  }

  void WriteExecution(int32_t number, const RunTrace::Execution& execution) {
    if (execution.worker < 0) return;
    const InstrRef ref = FindInstruction(plans_, number);
    const Instruction& instruction = ref.plan->instructions[ref.id];
    const bool launch = !instruction.place.on_host();
    events_.BeginSlice(
        launch ? absl::StrCat("launch ", instruction.op_type) : std::string(instruction.op_type),
        launch ? "launch" : "op", {.thread = execution.worker}, OfRun(execution.start_ns),
        OfRun(execution.end_ns));
    WriteFacts(ref);
    events_.EndSlice();
  }

  void WriteWait(const RunTrace::Wait& wait) {
    const InstrRef ref = FindInstruction(plans_, wait.instruction);
    const bool for_event = wait.event >= 0 && ref.plan != nullptr;
    const InstrId recorder = for_event ? ref.plan->events[wait.event].recorder : -1;
    events_.BeginSlice(recorder >= 0
                           ? absl::StrCat("wait for ", NameOf(ref.plan->instructions[recorder]))
                           : "wait for devices",
                       "wait", {.thread = wait.worker}, OfRun(wait.start_ns), OfRun(wait.end_ns));
    if (for_event) json_.Field("event", wait.event);
    if (ref.plan != nullptr) json_.Field("waiting", NameOf(ref.plan->instructions[ref.id]));
    events_.EndSlice();
  }

  // What does not depend on when it ran.
  void WriteFacts(const InstrRef& ref) {
    const Instruction& instruction = ref.plan->instructions[ref.id];
    if (ref.plan->block != 0) json_.Field("block", ref.plan->block);
    json_.Field("instruction", ref.id);
    if (instruction.op_index >= 0) json_.Field("op", instruction.op_index);
    if (instruction.dtype != DType::kUndefined) json_.Field("kernel", Name(instruction.dtype));
    WriteSlots("inputs", *ref.plan, instruction.def->inputs, instruction.input_counts,
               instruction.inputs);
    WriteSlots("outputs", *ref.plan, instruction.def->outputs, instruction.output_counts,
               instruction.outputs);
    if (ref.plan->block == 0 && !freed_[ref.id].empty()) {
      json_.Array("frees", freed_[ref.id],
                  [&](VarId var) { json_.Value(Describe(*ref.plan, var)); });
    }
  }

  void WriteSlots(absl::string_view key, const Plan& plan, const std::vector<SlotDef>& slots,
                  const ArgCounts& counts, const VarIds& vars) {
    json_.Key(key);
    json_.BeginObject();
    size_t arg = 0;
    for (size_t slot = 0; slot < counts.size(); ++slot) {
      if (counts[slot] == 0) continue;
      std::string text;
      for (int32_t i = 0; i < counts[slot]; ++i, ++arg) {
        if (vars[arg] < 0) continue;
        absl::StrAppend(&text, text.empty() ? "" : ", ", Describe(plan, vars[arg]));
      }
      json_.Field(slot < slots.size() ? slots[slot].name : kHiddenSlot, text);
    }
    json_.EndObject();
  }

  // "x float32[2,3]"
  std::string Describe(const Plan& plan, VarId id) const {
    const PlanVar& var = plan.vars[id];
    const absl::Span<Variable* const> variables = variables_[plan.block];
    const bool tensor = var.kind == VarKind::kLodTensor && !variables.empty();
    return tensor ? absl::StrCat(var.name, " ", DescribeType(variables[id]->tensor)) : var.name;
  }

  // Rings lie far behind the workers; messages come first.
  void WriteComm() {
    constexpr int kFirstThread = 1 << 16;
    std::map<int, std::string> lanes;
    for (const CommSpan& span : trace_.comm) {
      const TraceLane lane{.thread = kFirstThread + 1 + span.ring};
      lanes[lane.thread] =
          span.ring < 0 ? "messages of ranks" : absl::StrCat("ranks of ", RingName(span.ring));
      events_.BeginSlice(span.what, "comm", lane, OfRun(span.start_ns), OfRun(span.end_ns));
      events_.EndSlice();
    }
    for (const auto& [thread, name] : lanes) events_.NameThread(name, {.thread = thread});
  }

  void WriteMemory() {
    struct Sample {
      int64_t at_ns;
      uint64_t host_bytes, device_bytes;
    };
    std::vector<Sample> samples;
    const auto add = [&](const RunTrace::Execution& e) {
      if (e.worker < 0) return;
      samples.push_back({e.start_ns, e.host_bytes[0], e.device_bytes[0]});
      samples.push_back({e.end_ns, e.host_bytes[1], e.device_bytes[1]});
    };
    for (const RunTrace::Execution& execution : trace_.executions) add(execution);
    for (const RunTrace::Nested& nested : trace_.nested) add(nested.execution);
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
    const int64_t offset_ns =
        simulated ? SimulatedOffsetNs(trace_, on_device) : OfRun(on_device.start_ns);
    events_.NameProcess(absl::StrCat(Name(on_device.place), simulated ? " (simulated time)" : ""),
                        {.process = process});
    std::vector<int> span_of(plan_.instructions.size(), kNoSpan);  // of the main block
    const int32_t count = CountInstructions(plans_);
    std::map<int32_t, std::string> lanes;  // by Stream::index
    for (size_t i = 0; i < on_device.spans.size(); ++i) {
      const DeviceSpan& span = on_device.spans[i];
      if (span.kind == WorkKind::kFill) continue;  // poison, which takes no time
      const bool known = span.tag >= 0 && span.tag < count;
      std::string& lane = lanes.try_emplace(span.stream).first->second;
      if (known) {
        const InstrRef ref = FindInstruction(plans_, span.tag);
        if (ref.plan == &plan_) span_of[span.tag] = static_cast<int>(i);
        lane = plan_.streams[ref.plan->instructions[ref.id].stream].name;
      }
      WriteSpan(span, known, process, offset_ns);
    }
    for (const auto& [stream, name] : lanes) {
      events_.NameThread(name.empty() ? absl::StrCat("stream ", stream) : name, {process, stream});
    }
    WriteDeviceArrows(on_device.spans, span_of, process, offset_ns);
  }

  void WriteSpan(const DeviceSpan& span, bool known, int process, int64_t offset_ns) {
    const InstrRef ref = known ? FindInstruction(plans_, span.tag) : InstrRef{};
    const absl::string_view name = known ? ref.plan->instructions[ref.id].op_type : Name(span.kind);
    events_.BeginSlice(name, Name(span.kind), {process, span.stream}, offset_ns + span.start_ns,
                       offset_ns + span.end_ns);
    if (span.bytes > 0) json_.Field("bytes", span.bytes);
    if (known) WriteFacts(ref);
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

  void WriteJobs(const PipelineTimes& times) {
    const int process = TraceLane().process + 1 + static_cast<int>(trace_.devices.size());
    events_.NameProcess(times.simulated ? "pipeline (simulated time)" : "pipeline",
                        {.process = process});
    for (size_t stage = 0; stage < times.stages.size(); ++stage) {
      const TraceLane lane{process, static_cast<int>(stage)};
      events_.NameThread(absl::StrCat("stage ", stage, " ", Name(times.stages[stage].place)), lane);
    }
    for (const JobTime& job : times.jobs) {
      events_.BeginSlice(job.name, "job", {process, job.stage}, job.start_ns, job.end_ns);
      events_.EndSlice();
    }
  }

  const RunTrace& trace_;
  const absl::Span<const Plan> plans_;
  const Plan& plan_;                                    // of the main block
  std::vector<absl::Span<Variable* const>> variables_;  // by block
  std::vector<std::vector<VarId>> freed_;               // by InstrId
  int64_t num_arrows_ = 0;
  TraceEvents events_;
  JsonWriter& json_ = events_.json();
};

}  // namespace

std::string ToChromeTrace(const RunTrace& trace, absl::Span<const Plan> plans,
                          absl::FunctionRef<absl::Span<Variable* const>(int32_t block)> variables) {
  return ChromeTrace(trace, plans, variables).Write(std::nullopt);
}

std::string ToChromeTrace(const RunTrace& trace, const InterpreterCore& core) {
  const auto variables = [&](int32_t block) { return core.variables(block); };
  return ChromeTrace(trace, core.plans(), variables)
      .Write(TimesOfJobs(trace, core.plan(), core.program()));
}

}  // namespace interp
