#include "tests/testing/reference.h"

#include <memory>

#include "interpreter/random_ops.h"

namespace interp::testing {
namespace {

template <typename From, typename To>
void CastElements(const Tensor& in, Tensor& out) {
  for (int64_t i = 0; i < in.numel(); ++i) {
    out.mutable_data<To>()[i] = static_cast<To>(in.data<From>()[i]);
  }
}

absl::StatusOr<Tensor> CopyAs(const Tensor& in, DType dtype) {
  if (!in.has_memory()) return in;
  if (in.dtype == dtype || dtype == DType::kUndefined) return in.Clone(SystemAllocator());
  Tensor out;
  out.shape = in.shape;
  out.lod = in.lod;
  out.dtype = dtype;
  INTERP_RETURN_IF_ERROR(out.Allocate(SystemAllocator()));
  if (in.dtype == DType::kInt32 && dtype == DType::kInt64) {
    CastElements<int32_t, int64_t>(in, out);
  } else if (in.dtype == DType::kInt64 && dtype == DType::kInt32) {
    CastElements<int64_t, int32_t>(in, out);
  } else {
    return Unimplemented("the reference cannot cast ", Name(in.dtype), " to ", Name(dtype));
  }
  return out;
}

DType KernelDType(const Op& op, const OpDef& def, const std::vector<std::vector<DType>>& inputs) {
  std::vector<std::vector<DType>> outputs(def.outputs.size());
  if (def.kernel_dtype != nullptr) {
    return def.kernel_dtype(DTypeContext(inputs, nullptr, DType::kUndefined, outputs));
  }
  for (const std::vector<DType>& slot : inputs) {
    for (const DType dtype : slot) {
      if (dtype != DType::kUndefined) return dtype;
    }
  }
  AttrReader reader(op);
  return def.inputs.empty() ? reader.Type("dtype", DType::kFloat32) : DType::kUndefined;
}

KernelFn KernelFor(const OpDef& def, DType dtype) {
  KernelFn generic = nullptr;
  for (const KernelDef& kernel : def.kernels) {
    if (kernel.dtype == dtype) return kernel.run;
    if (kernel.dtype == DType::kUndefined) generic = kernel.run;
  }
  return generic;
}

}  // namespace

// The private tensors of one op.
struct Reference::Binding {
  BoundArgs args;
  std::vector<std::unique_ptr<Variable>> copies;  // of inputs, then of outputs
  std::vector<Variable*> targets;                 // by output; null for arrays
  std::vector<std::vector<DType>> input_dtypes;
  DType dtype = DType::kUndefined;  // the kernel's

