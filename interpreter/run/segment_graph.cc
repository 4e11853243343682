#include "interpreter/run/segment_graph.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/steady_clock.h"

namespace interp {
namespace {

// Whether runs find the variable where the run before has left it.
bool OutlivesRuns(const PlanVar& var) {
  return var.persistable || var.constant || var.copy_of >= 0;
}

}  // namespace

SegmentGraph::SegmentGraph(const Parts& parts, absl::Span<const InstrId> instructions,
                           int32_t stream)
    : parts_(parts), instructions_(instructions.begin(), instructions.end()), stream_(stream) {
  for (const InstrId id : instructions_) {
    const Instruction& instruction = parts_.plan->instructions[id];
    for (size_t arg = 0; arg < instruction.inputs.size(); ++arg) {
      const int flags = InputFlags(instruction, static_cast<int>(arg));
      if ((flags & kNoNeedBuffer) == 0) NoteInput(instruction.inputs[arg]);
    }
    for (const VarId var : instruction.outputs) NoteOutput(var);
  }
}

void SegmentGraph::NoteInput(VarId var) {
  if (var < 0 || is_written_.contains(var)) return;
  if (OutlivesRuns(parts_.plan->vars[var])) {
    ParameterOf(var);
  } else if (is_input_.insert(var).second) {
    inputs_.push_back({.var = var});
  }
}

void SegmentGraph::NoteOutput(VarId var) {
  if (var < 0) return;
  if (OutlivesRuns(parts_.plan->vars[var])) {
    ParameterOf(var).written = true;
  } else if (is_written_.insert(var).second) {
    written_.push_back(var);
  }
}

// Added where it is not there yet.
SegmentGraph::Parameter& SegmentGraph::ParameterOf(VarId var) {
  const auto [at, added] = parameter_at_.emplace(var, parameters_.size());
  if (added) parameters_.push_back({.var = var});
  return parameters_[at->second];
}

// A parameter without memory is not to get it while it is captured.
bool SegmentGraph::IsHeld(VarId parameter) const {
  const Tensor& tensor = TensorOf(parameter);
  return !tensor.has_memory() || !tensor.buffer().unique() || !tensor.buffer()->writable;
}

std::vector<InstrId> SegmentGraph::WritersOfHeld() const {
  absl::flat_hash_set<VarId> held;
  for (const Parameter& parameter : parameters_) {
    if (parameter.written && IsHeld(parameter.var)) held.insert(parameter.var);
  }
  std::vector<InstrId> writers;
  if (held.empty()) return writers;
  for (const InstrId id : instructions_) {
    const VarIds& outputs = parts_.plan->instructions[id].outputs;
    const bool writes = std::any_of(outputs.begin(), outputs.end(),
                                    [&held](VarId var) { return held.contains(var); });
    if (writes) writers.push_back(id);
  }
  return writers;
}

SegmentGraph::Capture SegmentGraph::Make(const RunContext& context, KeptBuffers& kept) {
  DropResults();
  std::vector<Tensor> values;  // where they are without the graph
  for (const Input& input : inputs_) values.push_back(TensorOf(input.var));
  const std::vector<BufferRef> held = HoldCollectable();
  // Memory that an earlier run has left is not the graph's.
  for (const VarId var : written_) {
    if (!is_input_.contains(var)) TensorOf(var).DropMemory();
  }
  parts_.devices->BeginGraph(stream_);
  Capture capture{.status = KeepInputs(kept)};
  if (capture.status.ok()) capture.status = CaptureWork(context, capture);
  parts_.devices->EndGraph(stream_);
  if (capture.status.ok()) capture.status = KeepResults(kept);
  if (!capture.status.ok()) UndoCapture(values);
  return capture;
}

// Memory that goes back to a pool while a stream is captured could not be marked as what work of
// the stream still uses.
std::vector<BufferRef> SegmentGraph::HoldCollectable() const {
  std::vector<BufferRef> held;
  for (const InstrId id : instructions_) {
    for (const VarId var : parts_.plan->gc_check[id]) {
      if (TensorOf(var).has_memory()) held.push_back(TensorOf(var).buffer());
    }
  }
  return held;
}

// Nothing has been computed, so that what was to be written may go.
void SegmentGraph::UndoCapture(const std::vector<Tensor>& values) {
  graph_.reset();
  results_.clear();
  for (const VarId var : written_) TensorOf(var).DropMemory();
  for (size_t i = 0; i < values.size(); ++i) TensorOf(inputs_[i].var).ShareMemory(values[i]);
}

void SegmentGraph::DropCollected() {
  for (const Freed& freed : freed_) TensorOf(freed.var).DropMemory();
  freed_.clear();
}

void SegmentGraph::DropResults() {
  for (const Result& result : results_) TensorOf(result.var).DropMemory();
}

// From here on the variables lie where the graph reads them.
absl::Status SegmentGraph::KeepInputs(const KeptBuffers& kept) {
  for (Input& input : inputs_) {
    const Tensor& tensor = TensorOf(input.var);
    input.stays = !tensor.has_memory() || kept.contains(tensor.buffer().get());
    input.address = tensor.raw_data();
    input.buffer = tensor.buffer().get();
    if (input.stays) continue;
    input.kept = tensor;
    input.kept.DropMemory();
    INTERP_RETURN_IF_ERROR(input.kept.Allocate(parts_.devices->allocator(stream_)));
  }
  INTERP_RETURN_IF_ERROR(StageInputs());
  for (const Input& input : inputs_) {
    if (!input.stays) TensorOf(input.var).ShareMemory(input.kept);
  }
  return absl::OkStatus();
}

absl::Status SegmentGraph::StageInputs() {
  for (const InstrId id : instructions_) {
    INTERP_RETURN_IF_ERROR(parts_.run.runner->AwaitEvents(id));
  }
  for (const Input& input : inputs_) {
    if (!input.stays) INTERP_RETURN_IF_ERROR(StageInput(input));
  }
  return absl::OkStatus();
}

absl::Status SegmentGraph::StageInput(const Input& input) {
  const Tensor& tensor = TensorOf(input.var);
  Tensor to = input.kept;
  const Work work{.tag = parts_.run.first_number + instructions_[0],
                  .errors = &parts_.devices->errors()};
  INTERP_RETURN_IF_ERROR(
      stream().CopyOnDevice(to.mutable_raw_data(), tensor.raw_data(), tensor.size_bytes(), work));
  parts_.devices->pool(stream().place()).RecordUse(*tensor.buffer().get(), stream());
  return absl::OkStatus();
}

// Notes what is dropped.
class SegmentGraph::FreeRecorder final : public RunObserver {
 public:
  explicit FreeRecorder(std::vector<Freed>& freed) : freed_(freed) {}
  void OnFree(VarId var, int32_t after, int /*worker*/) override { freed_.push_back({var, after}); }

