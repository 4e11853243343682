// Long because a frame binds, runs, saves and drops the same variables.
#include "interpreter/run/frame.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "core/gradient.h"
#include "interpreter/compile/random_ops.h"
#include "interpreter/run/constant_copies.h"
#include "interpreter/run/prepare_kernels.h"

namespace interp {
namespace {

void CopyType(const Tensor& from, Tensor& to) {
  to.shape = from.shape;
  to.dtype = from.dtype;
  to.lod = from.lod;
}

void CopyType(const Variable& from, Variable& to) {
  CopyType(from.tensor, to.tensor);
  to.array.resize(from.array.size());
  for (size_t i = 0; i < from.array.size(); ++i) CopyType(from.array[i], to.array[i]);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Frame>> Frame::Create(const CompiledProgram& compiled, Scope& root,
                                                     RunControl& control, const RandomState& random,
                                                     const FrameServices& services) {
  std::unique_ptr<Frame> main(
      new Frame(compiled, /*block=*/0, /*outer=*/nullptr, &control, &random, services));
  main->BindMain(root);
  INTERP_RETURN_IF_ERROR(main->MakeParts());
  return main;
}

Frame::Frame(const CompiledProgram& compiled, int32_t block, Frame* outer, RunControl* control,
             const RandomState* random, const FrameServices& services)
    : compiled_(compiled),
      plan_(compiled.plans[block]),
      outer_(outer),
      services_(services),
      own_control_(outer == nullptr ? nullptr : control),
      control_(outer == nullptr ? control : &own_control_),
      outer_random_(random),
      variables_(plan_.vars.size(), nullptr) {}

// Memory of devices is handed back through their streams, which the core ends after its frames.
Frame::~Frame() = default;

void Frame::BindMain(Scope& root) {
  for (size_t id = 0; id < plan_.vars.size(); ++id) {
    const PlanVar& var = plan_.vars[id];
    const bool list =
        static_cast<VarId>(id) == plan_.feed_list || static_cast<VarId>(id) == plan_.fetch_list;
    if (!var.persistable || var.copy_of >= 0 || list) continue;
    // Programs that share the scope may be made, and clones begin, at the same time.
    variables_[id] = root.FindOrCreate(var.name);
    if (!var.constant) Watch(static_cast<VarId>(id), /*written=*/true);
  }
  BindOwn();
}

void Frame::BindWithin(InstrId id) {
  const Instruction& instruction = outer_->plan_.instructions[id];
  caller_id_ = id;
  ForEachCapture(instruction, plan_, [&](VarId outside, VarId inside) {
    variables_[inside] = outer_->variables_[outside];
  });
  for (const Capture& capture : plan_.captures) Watch(capture.var, capture.written);
  BindOwn();
  for (const VarId id : plan_.entries) {
    entries_.push_back(variables_[id]);
    std::erase(whole_, variables_[id]);
    Watch(id, /*written=*/true);
  }
  for (const VarId id : plan_.results) results_.push_back(variables_[id]);
  for (const VarId id : plan_.inherited) Watch(id, /*written=*/true);
  FindTyped();
}

// What every activation finds and replaces has another shape in each.
void Frame::FindTyped() {
  if (plan_.gradient_block < 0) return;
  const Plan& gradient = compiled_.plans[plan_.gradient_block];
  typed_.resize(gradient.entries.size(), nullptr);
  for (const Capture& capture : plan_.captures) {
    if (!capture.written) continue;
    const std::string name = GradientName(plan_.vars[capture.var].name);
    for (size_t e = 0; e < typed_.size(); ++e) {
      if (gradient.vars[gradient.entries[e]].name == name) typed_[e] = variables_[capture.var];
    }
  }
}

// Variables that are nobody else's lie in this frame.
void Frame::BindOwn() {
  own_.resize(static_cast<size_t>(std::count(variables_.begin(), variables_.end(), nullptr)));
  auto next = own_.begin();
  for (size_t id = 0; id < variables_.size(); ++id) {
    if (variables_[id] != nullptr) continue;
    variables_[id] = &*next++;
    if (plan_.vars[id].kind == VarKind::kSelectedRows) variables_[id]->selected_rows.emplace();
    const bool list =
        static_cast<VarId>(id) == plan_.feed_list || static_cast<VarId>(id) == plan_.fetch_list;
    if (plan_.vars[id].kind != VarKind::kLodTensor && !list) whole_.push_back(variables_[id]);
  }
}

void Frame::FindMaybeWritten() {
  for (const Instruction& instruction : plan_.instructions) {
    for (int arg = 0; arg < static_cast<int>(instruction.outputs.size()); ++arg) {
      const VarId id = instruction.outputs[arg];
      if (!IsHiddenOutput(instruction, arg) || plan_.ref_counts[id] > 0) continue;
      const PlanVar& var = plan_.vars[id];
      const bool given = absl::c_linear_search(entries_, variables_[id]);
      const bool own = !var.persistable && !var.captured && !given;
      if (own && var.kind == VarKind::kLodTensor) maybe_written_.push_back(&variables_[id]->tensor);
    }
  }
}

void Frame::Watch(VarId var, bool written) {
  if (plan_.vars[var].kind != VarKind::kLodTensor) return;
  watched_.push_back({.tensor = &variables_[var]->tensor, .written = written, .at_start = {}});
}

absl::Status Frame::MakeParts() {
  FindMaybeWritten();
  for (const Instruction& instruction : plan_.instructions) {
    if (!instruction.place.on_host()) device_streams_.push_back(instruction.stream);
  }
  INTERP_RETURN_IF_ERROR(MakeChildren());
  std::sort(device_streams_.begin(), device_streams_.end());
  device_streams_.erase(std::unique(device_streams_.begin(), device_streams_.end()),
                        device_streams_.end());
  with_devices_ = !device_streams_.empty();
  if (with_devices_) {
    INTERP_ASSIGN_OR_RETURN(events_, services_.devices->MakeEvents(plan_));
  }
  std::vector<Frame*> blocks;
  for (const std::unique_ptr<Frame>& child : children_) blocks.push_back(child.get());
  const std::vector<uint64_t> random_ops = RandomOpIds(plan_, compiled_.program);
  const InstructionRunner::Services services{.pool = services_.pool,
                                             .devices = services_.devices,
                                             .events = events_,
                                             .shared = services_.shared,
                                             .random = outer_ == nullptr ? outer_random_ : &random_,
                                             .resources = services_.resources};
  runner_ = std::make_unique<InstructionRunner>(
      plan_,
      InstructionRunner::Bindings{.instructions = plan_.instructions,
                                  .variables = variables_,
                                  .blocks = blocks,
                                  .random_ops = random_ops},
      services, services_.runner);
  folded_.emplace(plan_, variables_, *control_, services, services_.runner, *services_.ops);
  collector_ = std::make_unique<GarbageCollector>(plan_, variables_, services_.buffers);
  return MakeOwnScheduler();
}

absl::Status Frame::MakeOwnScheduler() {
  const RunParts parts{.runner = runner_.get(),
                       .collector = collector_.get(),
                       .control = control_,
                       .first_number = plan_.first_number,
                       .with_devices = with_devices_};
  if (!services_.scheduler.graphs || outer_ != nullptr) {
    INTERP_ASSIGN_OR_RETURN(scheduler_, MakeScheduler(services_.scheduler, plan_, parts,
                                                      *services_.threads, outer_ != nullptr));
    return absl::OkStatus();
  }
  INTERP_ASSIGN_OR_RETURN(GraphRandom random,
                          GraphRandom::Create({.plan = &plan_,
                                               .runner = runner_.get(),
                                               .devices = services_.devices,
                                               .host = services_.pool,
                                               .resources = services_.resources}));
  INTERP_ASSIGN_OR_RETURN(
      std::unique_ptr<GraphScheduler> graphs,
      GraphScheduler::Create(
          {.plan = &plan_, .variables = variables_, .run = parts, .devices = services_.devices},
          std::move(random)));
  graphs_ = graphs.get();
  scheduler_ = std::move(graphs);
  return absl::OkStatus();
}

std::optional<GraphStats> Frame::graph_stats() const {
  if (graphs_ == nullptr) return std::nullopt;
  return graphs_->stats();
}

absl::Status Frame::MakeChildren() {
  for (size_t i = 0; i < plan_.instructions.size(); ++i) {
    const Instruction& instruction = plan_.instructions[i];
    if (instruction.sub_block < 0) continue;
    const RandomState* random = outer_ == nullptr ? outer_random_ : &random_;
    std::unique_ptr<Frame> child(
        new Frame(compiled_, instruction.sub_block, this, control_, random, services_));
    child->BindWithin(static_cast<InstrId>(i));
    INTERP_RETURN_IF_ERROR(child->MakeParts());
    device_streams_.insert(device_streams_.end(), child->device_streams_.begin(),
                           child->device_streams_.end());
    children_.push_back(std::move(child));
  }
  return absl::OkStatus();
}

void Frame::RunMain(bool same_feeds, RunObserver* observer) {
  EmptyMaybeWritten();
  const bool same = NoteStart() && same_feeds && shapes_known_;
  shapes_known_ = false;
  if (folded_->Make()) {
    if (!prepared_) PrepareAll();
    scheduler_->Run({.infer_all = !same, .observer = observer, .worker = 0});
  }
  if (!control_->ShouldStop()) NoteEnd();
  EmptyWhole();
}

void Frame::PrepareAll() {
  prepared_ = true;
  const PrepareThreads run_by = {services_.scheduler.num_workers, services_.runner.num_threads};
  PrepareKernels(plan_, variables_, *runner_, run_by, [this] { return control_->ShouldStop(); });
}

void Frame::Enter(const RunContext& context) {
  caller_ = context;
  activation_ = 0;
}

void Frame::Leave() {
  Synchronize().IgnoreError();  // the kernel that ran the block was told
  for (Variable* entry : entries_) entry->DropValue();
  for (Variable* result : results_) result->DropValue();
}

absl::Status Frame::Synchronize() {
  absl::Status status;
  for (const int32_t stream : device_streams_) {
    status.Update(services_.devices->stream(stream).Synchronize());
  }
  return status;
}

absl::Status Frame::Run() { return Activate(nullptr); }

absl::Status Frame::Activate(StepRecord* inherited) {
  if (control_->ShouldStop()) return control_->FinishActivation();
  EmptyWhole();
  EmptyMaybeWritten();
  if (inherited != nullptr) Inherit(*inherited);
  const bool same = NoteStart() && shapes_known_;
  shapes_known_ = false;
  random_ = NestedRandomState(*outer_random_, plan_.block, activation_++);
  if (folded_->Make()) {
    scheduler_->Run({.infer_all = !same, .observer = caller_.observer, .worker = caller_.worker});
  }
  const absl::Status finished = FinishActivation();
  held_.clear();
  INTERP_RETURN_IF_ERROR(finished);
  NoteEnd();
  return absl::OkStatus();
}

absl::Status Frame::FinishActivation() {
  if (with_devices_) [[unlikely]] {
    // The kernel that runs the block looks at what the host can see (a condition).
    const absl::Status done = Synchronize();
    if (!done.ok() || services_.devices->errors().any()) {
      (void)control_->FinishActivation();
      collector_->DropAll();
      return absl::CancelledError("work on a device failed");
    }
  }
  absl::Status status = control_->FinishActivation();
  if (status.ok()) [[likely]]
    return status;
  collector_->DropAll();
  if (absl::IsCancelled(status)) return status;
  return Annotate(status, absl::StrCat("block ", plan_.block));
}

absl::Status Frame::RunAndSave(StepRecord& record) {
  const size_t types = plan_.saved.size();
  record.values.clear();
  record.values.resize(types + 2 * typed_.size());
  CopyTypes(record, types + typed_.size());
  for (size_t i = 0; i < plan_.saved.size(); ++i) {
    const SavedVar& saved = plan_.saved[i];
    // Whoever writes the variable takes other memory while the record holds this.
    if (saved.at_start) record.values[i].tensor = variables_[saved.var]->tensor;
  }
  const absl::Status status = Run();
  if (!status.ok()) {
    record.values.clear();
    DropSaved();
    return status;
  }
  for (size_t i = 0; i < plan_.saved.size(); ++i) {
    const SavedVar& saved = plan_.saved[i];
    if (!saved.at_start) Save(*variables_[saved.var], record.values[i]);
  }
  CopyTypes(record, types);
  return absl::OkStatus();
}

void Frame::CopyTypes(StepRecord& record, size_t first) const {
  for (size_t i = 0; i < typed_.size(); ++i) {
    if (typed_[i] != nullptr) CopyType(*typed_[i], record.values[first + i]);
  }
}

void Frame::DropSaved() {
  for (const SavedVar& saved : plan_.saved) {
    if (!saved.at_start) variables_[saved.var]->DropValue();
  }
}

// Shapes stay in the frame, whose next activation may need not infer them. A result is still to be
// read by the kernel that runs the block; the next activation drops or replaces it.
void Frame::Save(Variable& variable, Variable& value) const {
  value.tensor = variable.tensor;
  if (absl::c_linear_search(results_, &variable)) {
    value.array = variable.array;
    value.selected_rows = variable.selected_rows;
    return;
  }
  variable.tensor.DropMemory();
  value.array = std::exchange(variable.array, {});
  value.rank_table = std::move(variable.rank_table);
  value.steps = std::exchange(variable.steps, {});
  if (variable.selected_rows.has_value())
    value.selected_rows = std::exchange(*variable.selected_rows, {});
}

absl::Status Frame::RunOn(StepRecord& record) {
  const size_t expected = plan_.inherited.size() + 2 * plan_.entries.size();
  if (record.values.size() != expected) {
    return InvalidArgument("block ", plan_.block, " takes ", expected,
                           " values of its forward block, there are ", record.values.size());
  }
  return Activate(&record);
}

void Frame::Inherit(StepRecord& record) {
  if (plan_.inherited.empty()) return;  // there may be no forward block
  const std::vector<SavedVar>& saved = compiled_.plans[plan_.forward_block].saved;
  for (size_t i = 0; i < plan_.inherited.size(); ++i) {
    Variable& variable = *variables_[plan_.inherited[i]];
    // Neither this block nor the outer one is to write where work of the other may be in flight:
    // who writes a variable whose memory is held gets other memory.
    if (with_devices_ && saved[i].at_start) held_.push_back(record.values[i].tensor);
    variable.tensor = std::move(record.values[i].tensor);
    variable.array = std::move(record.values[i].array);
    variable.rank_table = std::move(record.values[i].rank_table);
    variable.steps = std::move(record.values[i].steps);
    if (variable.selected_rows.has_value()) {
      variable.selected_rows = std::move(record.values[i].selected_rows).value_or(RowIndex());
    }
  }
  record.values.clear();
}

void Frame::DropAll() {
  collector_->DropAll();
  for (const std::unique_ptr<Frame>& child : children_) child->DropAll();
}

void Frame::ForgetShapes() {
  shapes_known_ = false;
  for (const std::unique_ptr<Frame>& child : children_) child->ForgetShapes();
}

void Frame::CollectAlgorithms(std::vector<std::string>& algorithms) const {
  for (size_t i = 0; i < plan_.instructions.size(); ++i) {
    const auto id = static_cast<InstrId>(i);
    algorithms[plan_.first_number + id] = runner_->Algorithm(id);
  }
  for (const std::unique_ptr<Frame>& child : children_) child->CollectAlgorithms(algorithms);
}

void Frame::ResetKernelStates() {
  prepared_ = false;
  runner_->ResetKernelStates();
  for (const std::unique_ptr<Frame>& child : children_) child->ResetKernelStates();
}

// Whether everything from outside is as it was when the last activation started, and the block did
// not change that; notes what it is now. A value that is there no more is found when shapes are
// inferred.
bool Frame::NoteStart() {
  bool same = true;
  for (Watched& watched : watched_) {
    const bool has_memory = watched.tensor->has_memory();
    if (has_memory == watched.had_memory && SameMetadata(*watched.tensor, watched.at_start))
        [[likely]]
      continue;
    CopyMetadata(*watched.tensor, watched.at_start);
    watched.had_memory = has_memory;
    same = false;
  }
  return same;
}

// What the block has changed from outside may be changed back before it starts again: then it
// starts as before, but its outputs are not as it left them.
void Frame::NoteEnd() {
  shapes_known_ = !runner_->TakeReshaped();
  for (const Watched& watched : watched_) {
    if (watched.written && !SameMetadata(*watched.tensor, watched.at_start)) [[unlikely]]
      shapes_known_ = false;
  }
}

void Frame::EmptyWhole() {
  for (Variable* variable : whole_) variable->DropValue();
}

void Frame::EmptyMaybeWritten() {
  for (Tensor* tensor : maybe_written_) tensor->DropMemory();
}

absl::Status Frame::CopyConstants() {
  folded_->Forget();
  for (size_t id = 0; id < plan_.vars.size(); ++id) {
    const PlanVar& var = plan_.vars[id];
    if (var.copy_of < 0 || plan_.vars[var.copy_of].folded) continue;
    INTERP_ASSIGN_OR_RETURN(
        variables_[id]->tensor,
        ConvertedConstant({.block = plan_.block, .var = static_cast<VarId>(id)}, var,
                          variables_[var.copy_of]->tensor, services_.devices, *services_.ops,
                          *services_.shared));
  }
  for (const std::unique_ptr<Frame>& child : children_) {
    INTERP_RETURN_IF_ERROR(child->CopyConstants());
  }
  return absl::OkStatus();
}

std::optional<absl::Status> Frame::Explain(int32_t number, const absl::Status& status) const {
  const int32_t id = number - plan_.first_number;
  if (id >= 0 && id < static_cast<int32_t>(plan_.instructions.size())) {
    return runner_->Explain(id, status);
  }
  for (const std::unique_ptr<Frame>& child : children_) {
    std::optional<absl::Status> within = child->Explain(number, status);
    if (!within.has_value()) continue;
    return runner_->Explain(child->caller_id_,
                            Annotate(*within, absl::StrCat("block ", child->plan_.block)));
  }
  return std::nullopt;
}

}  // namespace interp
