#include "interpreter/instruction_runner.h"

#include <cmath>
#include <new>
#include <optional>

#include "interpreter/analysis/storage.h"

namespace interp {

// An output argument that holds a tensor.
struct InstructionRunner::Output {
  Tensor* tensor;
  DType dtype;
  Layout layout;
  // The input whose memory it takes, or null; equal to `tensor` for an op that updates a variable.
  Tensor* source = nullptr;
  bool view = false;
  Allocator* allocator;
  size_t bytes_before = 0;  // of `tensor`, when it is an input, too
};

struct InstructionRunner::Bound {
  const Instruction* instruction;
  KernelFn kernel;
  BoundArgs args;
  std::vector<Output> outputs;
  std::vector<int32_t> read_args;  // input arguments whose memory the kernel reads
  std::vector<Variable*> written_persistables;
  std::unique_ptr<KernelState> state;
  std::optional<KernelContext> context;  // refers to `args` and `state`: Bound does not move
};

namespace {

void BindSlots(const std::vector<VarId>& ids, const std::vector<int32_t>& counts,
               const std::vector<Variable*>& variables, const Plan& plan, BoundArgs& args,
               std::vector<BoundArgs::Range>& slots) {
  size_t arg = 0;
  for (const int32_t count : counts) {
    slots.push_back({static_cast<int32_t>(args.tensors.size()), count});
    for (int32_t i = 0; i < count; ++i, ++arg) {
      Variable* variable = ids[arg] < 0 ? nullptr : variables[ids[arg]];
      args.variables.push_back(variable);
      args.tensors.push_back(variable == nullptr ? nullptr : &variable->tensor);
      args.constant.push_back(ids[arg] >= 0 && plan.vars[ids[arg]].constant);
    }
  }
}

template <typename T>
bool AllFinite(const Tensor& tensor) {
  const T* data = tensor.data<T>();
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    if (!std::isfinite(static_cast<double>(data[i]))) return false;
  }
  return true;
}

bool HasOnlyFinite(const Tensor& tensor) {
  if (!tensor.has_memory()) return true;
  switch (tensor.dtype) {
    case DType::kFloat32:
      return AllFinite<float>(tensor);
    case DType::kFloat64:
      return AllFinite<double>(tensor);
    case DType::kFloat16:
      return AllFinite<float16>(tensor);
    case DType::kBFloat16:
      return AllFinite<bfloat16>(tensor);
    default:
      return true;
  }
}

// Kernels return errors; what the standard library throws below them ends here.
absl::Status Compute(KernelFn kernel, KernelContext& context) {
  try {
    return kernel(context);
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("the system has no memory left");
  } catch (const std::exception& e) {
    return absl::InternalError(e.what());
  }
}

}  // namespace

InstructionRunner::InstructionRunner(const Plan& plan, const std::vector<Variable*>& variables,
                                     HostPool& pool, SharedConstants& shared,
                                     const RunnerOptions& options)
    : plan_(plan), options_(options), bound_(plan.instructions.size()) {
  for (size_t i = 0; i < bound_.size(); ++i) {
    const Instruction& instruction = plan.instructions[i];
    Bound& bound = bound_[i];
    bound.instruction = &instruction;
    bound.kernel = instruction.def->kernels[instruction.kernel].run;
    BindSlots(instruction.inputs, instruction.input_counts, variables, plan, bound.args,
              bound.args.input_slots);
    BindSlots(instruction.outputs, instruction.output_counts, variables, plan, bound.args,
              bound.args.output_slots);
    for (size_t arg = 0; arg < instruction.inputs.size(); ++arg) {
      const VarId id = instruction.inputs[arg];
      const int flags = instruction.def->inputs[InputSlotOf(instruction, arg)].flags;
      if (id < 0 || plan.vars[id].kind != VarKind::kLodTensor) continue;
      if ((flags & (kNoNeedBuffer | kTensorArray)) == 0) bound.read_args.push_back(arg);
    }
    for (size_t arg = 0; arg < instruction.outputs.size(); ++arg) {
      const VarId id = instruction.outputs[arg];
      if (id < 0 || plan.vars[id].kind != VarKind::kLodTensor) continue;
      Output output{.tensor = &variables[id]->tensor,
                    .dtype = instruction.output_dtypes[arg],
                    .layout = instruction.output_layouts[arg],
                    .allocator = &pool};
      if (plan.vars[id].persistable) {
        output.allocator = &SystemAllocator();  // outlives the core
        bound.written_persistables.push_back(variables[id]);
      }
      for (const VarId in : instruction.inputs) {
        if (in == id) output.source = output.tensor;
      }
      for (const InplacePair& pair : instruction.share) {
        if (pair.output != static_cast<int32_t>(arg)) continue;
        output.source = &variables[instruction.inputs[pair.input]]->tensor;
        output.view = IsView(instruction, pair);
      }
      bound.outputs.push_back(output);
    }
    bound.context.emplace(bound.args, instruction.attrs.get(),
                          KernelContext::Services{.allocator = &pool,
                                                  .shared = &shared,
                                                  .state = &bound.state,
                                                  .instruction = static_cast<int>(i),
                                                  .num_threads = options.num_threads});
  }
}

InstructionRunner::~InstructionRunner() = default;