 private:
  std::vector<Freed>& freed_;
};

// The capture ends whatever comes.
absl::Status SegmentGraph::CaptureWork(const RunContext& context, Capture& capture) {
  INTERP_RETURN_IF_ERROR(stream().BeginCapture());
  FreeRecorder recorder(freed_);
  absl::Status status;
  for (size_t i = 0; status.ok() && i < instructions_.size(); ++i) {
    const InstrId id = instructions_[i];
    status = parts_.run.runner->Enqueue(id);
    if (!status.ok()) capture.broken = i;
    capture.collected = i + 1;
    parts_.run.collector->After(id, &recorder, context.worker);
  }
  absl::StatusOr<std::unique_ptr<WorkGraph>> graph = stream().EndCapture();
  INTERP_RETURN_IF_ERROR(status);
  INTERP_ASSIGN_OR_RETURN(graph_, std::move(graph));
  return absl::OkStatus();
}

// What still has memory is used after the segment.
absl::Status SegmentGraph::KeepResults(KeptBuffers& kept) {
  results_.clear();
  const Owners owners = StayingOwners();
  absl::flat_hash_map<const Buffer*, int32_t> holds;
  for (const Input& input : inputs_) ++holds[input.kept.buffer().get()];
  for (const VarId var : written_) {
    const Tensor& tensor = TensorOf(var);
    if (!tensor.has_memory()) continue;
    Result& result = results_.emplace_back(Result{.var = var, .value = tensor});
    const auto owner = owners.find(tensor.buffer().get());
    if (owner == owners.end()) {
      ++holds[tensor.buffer().get()];
      kept.insert(tensor.buffer().get());
      continue;
    }
    result.view_of = owner->second.var;
    result.value.DropMemory();
    if (owner->second.address == tensor.raw_data()) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "a part of '", parts_.plan->vars[result.view_of].name, "' is used outside of the graph"));
  }
  for (Result& result : results_) {
    if (result.view_of < 0) result.holds = holds[result.value.buffer().get()];
  }
  for (Parameter& parameter : parameters_) {
    parameter.address = TensorOf(parameter.var).raw_data();
    parameter.shape = TensorOf(parameter.var).shape;
  }
  return absl::OkStatus();
}