  void Add(Variable* variable) {
    args.variables.push_back(variable);
    args.tensors.push_back(variable == nullptr ? nullptr : &variable->tensor);
    args.constant.push_back(false);
  }
  Variable* Own(Tensor tensor) {
    copies.push_back(std::make_unique<Variable>());
    copies.back()->tensor = std::move(tensor);
    return copies.back().get();
  }
};

Variable& Reference::Find(const Program& program, VarId id) {
  return (persistable_[id] ? parameters_ : locals_)[program.names[id]];
}

absl::Status Reference::BindInputs(const Program& program, const Op& op, const OpDef& def,
                                   Binding& binding) {
  for (const SlotDef& slot_def : def.inputs) {
    std::vector<DType>& dtypes = binding.input_dtypes.emplace_back();
    if (const Slot* slot = op.FindInput(slot_def.name)) {
      for (const VarId id : slot->args) dtypes.push_back(Find(program, id).tensor.dtype);
    }
  }
  binding.dtype = KernelDType(op, def, binding.input_dtypes);
  for (const SlotDef& slot_def : def.inputs) {
    const Slot* slot = op.FindInput(slot_def.name);
    const int32_t count = slot == nullptr ? 0 : static_cast<int32_t>(slot->args.size());
    binding.args.input_slots.push_back({static_cast<int32_t>(binding.args.tensors.size()), count});
    for (int32_t i = 0; i < count; ++i) {
      Variable& variable = Find(program, slot->args[i]);
      if ((slot_def.flags & kTensorArray) != 0) {
        binding.Add(&variable);
        continue;
      }
      const bool any_dtype = (slot_def.flags & kAnyDType) != 0;
      INTERP_ASSIGN_OR_RETURN(
          Tensor copy, CopyAs(variable.tensor, any_dtype ? DType::kUndefined : binding.dtype));
      binding.Add(binding.Own(std::move(copy)));
    }
  }
  return absl::OkStatus();
}

void Reference::BindOutputs(const Program& program, const Op& op, const OpDef& def,
                            Binding& binding) {
  for (const SlotDef& slot_def : def.outputs) {
    const Slot* slot = op.FindOutput(slot_def.name);
    const int32_t count = slot == nullptr ? 0 : static_cast<int32_t>(slot->args.size());
    binding.args.output_slots.push_back({static_cast<int32_t>(binding.args.tensors.size()), count});
    for (int32_t i = 0; i < count; ++i) {
      Variable& variable = Find(program, slot->args[i]);
      const bool array = (slot_def.flags & kTensorArray) != 0;
      binding.targets.push_back(array ? nullptr : &variable);
      binding.Add(array ? &variable : binding.Own({}));
      if (!array) binding.copies.back()->tensor.dtype = binding.dtype;
    }
  }
}

absl::Status Reference::RunOp(const Program& program, const Op& op) {
  const OpDef* def = ops_.Find(op.type);
  if (def == nullptr) return NotFound("no op ", op.type);
  Binding binding;
  INTERP_RETURN_IF_ERROR(BindInputs(program, op, *def, binding));
  BindOutputs(program, op, *def, binding);

  ParsedAttrs attrs;
  if (def->parse != nullptr) {
    AttrReader reader(op);
    INTERP_ASSIGN_OR_RETURN(attrs, def->parse(reader));
  }
  if (def->infer != nullptr) {
    InferContext infer(binding.args, attrs.get());
    INTERP_RETURN_IF_ERROR(def->infer(infer));
  }
  const size_t first_output = binding.args.tensors.size() - binding.targets.size();
  for (size_t i = 0; i < binding.targets.size(); ++i) {
    if (binding.targets[i] == nullptr || def->dynamic_outputs) continue;
    INTERP_RETURN_IF_ERROR(binding.args.tensors[first_output + i]->Allocate(SystemAllocator()));
  }
  std::unique_ptr<KernelState> state;
  const RandomState random_state = {.step = runs_ - 1};
  const RandomSource random = {&random_state, RandomOpId(program, op, *def)};
  KernelContext context(binding.args, attrs.get(),
                        {.allocator = &SystemAllocator(), .state = &state, .random = &random});
  INTERP_RETURN_IF_ERROR(KernelFor(*def, binding.dtype)(context));
  for (size_t i = 0; i < binding.targets.size(); ++i) {
    if (binding.targets[i] == nullptr) continue;
    binding.targets[i]->tensor = *binding.args.tensors[first_output + i];
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> Reference::Run(Program program,
                                                   const std::vector<Tensor>& feeds) {
  NumberRandomOps(program, ops_);
  ++runs_;
  locals_.clear();
  persistable_.assign(program.names.size(), false);
  for (const Var& var : program.blocks[0].vars) {
    persistable_[var.id] = var.persistable && var.kind == VarKind::kLodTensor;
  }
  std::vector<Tensor> fetched;
  for (const Op& op : program.blocks[0].ops) {
    if (op.type == "feed") {
      AttrReader reader(op);
      Find(program, op.outputs[0].args[0]).tensor = feeds[reader.Int("col", 0)];
    } else if (op.type == "fetch") {
      INTERP_ASSIGN_OR_RETURN(
          Tensor copy, CopyAs(Find(program, op.inputs[0].args[0]).tensor, DType::kUndefined));
      fetched.push_back(std::move(copy));
    } else {
      INTERP_RETURN_IF_ERROR(RunOp(program, op));
    }
  }
  return fetched;
}

}  // namespace interp::testing