absl::Status InstructionRunner::Run(InstrId id, bool infer_all) {
  Bound& bound = bound_[id];
  const bool dynamic_outputs = bound.instruction->def->dynamic_outputs;
  absl::Status status;
  if (infer_all || bound.instruction->dynamic_shape) status = Infer(bound);
  if (status.ok() && !dynamic_outputs) {
    for (Output& output : bound.outputs) {
      status = GiveMemory(output);
      if (!status.ok()) break;
    }
  }
  if (status.ok()) status = Compute(bound.kernel, *bound.context);
  for (Variable* variable : bound.written_persistables) ++variable->version;
  if (status.ok() && options_.check_nan_inf) status = CheckFinite(bound);
  return status.ok() ? status : Explain(bound, status);
}

void InstructionRunner::ResetKernelStates() {
  for (Bound& bound : bound_) bound.state.reset();
}

absl::Status InstructionRunner::Infer(Bound& bound) {
  INTERP_RETURN_IF_ERROR(CheckInputs(bound));
  for (Output& output : bound.outputs) {
    Tensor& tensor = *output.tensor;
    if (output.source == &tensor) {
      output.bytes_before = tensor.size_bytes();
      if (tensor.dtype != output.dtype) {
        return InvalidArgument("an output that is an input, too, would change from ",
                               Name(tensor.dtype), " to ", Name(output.dtype));
      }
    }
    tensor.dtype = output.dtype;
    tensor.layout = output.layout;
  }
  if (bound.instruction->def->infer == nullptr) return absl::OkStatus();
  InferContext context(bound.args, bound.instruction->attrs.get());
  INTERP_RETURN_IF_ERROR(bound.instruction->def->infer(context));
  return CheckOutputs(bound);
}

absl::Status InstructionRunner::CheckInputs(const Bound& bound) const {
  for (const int32_t arg : bound.read_args) {
    const Tensor& tensor = *bound.args.tensors[arg];
    if (tensor.has_memory() || tensor.numel() == 0) continue;
    return NotFound("input '", plan_.vars[bound.instruction->inputs[arg]].name,
                    "' has no value: nothing has written or loaded it");
  }
  return absl::OkStatus();
}

absl::Status InstructionRunner::CheckOutputs(const Bound& bound) const {
  for (const Output& output : bound.outputs) {
    const Tensor& tensor = *output.tensor;
    const int rank = tensor.shape.rank();
    if (!tensor.shape.CheckedNumel().has_value()) {
      return InvalidArgument("an output would have shape ", ToString(tensor.shape));
    }
    if (output.layout == Layout::kChannelsLast && rank != 4 && rank != 5) {
      return InvalidArgument("an output declared as an image has shape ", ToString(tensor.shape));
    }
    if (output.source == &tensor && tensor.size_bytes() != output.bytes_before) {
      return InvalidArgument("an output that is an input, too, would change from ",
                             output.bytes_before, " bytes to ", DescribeType(tensor));
    }
  }
  return absl::OkStatus();
}

absl::Status InstructionRunner::GiveMemory(Output& output) {
  Tensor& tensor = *output.tensor;
  if (output.source == &tensor) {  // updated in place: keep the values, on memory of its own
    const bool writable =
        tensor.buffer().unique() && tensor.buffer()->writable && tensor.has_memory();
    if (writable || !tensor.has_memory()) return absl::OkStatus();
    Layout layout = tensor.layout;
    tensor.layout = Layout::kPlain;  // the bytes are copied as they lie
    INTERP_ASSIGN_OR_RETURN(Tensor own, tensor.Clone(*output.allocator));
    own.layout = layout;
    tensor = std::move(own);
    return absl::OkStatus();
  }
  if (output.source != nullptr && output.source->has_memory() &&
      output.source->layout == tensor.layout &&
      output.source->size_bytes() == tensor.size_bytes() &&
      (output.view || (output.source->buffer().unique() && output.source->buffer()->writable))) {
    tensor.ShareMemory(*output.source);
    return absl::OkStatus();
  }
  return tensor.Allocate(*output.allocator);
}

absl::Status InstructionRunner::CheckFinite(const Bound& bound) const {
  for (size_t arg = 0; arg < bound.instruction->outputs.size(); ++arg) {
    const VarId id = bound.instruction->outputs[arg];
    const Tensor* tensor = bound.args.tensors[bound.instruction->inputs.size() + arg];
    if (id < 0 || tensor == nullptr || HasOnlyFinite(*tensor)) continue;
    return InvalidArgument("output '", plan_.vars[id].name, "' ", DescribeType(*tensor),
                           " contains a NaN or an infinity");
  }
  return absl::OkStatus();
}

absl::Status InstructionRunner::Explain(const Bound& bound, const absl::Status& status) const {
  const Instruction& instruction = *bound.instruction;
  std::string where = instruction.op_index >= 0
                          ? absl::StrCat("op #", instruction.op_index, " ", instruction.op_type)
                          : absl::StrCat("inserted ", instruction.op_type);
  const char* separator = " (";
  for (size_t arg = 0; arg < instruction.inputs.size(); ++arg) {
    const VarId id = instruction.inputs[arg];
    if (id < 0 || plan_.vars[id].kind != VarKind::kLodTensor) continue;
    absl::StrAppend(&where, separator, plan_.vars[id].name, ": ",
                    DescribeType(*bound.args.tensors[arg]));
    separator = ", ";
  }
  if (*separator == ',') where += ")";
  return Annotate(status, where);
}

}  // namespace interp