// The parameters and the inputs that stay, by their memory. What is a view of such is not kept
// here: its owner is to find it its own. Inputs may have been collected.
SegmentGraph::Owners SegmentGraph::StayingOwners() const {
  Owners owners;
  for (const Parameter& parameter : parameters_) {
    const Tensor& tensor = TensorOf(parameter.var);
    if (!tensor.has_memory()) continue;
    owners[tensor.buffer().get()] = {.var = parameter.var, .address = tensor.raw_data()};
  }
  for (const Input& input : inputs_) {
    if (!input.stays || input.buffer == nullptr) continue;
    owners[input.buffer] = {.var = input.var, .address = input.address};
  }
  return owners;
}

bool SegmentGraph::Fits() const {
  for (const Parameter& parameter : parameters_) {
    const Tensor& tensor = TensorOf(parameter.var);
    if (tensor.raw_data() != parameter.address || tensor.shape != parameter.shape) return false;
    if (parameter.written && IsHeld(parameter.var)) return false;
  }
  for (const Input& input : inputs_) {
    const Tensor& tensor = TensorOf(input.var);
    if (input.stays && tensor.raw_data() != input.address) return false;
    if (input.stays) continue;
    if (!tensor.has_memory() || tensor.size_bytes() != input.kept.size_bytes()) return false;
  }
  return std::all_of(results_.begin(), results_.end(), [](const Result& result) {
    if (result.view_of >= 0) return true;
    return result.value.buffer()->refs.load(std::memory_order_acquire) == result.holds;
  });
}

absl::Status SegmentGraph::Enqueue(const RunContext& context) {
  const int64_t start_ns = context.observer != nullptr ? SteadyNowNs() : 0;
  const absl::Status status = graph_->Enqueue(
      {.tag = parts_.run.first_number + instructions_[0], .errors = &parts_.devices->errors()});
  if (!status.ok()) return parts_.run.runner->Explain(instructions_[0], status);
  return NoteEnqueued(context, start_ns);
}

absl::Status SegmentGraph::Replay(const RunContext& context) {
  INTERP_RETURN_IF_ERROR(StageInputs());
  for (const Result& result : results_) {
    TensorOf(result.var).ShareMemory(result.view_of < 0 ? result.value : TensorOf(result.view_of));
  }
  return Enqueue(context);
}

// The events that stand for the graph, and what observers are told: the first instruction took the
// time of all.
absl::Status SegmentGraph::NoteEnqueued(const RunContext& context, int64_t start_ns) {
  int64_t begin_ns = start_ns;
  for (const InstrId id : instructions_) {
    const int32_t number = parts_.run.first_number + id;
    if (context.observer != nullptr) context.observer->OnStart(number, context.worker, begin_ns);
    INTERP_RETURN_IF_ERROR(parts_.run.runner->NoteEnqueued(id));
    if (context.observer == nullptr) continue;
    const int64_t end_ns = SteadyNowNs();
    context.observer->OnInstruction(number, context.worker, begin_ns, end_ns);
    begin_ns = end_ns;
  }
  if (context.observer != nullptr) {
    for (const Freed& freed : freed_) {
      context.observer->OnFree(freed.var, freed.after, context.worker);
    }
  }
  freed_.clear();
  return absl::OkStatus();
}

}  // namespace interp
