#include "interpreter/run/segment_graph.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/steady_clock.h"

namespace interp {
namespace {

bool Contains(const std::vector<VarId>& vars, VarId var) {
  return std::find(vars.begin(), vars.end(), var) != vars.end();
}

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

SegmentGraph::Parameter* SegmentGraph::FindParameter(VarId var) {
  const auto it = std::find_if(parameters_.begin(), parameters_.end(),
                               [var](const Parameter& parameter) { return parameter.var == var; });
  return it == parameters_.end() ? nullptr : &*it;
}

void SegmentGraph::NoteInput(VarId var) {
  if (var < 0 || Contains(written_, var)) return;
  if (OutlivesRuns(parts_.plan->vars[var])) {
    if (FindParameter(var) == nullptr) parameters_.push_back({.var = var});
    return;
  }
  if (!IsInput(var)) inputs_.push_back({.var = var});
}

bool SegmentGraph::IsInput(VarId var) const {
  return std::any_of(inputs_.begin(), inputs_.end(),
                     [var](const Input& input) { return input.var == var; });
}

void SegmentGraph::NoteOutput(VarId var) {
  if (var < 0) return;
  if (!OutlivesRuns(parts_.plan->vars[var])) {
    if (!Contains(written_, var)) written_.push_back(var);
    return;
  }
  if (FindParameter(var) == nullptr) parameters_.push_back({.var = var});
  FindParameter(var)->written = true;
}

bool SegmentGraph::OwnsParameters() const {
  return std::all_of(parameters_.begin(), parameters_.end(), [&](const Parameter& parameter) {
    const Tensor& tensor = TensorOf(parameter.var);
    if (!parameter.written || !tensor.has_memory()) return true;
    return tensor.buffer().unique() && tensor.buffer()->writable;
  });
}

// Nothing has changed after an error of the first steps; later the inputs are put back.
SegmentGraph::Capture SegmentGraph::Make(const RunContext& context, KeptBuffers& kept) {
  // Memory that an earlier run has left is not the graph's.
  for (const VarId var : written_) {
    if (!IsInput(var)) TensorOf(var).DropMemory();
  }
  parts_.devices->BeginGraph(stream_);
  Capture capture{.status = KeepInputs(kept)};
  std::vector<Tensor> values;
  if (capture.status.ok()) {
    for (const Input& input : inputs_) values.push_back(TensorOf(input.var));
    capture.status = CaptureWork(context, capture);
  }
  parts_.devices->EndGraph(stream_);
  if (capture.status.ok()) capture.status = KeepResults(kept);
  if (capture.status.ok()) return capture;
  graph_.reset();
  for (size_t i = 0; i < values.size(); ++i) TensorOf(inputs_[i].var).ShareMemory(values[i]);
  return capture;
}

// From here on the variables lie where the graph reads them.
absl::Status SegmentGraph::KeepInputs(const KeptBuffers& kept) {
  for (Input& input : inputs_) {
    const Tensor& tensor = TensorOf(input.var);
    input.stays = !tensor.has_memory() || kept.contains(tensor.buffer().get());
    input.address = tensor.raw_data();
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

// The capture ends whatever comes.
absl::Status SegmentGraph::CaptureWork(const RunContext& context, Capture& capture) {
  INTERP_RETURN_IF_ERROR(stream().BeginCapture());
  absl::Status status;
  for (size_t i = 0; status.ok() && i < instructions_.size(); ++i) {
    const InstrId id = instructions_[i];
    status = parts_.run.runner->Enqueue(id);
    if (!status.ok()) capture.broken = i;
    capture.collected = i + 1;
    parts_.run.collector->After(id, context.observer, context.worker);
  }
  absl::StatusOr<std::unique_ptr<WorkGraph>> graph = stream().EndCapture();
  INTERP_RETURN_IF_ERROR(status);
  INTERP_ASSIGN_OR_RETURN(graph_, std::move(graph));
  return absl::OkStatus();
}

// What still has memory is used after the segment.
absl::Status SegmentGraph::KeepResults(KeptBuffers& kept) {
  results_.clear();
  for (const VarId var : written_) {
    const Tensor& tensor = TensorOf(var);
    if (!tensor.has_memory()) continue;
    INTERP_ASSIGN_OR_RETURN(const VarId owner, StayingOwner(tensor));
    Result& result = results_.emplace_back(Result{.var = var, .value = tensor, .view_of = owner});
    if (owner >= 0) result.value.DropMemory();
  }
  for (const Result& result : results_) {
    if (result.view_of < 0) kept.insert(result.value.buffer().get());
  }
  for (Parameter& parameter : parameters_) {
    parameter.address = TensorOf(parameter.var).raw_data();
    parameter.shape = TensorOf(parameter.var).shape;
  }
  return absl::OkStatus();
}

// The parameter, or the input that stays, whose memory a tensor is; -1: the graph's own. Such
// memory is not kept here: its owner is to find it its own.
absl::StatusOr<VarId> SegmentGraph::StayingOwner(const Tensor& tensor) const {
  std::vector<VarId> stay;
  for (const Parameter& parameter : parameters_) stay.push_back(parameter.var);
  for (const Input& input : inputs_) {
    if (input.stays) stay.push_back(input.var);
  }
  for (const VarId var : stay) {
    const Tensor& owner = TensorOf(var);
    if (owner.buffer().get() != tensor.buffer().get()) continue;
    if (owner.raw_data() == tensor.raw_data()) return var;
    return absl::FailedPreconditionError(
        absl::StrCat("a part of '", parts_.plan->vars[var].name, "' is used outside of the graph"));
  }
  return -1;
}

bool SegmentGraph::Fits() {
  for (const Parameter& parameter : parameters_) {
    const Tensor& tensor = TensorOf(parameter.var);
    if (tensor.raw_data() != parameter.address || tensor.shape != parameter.shape) return false;
  }
  if (!OwnsParameters()) return false;
  for (const Input& input : inputs_) {
    const Tensor& tensor = TensorOf(input.var);
    if (input.stays && tensor.raw_data() != input.address) return false;
    if (input.stays) continue;
    if (!tensor.has_memory() || tensor.size_bytes() != input.kept.size_bytes()) return false;
  }
  // Values of the run before are nothing that anybody still wants.
  for (const Result& result : results_) {
    if (!IsInput(result.var)) TensorOf(result.var).DropMemory();
  }
  return std::all_of(results_.begin(), results_.end(), [&](const Result& result) {
    return result.view_of >= 0 || HoldsAlone(result.value.buffer().get());
  });
}

bool SegmentGraph::HoldsAlone(const Buffer* buffer) const {
  int32_t own = 0;
  for (const Result& result : results_) own += result.value.buffer().get() == buffer ? 1 : 0;
  for (const Input& input : inputs_) own += input.kept.buffer().get() == buffer ? 1 : 0;
  return buffer->refs.load(std::memory_order_acquire) == own;
}

absl::Status SegmentGraph::Enqueue(const RunContext& context) {
  const int64_t start_ns = context.observer != nullptr ? SteadyNowNs() : 0;
  const absl::Status status = graph_->Enqueue(
      {.tag = parts_.run.first_number + instructions_[0], .errors = &parts_.devices->errors()});
  if (!status.ok()) return parts_.run.runner->Explain(instructions_[0], status);
  for (const Result& result : results_) {
    TensorOf(result.var).ShareMemory(result.view_of < 0 ? result.value : TensorOf(result.view_of));
  }
  return NoteEnqueued(context, start_ns);
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
  return absl::OkStatus();
}

}  // namespace interp
