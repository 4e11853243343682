// Long because binding an instruction and running it share records that nobody else is to see.
#include "interpreter/run/instruction_runner.h"

#include <cstring>
#include <optional>

#include "core/base/catching.h"
#include "core/device/host_kernels.h"
#include "core/storage/lasting_memory.h"
#include "interpreter/plan/instruction_name.h"
#include "interpreter/run/bound_args.h"
#include "interpreter/run/finite.h"
#include "interpreter/run/frame.h"

namespace interp {

// An output argument that holds a tensor.
struct InstructionRunner::Output {
  Tensor* tensor;
  // The input whose memory it takes, or null; equal to `tensor` for an op that updates a variable.
  Tensor* source = nullptr;
  Allocator* allocator;
  size_t size_bytes = 0;  // of `tensor`, found when shapes are inferred
  DType dtype;
  Layout layout;
  bool view = false;
  bool turns = false;          // a view of another layout than the source's
  bool fits_source = false;    // size and layout are as they are to be
  bool persistable = false;    // keeps its value until all outputs have memory
  bool goes_on = false;        // from the value it has, where it has one (kKeepsValue)
  Stream* stream = nullptr;    // where the memory is written; null on the host
  StreamPool* pool = nullptr;  // it comes from; null for persistable variables and on the host
};

// What every run of an instruction touches: two cache lines, in program order.
struct InstructionRunner::Hot {
  KernelFn kernel = nullptr;
  absl::Span<Output> outputs;  // those that the runner gives memory
  bool infers = false;         // in every run
  bool checks = false;         // has work after the kernel
  bool special = false;        // runs on a device or waits for one, or runs a block
  std::optional<KernelContext> context;
};

// What few instructions have.
struct InstructionRunner::Rare {
  // By output: what the tensor is, without memory, before it is inferred. Of updates and of
  // persistable variables, whose memory outlives an error; else empty.
  std::vector<Tensor> before;
  // By output, while memory is given, where persistable variables are written: what the tensor
  // would lose. Empty in between.
  std::vector<std::optional<Tensor>> held;
  std::vector<Variable*> written_persistables;
  std::vector<int32_t> host_waits;
  // For a launch: the arguments with stand-ins for inputs of which only metadata are read. Their
  // memory is not ours to look at, somebody may be freeing it.
  BoundArgs launch_args;
  std::vector<std::pair<const Tensor*, std::unique_ptr<Tensor>>> stand_ins;
};

// The rest.
struct InstructionRunner::Bound {
  const Instruction* instruction = nullptr;
  BoundArgs args;
  absl::Span<Output> outputs;
  absl::InlinedVector<int32_t, 4> read_args;  // input arguments whose memory the kernel reads
  Frame* block = nullptr;                     // of an instruction that runs one
  bool updates = false;                       // a variable in place
  std::unique_ptr<Rare> rare;                 // null for most
  std::unique_ptr<KernelState> state;
  RandomSource random;
};

InstructionRunner::Rare& InstructionRunner::RareOf(Bound& bound) {
  if (bound.rare == nullptr) bound.rare = std::make_unique<Rare>();
  return *bound.rare;
}

bool InstructionRunner::WritesPersistables(const Bound& bound) {
  return bound.rare != nullptr && !bound.rare->written_persistables.empty();
}

namespace {

// Functions of ops return errors; what the standard library throws below them ends here.
template <typename Function, typename Context>
absl::Status Call(Function function, Context& context) {
  return Catching([&] { return function(context); });
}

}  // namespace

InstructionRunner::InstructionRunner(const Plan& plan, const Bindings& bindings,
                                     const Services& services, const RunnerOptions& options)
    : plan_(plan),
      services_(services),
      devices_(services.devices),
      options_(options),
      hot_(bindings.instructions.size()),
      bound_(bindings.instructions.size()) {
  size_t num_outputs = 0;
  for (const Instruction& instruction : bindings.instructions) {
    num_outputs += instruction.outputs.size();
  }
  outputs_.reserve(num_outputs);  // spans lead into it
  BindPlaces();
  auto block = bindings.blocks.begin();
  for (size_t i = 0; i < bound_.size(); ++i) {
    const uint64_t random_op = bindings.random_ops.empty() ? 0 : bindings.random_ops[i];
    bound_[i].random = {.state = services.random, .op = random_op};
    if (bindings.instructions[i].sub_block >= 0) bound_[i].block = *block++;
    Bind(static_cast<InstrId>(i), bindings);
  }
}

InstructionRunner::~InstructionRunner() = default;

void InstructionRunner::BindPlaces() {
  for (size_t i = 0; i < plan_.streams.size(); ++i) {
    const Place place = plan_.streams[i].place;
    KernelContext::PlaceServices& services = places_.emplace_back();
    services.resources = &(*services_.resources)[Name(place)];
    if (place.on_host()) continue;
    services.stream = &devices_->stream(static_cast<int32_t>(i));
    services.errors = &devices_->errors();
    services.workspace = &devices_->allocator(static_cast<int32_t>(i));
  }
}

void InstructionRunner::Bind(InstrId id, const Bindings& bindings) {
  const Instruction& instruction = bindings.instructions[id];
  const absl::Span<Variable* const> variables = bindings.variables;
  Bound& bound = bound_[id];
  bound.instruction = &instruction;
  bound.args = BindArgs(plan_, instruction, variables);
  BindInputs(bound);
  BindOutputs(bound, variables);

  Hot& hot = hot_[id];
  hot.kernel = instruction.def->kernels[instruction.kernel].run;
  if (!instruction.def->dynamic_outputs) hot.outputs = bound.outputs;
  hot.infers = instruction.dynamic_shape;
  hot.checks =
      WritesPersistables(bound) || options_.check_nan_inf || instruction.def->dynamic_outputs;
  const KernelContext::Services kernel_services{
      .allocator = services_.pool,
      .shared = services_.shared,
      .state = &bound.state,
      .random = instruction.def->random ? &bound.random : nullptr,
      .block = bound.block,
      .place = &places_[instruction.stream],
      .instruction = plan_.first_number + id,
      .num_threads = options_.num_threads,
      .algorithms = options_.algorithms};
  if (!instruction.place.on_host()) BindLaunch(bound);
  for (const EventWait& wait : instruction.waits) {
    if (wait.blocks_host) RareOf(bound).host_waits.push_back(wait.event);
  }
  hot.special =
      !instruction.place.on_host() || !instruction.waits.empty() || bound.block != nullptr;
  const bool launches =
      instruction.def->kernels[instruction.kernel].place != PlaceKind::kCpu;  // by itself
  hot.context.emplace(launches ? bound.rare->launch_args : bound.args, instruction.attrs.get(),
                      kernel_services);
}

void InstructionRunner::BindLaunch(Bound& bound) {
  const Instruction& instruction = *bound.instruction;
  Rare& rare = RareOf(bound);
  rare.launch_args = bound.args;
  for (size_t arg = 0; arg < instruction.inputs.size(); ++arg) {
    const int flags = InputFlags(instruction, static_cast<int>(arg));
    const Tensor* tensor = bound.args.tensors[arg];
    if ((flags & kNoNeedBuffer) == 0 || tensor == nullptr) continue;
    rare.stand_ins.emplace_back(tensor, std::make_unique<Tensor>());
    rare.launch_args.tensors[arg] = rare.stand_ins.back().second.get();
  }
}

// Where an output's memory comes from. That of persistable variables outlives the core.
Allocator& InstructionRunner::AllocatorOf(const Instruction& instruction, const PlanVar& var) {
  if (var.place.on_host()) {
    if (var.persistable) return SystemAllocator();
    return *services_.pool;
  }
  if (var.persistable) return devices_->heap(var.place).allocator();
  return devices_->allocator(instruction.stream);
}

void InstructionRunner::BindInputs(Bound& bound) {
  const Instruction& instruction = *bound.instruction;
  for (size_t arg = 0; arg < instruction.inputs.size(); ++arg) {
    const VarId var = instruction.inputs[arg];
    const int flags = InputFlags(instruction, static_cast<int>(arg));
    if (var < 0 || plan_.vars[var].kind != VarKind::kLodTensor) continue;
    if ((flags & (kNoNeedBuffer | kTensorArray | kMayBeEmpty)) == 0) bound.read_args.push_back(arg);
  }
}

void InstructionRunner::BindOutputs(Bound& bound, absl::Span<Variable* const> variables) {
  const Instruction& instruction = *bound.instruction;
  Output* const first = outputs_.data() + outputs_.size();
  for (size_t arg = 0; arg < instruction.outputs.size(); ++arg) {
    const VarId var = instruction.outputs[arg];
    if (var < 0 || plan_.vars[var].kind != VarKind::kLodTensor) continue;
    if (IsHiddenOutput(instruction, static_cast<int>(arg))) continue;
    Output output{.tensor = &variables[var]->tensor,
                  .allocator = &AllocatorOf(instruction, plan_.vars[var]),
                  .dtype = instruction.output_dtypes[arg],
                  .layout = instruction.output_layouts[arg]};
    if (!plan_.vars[var].place.on_host()) {
      output.stream = &devices_->stream(instruction.stream);
      if (!plan_.vars[var].persistable) output.pool = &devices_->pool(plan_.vars[var].place);
    }
    output.persistable = plan_.vars[var].persistable;
    if (output.persistable) RareOf(bound).written_persistables.push_back(variables[var]);
    output.goes_on = (OutputFlags(instruction, static_cast<int>(arg)) & kKeepsValue) != 0;
    if (output.goes_on) output.source = output.tensor;
    if (TakesInput(instruction, var)) {
      output.source = output.tensor;
      bound.updates = true;
    }
    for (const InplacePair& pair : instruction.share) {
      if (pair.output != static_cast<int32_t>(arg)) continue;
      // The memory may be the caller's, and the variable outlives the run.
      if (output.persistable && instruction.inputs[pair.input] != var) continue;
      output.source = &variables[instruction.inputs[pair.input]]->tensor;
      output.view = IsView(instruction, pair);
      output.turns = output.view && instruction.def->view_turns;
    }
    outputs_.push_back(output);
  }
  bound.outputs = absl::MakeSpan(first, outputs_.data() + outputs_.size());
  if (bound.updates || WritesPersistables(bound)) {
    RareOf(bound).before.resize(bound.outputs.size());
  }
  if (WritesPersistables(bound)) bound.rare->held.resize(bound.outputs.size());
}

absl::Status InstructionRunner::Run(InstrId id, const RunContext& context) {
  Hot& hot = hot_[id];
  if (hot.special) return RunWithDevices(id, context);
  absl::Status status = Prepare(id, context.infer_all);
  if (status.ok()) status = Call(hot.kernel, *hot.context);
  if (hot.checks) status = AfterKernel(id, std::move(status));
  return status.ok() ? status : Explain(id, status);
}

// Infers shapes where they may have changed and gives the outputs memory.
inline absl::Status InstructionRunner::Prepare(InstrId id, bool infer_all) {
  Hot& hot = hot_[id];
  const bool infers = infer_all || hot.infers;
  if (infers) INTERP_RETURN_IF_ERROR(Infer(bound_[id]));
  if (hot.checks && WritesPersistables(bound_[id])) return GiveMemoryOrUndo(id, infers);
  for (Output& output : hot.outputs) INTERP_RETURN_IF_ERROR(GiveMemory(output));
  return absl::OkStatus();
}

namespace {

// Whether Tensor::AllocateBytes leaves the memory that there is.
bool HasOwn(const Tensor& tensor, size_t size_bytes) {
  const BufferRef& buffer = tensor.buffer();
  return buffer.unique() && buffer->writable && tensor.raw_data() == buffer->data &&
         buffer->size_bytes >= size_bytes;
}

}  // namespace

// The same where persistable variables are written: they keep values and shapes when there is not
// memory for all outputs. `inferred`: just now.
absl::Status InstructionRunner::GiveMemoryOrUndo(InstrId id, bool inferred) {
  const absl::Span<Output> outputs = hot_[id].outputs;
  Rare& rare = *bound_[id].rare;
  absl::Status status;
  for (size_t i = 0; status.ok() && i < outputs.size(); ++i) {
    Output& output = outputs[i];
    const Tensor& tensor = *output.tensor;
    const bool replaced = output.source != &tensor && !HasOwn(tensor, output.size_bytes);
    if (output.persistable && (replaced || !tensor.has_memory())) {
      rare.held[i].emplace().ShareMemory(tensor);
    }
    status = GiveMemory(output);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    Tensor& tensor = *outputs[i].tensor;
    if (!status.ok() && rare.held[i].has_value()) tensor.ShareMemory(*rare.held[i]);
    // Others have lost the memory that was of that size.
    if (!status.ok() && inferred && outputs[i].persistable) CopyMetadata(rare.before[i], tensor);
    rare.held[i].reset();
  }
  return status;
}

absl::Status InstructionRunner::RunWithDevices(InstrId id, const RunContext& context) {
  absl::Status status = AwaitEvents(id);
  if (!status.ok()) return status;
  status = Prepare(id, context.infer_all);
  if (status.ok()) {
    status = bound_[id].instruction->place.on_host() ? RunOnHost(id, context) : Launch(id);
  }
  return NoteEnqueued(id, std::move(status));
}

absl::Status InstructionRunner::AwaitEvents(InstrId id) {
  // The error itself is told when the run ends and nothing is in flight.
  if (devices_ != nullptr && devices_->errors().any()) {
    return absl::CancelledError("work on a device failed");
  }
  const Instruction& instruction = *bound_[id].instruction;
  for (const EventWait& wait : instruction.waits) {
    if (wait.blocks_host) continue;
    const absl::Status waits =
        devices_->stream(instruction.stream).Wait(*services_.events[wait.event]);
    if (!waits.ok()) return Explain(id, waits);
  }
  return absl::OkStatus();
}

absl::Status InstructionRunner::Enqueue(InstrId id) {
  absl::Status status = Prepare(id, /*infer_all=*/false);
  if (status.ok()) status = Launch(id);
  return status.ok() ? status : Explain(id, status);
}

absl::Status InstructionRunner::NoteEnqueued(InstrId id, absl::Status status) {
  const Instruction& instruction = *bound_[id].instruction;
  if (status.ok() && instruction.record >= 0) {
    status = devices_->stream(instruction.stream).Record(*services_.events[instruction.record]);
  }
  if (hot_[id].checks) status = AfterKernel(id, std::move(status));
  return status.ok() ? status : Explain(id, status);
}

absl::Status InstructionRunner::RunOnHost(InstrId id, const RunContext& context) {
  Frame* const block = bound_[id].block;
  if (block != nullptr) block->Enter(context);
  absl::Status status = Call(hot_[id].kernel, *hot_[id].context);
  if (block != nullptr) block->Leave();
  return status;
}

absl::Status InstructionRunner::Launch(InstrId id) {
  Bound& bound = bound_[id];
  const Instruction& instruction = *bound.instruction;
  KernelContext& context = *hot_[id].context;
  Stream& stream = context.stream();
  Work work = context.work();
  Rare& rare = *bound.rare;
  bool reads_peer = false;
  for (const auto& [tensor, stand_in] : rare.stand_ins) CopyMetadata(*tensor, *stand_in);
  for (size_t arg = 0; arg < bound.args.tensors.size(); ++arg) {
    const Tensor* tensor = rare.launch_args.tensors[arg];
    if (tensor == nullptr || !tensor->has_memory()) continue;
    work.bytes += static_cast<int64_t>(tensor->size_bytes());
    if (tensor->place() == instruction.place) {
      devices_->pool(instruction.place).RecordUse(*tensor->buffer().get(), stream);
    }
    reads_peer = reads_peer || ArePeers(tensor->place(), instruction.place);
  }
  if (instruction.def->kernels[instruction.kernel].place != PlaceKind::kCpu) {
    absl::Status status =
        stream.EnqueueKernel(work, [&] { return Call(hot_[id].kernel, context); });
    if (reads_peer) RecordUseOfPeers(bound);  // also of what failed halfway
    return status;
  }
  if (instruction.def->flops != nullptr) work.flops = instruction.def->flops(context);
  return LaunchHostKernel(stream, hot_[id].kernel, rare.launch_args, instruction.attrs.get(),
                          context.services(), work);
}

// What a copy from another device reads, once it is enqueued.
void InstructionRunner::RecordUseOfPeers(const Bound& bound) {
  const Instruction& instruction = *bound.instruction;
  for (const Tensor* tensor : bound.rare->launch_args.tensors) {
    if (tensor == nullptr || !tensor->has_memory()) continue;
    if (!ArePeers(tensor->place(), instruction.place)) continue;
    devices_->pool(tensor->place())
        .RecordUse(*tensor->buffer().get(), devices_->stream(instruction.stream));
  }
}

absl::Span<const int32_t> InstructionRunner::HostWaits(InstrId id) const {
  const Rare* const rare = bound_[id].rare.get();
  return rare == nullptr ? absl::Span<const int32_t>() : rare->host_waits;
}

const RandomSource& InstructionRunner::random(InstrId id) const { return bound_[id].random; }

std::string InstructionRunner::Algorithm(InstrId id) const {
  const KernelState* const state = bound_[id].state.get();
  return state == nullptr ? "" : state->algorithm();
}

KernelContext InstructionRunner::ContextFor(InstrId id, BoundArgs& args) const {
  return {args, bound_[id].instruction->attrs.get(), hot_[id].context->services()};
}

void InstructionRunner::ResetKernelStates() {
  for (Bound& bound : bound_) bound.state.reset();
}

absl::Status InstructionRunner::Infer(Bound& bound) {
  INTERP_RETURN_IF_ERROR(CheckInputs(bound));
  if (bound.rare == nullptr) return InferOutputs(bound);
  std::vector<Tensor>& before = bound.rare->before;
  for (size_t i = 0; i < before.size(); ++i) CopyMetadata(*bound.outputs[i].tensor, before[i]);
  absl::Status status = InferOutputs(bound);
  if (status.ok()) return status;
  for (size_t i = 0; i < before.size(); ++i) CopyMetadata(before[i], *bound.outputs[i].tensor);
  return status;
}

// Of an update, and of what goes on from a value that it has.
bool InstructionRunner::KeepsMemory(const Output& output) {
  return output.source == output.tensor && (!output.goes_on || output.tensor->has_memory());
}

absl::Status InstructionRunner::InferOutputs(Bound& bound) {
  for (Output& output : bound.outputs) {
    Tensor& tensor = *output.tensor;
    if (KeepsMemory(output)) {
      output.size_bytes = tensor.size_bytes();
      if (tensor.dtype != output.dtype) {
        return InvalidArgument("an output that goes on from its value would change from ",
                               Name(tensor.dtype), " to ", Name(output.dtype));
      }
    }
    tensor.dtype = output.dtype;
    tensor.layout = output.layout;
  }
  const OpDef& def = *bound.instruction->def;
  if (def.infer != nullptr) {
    InferContext context(bound.args, bound.instruction->attrs.get());
    INTERP_RETURN_IF_ERROR(bound.updates ? InferUpdate(bound, context) : Call(def.infer, context));
  }
  if (def.dynamic_outputs) return absl::OkStatus();  // the kernel sets shapes and gives memory
  for (Output& output : bound.outputs) INTERP_RETURN_IF_ERROR(NoteShape(output));
  return absl::OkStatus();
}

// The same for an instruction that updates variables in place.
absl::Status InstructionRunner::InferUpdate(Bound& bound, InferContext& context) {
  INTERP_RETURN_IF_ERROR(Call(bound.instruction->def->infer, context));
  for (size_t i = 0; i < bound.outputs.size(); ++i) {
    const Tensor& tensor = *bound.outputs[i].tensor;
    const Tensor& before = bound.rare->before[i];
    if (bound.outputs[i].source != &tensor) continue;
    if (before.shape == tensor.shape && before.lod == tensor.lod) continue;
    reshaped_.store(true, std::memory_order_relaxed);
  }
  return absl::OkStatus();
}

// Why a variable has no value: only blocks may leave out what they are to write.
std::string InstructionRunner::WhyEmpty(VarId id) const {
  for (const Instruction& writer : plan_.instructions) {
    for (int arg = 0; arg < std::ssize(writer.outputs); ++arg) {
      if (writer.outputs[arg] != id || !IsHiddenOutput(writer, arg)) continue;
      return absl::StrCat("what writes it in the block of ", NameOf(writer), " has not run");
    }
  }
  return "nothing has written or loaded it";
}

absl::Status InstructionRunner::CheckInputs(const Bound& bound) const {
  const Instruction& instruction = *bound.instruction;
  for (const int32_t arg : bound.read_args) {
    const Tensor& tensor = *bound.args.tensors[arg];
    const std::string& name = plan_.vars[instruction.inputs[arg]].name;
    if (!tensor.has_memory() && tensor.numel() != 0) {
      return NotFound("input '", name, "' has no value: ", WhyEmpty(instruction.inputs[arg]));
    }
    // What comes from outside may be declared as something else than it is.
    if (TakesDType(instruction, arg, tensor.dtype)) continue;
    return InvalidArgument("input '", name, "' is ", DescribeType(tensor), ", but the plan has ",
                           Name(instruction.dtype), ": the program declares it wrongly");
  }
  return absl::OkStatus();
}

// Checks the shape that was inferred and keeps what giving memory needs to know of it.
absl::Status InstructionRunner::NoteShape(Output& output) {
  const Tensor& tensor = *output.tensor;
  const int rank = tensor.shape.rank();
  if (!tensor.shape.CheckedNumel().has_value()) {
    return InvalidArgument("an output would have shape ", ToString(tensor.shape));
  }
  if (tensor.layout == Layout::kChannelsLast && rank != 4 && rank != 5) {
    return InvalidArgument("an output declared as an image has shape ", ToString(tensor.shape));
  }
  const size_t size_bytes = tensor.size_bytes();
  // Of fewer elements the first ones stay.
  if (KeepsMemory(output) && size_bytes > output.size_bytes) {
    return InvalidArgument("an output that goes on from its value would change from ",
                           output.size_bytes, " bytes to ", DescribeType(tensor));
  }
  output.size_bytes = size_bytes;
  output.fits_source = output.source != nullptr && output.source->size_bytes() == size_bytes &&
                       (output.source->layout == tensor.layout) != output.turns;
  return absl::OkStatus();
}

absl::Status InstructionRunner::GiveMemory(Output& output) {
  Tensor& tensor = *output.tensor;
  if (output.source == nullptr) return tensor.AllocateBytes(*output.allocator, output.size_bytes);
  if (output.source == &tensor) return Own(output);
  if (output.fits_source && output.source->has_memory() &&
      (output.view || (output.source->buffer().unique() && output.source->buffer()->writable))) {
    tensor.ShareMemory(*output.source);
    return absl::OkStatus();
  }
  return tensor.AllocateBytes(*output.allocator, output.size_bytes);
}

// For a variable that is updated in place: keeps the values, on memory that nobody else sees.
absl::Status InstructionRunner::Own(Output& output) {
  Tensor& tensor = *output.tensor;
  if (!tensor.has_memory()) {
    INTERP_RETURN_IF_ERROR(tensor.AllocateBytes(*output.allocator, output.size_bytes));
    if (output.goes_on) std::memset(tensor.mutable_raw_data(), 0, output.size_bytes);
    return absl::OkStatus();
  }
  if (tensor.buffer().unique() && tensor.buffer()->writable) return absl::OkStatus();
  if (output.stream != nullptr) {
    Tensor own = tensor;
    own.DropMemory();
    INTERP_RETURN_IF_ERROR(own.AllocateBytes(*output.allocator, output.size_bytes));
    INTERP_RETURN_IF_ERROR(output.stream->CopyOnDevice(own.mutable_raw_data(), tensor.raw_data(),
                                                       output.size_bytes, {}));
    if (output.pool != nullptr) output.pool->RecordUse(*tensor.buffer().get(), *output.stream);
    tensor = std::move(own);
    return absl::OkStatus();
  }
  const Layout layout = tensor.layout;
  tensor.layout = Layout::kPlain;  // the bytes are copied as they lie
  absl::StatusOr<Tensor> own = tensor.Clone(*output.allocator);
  tensor.layout = layout;
  INTERP_RETURN_IF_ERROR(own.status());
  own->layout = layout;
  tensor = *std::move(own);
  return absl::OkStatus();
}

absl::Status InstructionRunner::AfterKernel(InstrId id, absl::Status status) {
  const Bound& bound = bound_[id];
  if (bound.rare != nullptr) {
    for (Variable* variable : bound.rare->written_persistables) ++variable->version;
  }
  if (!status.ok()) return status;
  if (bound.instruction->def->dynamic_outputs) {
    INTERP_RETURN_IF_ERROR(CheckDTypes(bound));
    INTERP_RETURN_IF_ERROR(KeepPersistables(bound));
  }
  return options_.check_nan_inf ? CheckFinite(id) : absl::OkStatus();
}

// What a kernel has taken from elsewhere (an array, a feed) is to be what later kernels were chosen
// for.
absl::Status InstructionRunner::CheckDTypes(const Bound& bound) {
  for (const Output& output : bound.outputs) {
    const Tensor& tensor = *output.tensor;
    if (tensor.dtype == output.dtype || output.dtype == DType::kUndefined) continue;
    if (!tensor.has_memory()) continue;
    return InvalidArgument("an output is ", DescribeType(tensor), ", but the plan has ",
                           Name(output.dtype), ": the program declares it wrongly");
  }
  return absl::OkStatus();
}

// Kernels that allocate take memory of the core, or share some of it. What outlives the core gets
// its own.
absl::Status InstructionRunner::KeepPersistables(const Bound& bound) {
  for (const Output& output : bound.outputs) {
    Tensor& tensor = *output.tensor;
    if (output.allocator != &SystemAllocator() || !tensor.has_memory()) continue;
    const Allocator* const owner = tensor.buffer()->owner;
    if (owner == &SystemAllocator() || owner == &LastingAllocator()) continue;
    INTERP_ASSIGN_OR_RETURN(tensor, tensor.Clone(SystemAllocator()));
  }
  return absl::OkStatus();
}

absl::Status InstructionRunner::CheckFinite(InstrId id) const {
  const Bound& bound = bound_[id];
  // Also for copies to the host, which may be under way. A block's work is done when its
  // instruction ends.
  if (!bound.instruction->place.on_host()) {
    INTERP_RETURN_IF_ERROR(hot_[id].context->stream().Synchronize());
  }
  for (size_t arg = 0; arg < bound.instruction->outputs.size(); ++arg) {
    const VarId var = bound.instruction->outputs[arg];
    const Tensor* tensor = bound.args.tensors[bound.instruction->inputs.size() + arg];
    if (var < 0 || tensor == nullptr) continue;
    Tensor on_host;
    if (!tensor->place().on_host()) {
      INTERP_ASSIGN_OR_RETURN(on_host,
                              devices_->heap(tensor->place()).Download(*tensor, *services_.pool));
      tensor = &on_host;
    }
    if (HasOnlyFinite(*tensor)) continue;
    return InvalidArgument("output '", plan_.vars[var].name, "' ", DescribeType(*tensor),
                           " contains a NaN or an infinity");
  }
  return absl::OkStatus();
}

absl::Status InstructionRunner::Explain(InstrId id, const absl::Status& status) const {
  constexpr int kMostShown = 8;  // an op may have thousands
  const Bound& bound = bound_[id];
  const Instruction& instruction = *bound.instruction;
  std::string where = NameOf(instruction);
  const char* separator = " (";
  int num_shown = 0;
  for (size_t arg = 0; arg < instruction.inputs.size(); ++arg) {
    const VarId id = instruction.inputs[arg];
    if (id < 0 || plan_.vars[id].kind != VarKind::kLodTensor) continue;
    if (IsHiddenInput(instruction, static_cast<int>(arg))) break;
    if (num_shown++ == kMostShown) {
      absl::StrAppend(&where, separator, "...");
      break;
    }
    absl::StrAppend(&where, separator, plan_.vars[id].name, ": ",
                    DescribeType(*bound.args.tensors[arg]));
    separator = ", ";
  }
  if (*separator == ',') where += ")";
  return Annotate(status, where);
}

}  // namespace interp
