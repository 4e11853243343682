#include "tests/testing/reference.h"

#include <algorithm>
#include <memory>

#include "core/each_argument.h"
#include "interpreter/analysis/blocks.h"
#include "interpreter/compile/random_ops.h"
#include "tests/testing/slot_dtypes.h"

namespace interp::testing {
namespace {

template <typename From, typename To>
void CastTo(const Tensor& in, Tensor& out) {
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
    CastTo<int32_t, int64_t>(in, out);
  } else if (in.dtype == DType::kInt64 && dtype == DType::kInt32) {
    CastTo<int64_t, int32_t>(in, out);
  } else {
    return Unimplemented("the reference cannot cast ", Name(in.dtype), " to ", Name(dtype));
  }
  return out;
}

DType KernelDType(const Op& op, const OpDef& def, const SlotDTypes& inputs) {
  if (def.kernel_dtype != nullptr) {
    SlotDTypes outputs{.dtypes = {}, .counts = std::vector<int32_t>(def.outputs.size(), 0)};
    return def.kernel_dtype(
        DTypeContext(inputs.AsInputs(), nullptr, DType::kUndefined, outputs.AsOutputs()));
  }
  for (const DType dtype : inputs.dtypes) {
    if (dtype != DType::kUndefined) return dtype;
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

// Where a record stands for what an activation has left: its one value is a position in
// Reference::left_.
Variable Token(size_t position) {
  Variable token;
  token.tensor = Tensor::Of<int64_t>({}, {static_cast<int64_t>(position)});
  return token;
}

bool IsHidden(const SlotDef& slot) { return (slot.flags & kOfSubBlock) != 0; }

}  // namespace

// One activation of a block.
struct Reference::Level {
  int32_t block = 0;
  Level* outer = nullptr;
  RandomState random;
  std::map<std::string, Variable> variables = {};
  Variables* left = nullptr;  // of a gradient's block: by its forward block
};

// The private tensors of one op.
struct Reference::Binding {
  BoundArgs args;
  std::vector<std::unique_ptr<Variable>> copies;  // of inputs, then of outputs
  std::vector<Variable*> targets;                 // by output; null for arrays
  SlotDTypes inputs;
  DType dtype = DType::kUndefined;  // the kernel's
  ParsedAttrs attrs;

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

// Runs the sub-block of an op, each time with variables of its own.
class Reference::BlockOfOp : public BlockRunner {
 public:
  static absl::StatusOr<std::unique_ptr<BlockOfOp>> Make(Reference& reference, Level& outer,
                                                         const Op& op, const OpDef& def) {
    auto made = std::make_unique<BlockOfOp>(reference, outer);
    INTERP_ASSIGN_OR_RETURN(made->block_, SubBlockOf(*reference.program_, op, def));
    SubBlock block;
    INTERP_RETURN_IF_ERROR(def.sub_block(*reference.program_, op, block));
    made->saves_captures_ = block.saves_captures;
    for (const SubBlock::Entry& entry : block.entries) made->Own(entry.name, made->entries_);
    for (const std::string& name : block.results) made->Own(name, made->results_);
    return made;
  }
  BlockOfOp(Reference& reference, Level& outer) : reference_(reference), outer_(outer) {}

  absl::Status Run() override {
    Level level = Start();
    return RunAt(level);
  }
  bool saves() const override { return reference_.IsForward(block_); }
  absl::Status RunAndSave(StepRecord& record) override {
    Level level = Start();
    Variables at_start;
    if (saves_captures_) at_start = reference_.CapturesOf(level);
    INTERP_RETURN_IF_ERROR(RunAt(level));
    Variables left = std::move(level.variables);
    left.merge(at_start);
    record.values.push_back(Token(reference_.left_.size()));
    reference_.left_.push_back(std::move(left));
    return absl::OkStatus();
  }
  absl::Status RunOn(StepRecord& record) override {
    Level level = Start();
    level.left = &reference_.left_[*record.values[0].tensor.data<int64_t>()];
    return RunAt(level);
  }

 private:
  Level Start() {
    return {
        .block = block_,
        .outer = &outer_,
        .random = NestedRandomState(outer_.random, static_cast<uint64_t>(block_), activations_++)};
  }
  absl::Status RunAt(Level& level) {
    for (auto& [name, variable] : own_) level.variables[name].tensor = variable.tensor;
    INTERP_RETURN_IF_ERROR(reference_.RunBlock(level));
    for (auto& [name, variable] : own_) variable.tensor = level.variables[name].tensor;
    return absl::OkStatus();
  }

  void Own(const std::string& name, std::vector<Variable*>& list) { list.push_back(&own_[name]); }

  Reference& reference_;
  Level& outer_;
  int32_t block_ = -1;
  bool saves_captures_ = false;
  uint64_t activations_ = 0;
  std::map<std::string, Variable> own_;  // entries and results
};

Variable& Reference::Find(Level& level, VarId id) {
  const std::string& name = program_->names[id];
  if (persistable_[id]) return parameters_[name];
  for (Level* at = &level;; at = at->outer) {
    if (at->outer == nullptr || declared_[at->block][id]) return at->variables[name];
    if (at->left == nullptr) continue;
    const auto left = at->left->find(name);
    if (left != at->left->end()) return left->second;
  }
}

bool Reference::IsForward(int32_t block) const {
  return std::any_of(program_->blocks.begin(), program_->blocks.end(),
                     [&](const Block& b) { return b.forward_block_idx == block; });
}

// The tensors from around `level` that ops of its block, or of blocks within, mention, but for
// those that an op of the block updates in place.
Reference::Variables Reference::CapturesOf(Level& level) {
  Variables captures;
  std::vector<bool> updated(program_->names.size(), false);
  const auto visit = [&](auto self, int32_t block) -> void {
    for (const Op& op : program_->blocks[block].ops) {
      ArgIds args;
      for (const Slot& slot : op.inputs)
        args.insert(args.end(), slot.args.begin(), slot.args.end());
      const auto num_inputs = static_cast<ptrdiff_t>(args.size());
      for (const VarId id : EachArgument(op.outputs)) {
        const auto end = args.begin() + num_inputs;
        if (block == level.block && std::find(args.begin(), end, id) != end) updated[id] = true;
      }
      for (const Slot& slot : op.outputs) {
        args.insert(args.end(), slot.args.begin(), slot.args.end());
      }
      for (const VarId id : args) {
        if (!persistable_[id] && tensor_[id] && !declared_[level.block][id]) {
          captures[program_->names[id]].tensor = Find(level, id).tensor;
        }
      }
      const Attr* attr = op.FindAttr("sub_block");
      if (attr != nullptr) self(self, std::get<BlockIndex>(attr->value).index);
    }
  };
  visit(visit, level.block);
  for (size_t id = 0; id < updated.size(); ++id) {
    if (updated[id]) captures.erase(program_->names[id]);
  }
  return captures;
}

absl::Status Reference::BindInputs(Level& level, const Op& op, const OpDef& def, Binding& binding) {
  for (const SlotDef& slot_def : def.inputs) {
    const Slot* slot = IsHidden(slot_def) ? nullptr : op.FindInput(slot_def.name);
    const size_t count = slot == nullptr ? 0 : slot->args.size();
    binding.inputs.counts.push_back(static_cast<int32_t>(count));
    for (size_t i = 0; i < count; ++i) {
      binding.inputs.dtypes.push_back(Find(level, slot->args[i]).tensor.dtype);
    }
  }
  binding.dtype = KernelDType(op, def, binding.inputs);
  for (size_t s = 0; s < def.inputs.size(); ++s) {
    const SlotDef& slot_def = def.inputs[s];
    const int32_t count = binding.inputs.counts[s];
    binding.args.input_slots.push_back({static_cast<int32_t>(binding.args.tensors.size()), count});
    for (int32_t i = 0; i < count; ++i) {
      Variable& variable = Find(level, op.FindInput(slot_def.name)->args[i]);
      // Of an op that runs a block an input changes as the block writes it.
      if ((slot_def.flags & kTensorArray) != 0 || def.sub_block != nullptr) {
        binding.Add(&variable);
        continue;
      }
      const bool written = variable.tensor.has_memory() || variable.tensor.numel() == 0;
      if (!written && (slot_def.flags & kMayBeEmpty) == 0) {
        return NotFound(op.type, " reads what nothing has written");
      }
      const bool any_dtype = (slot_def.flags & kAnyDType) != 0;
      INTERP_ASSIGN_OR_RETURN(
          Tensor copy, CopyAs(variable.tensor, any_dtype ? DType::kUndefined : binding.dtype));
      binding.Add(binding.Own(std::move(copy)));
      binding.copies.back()->selected_rows = variable.selected_rows;
    }
  }
  return absl::OkStatus();
}

void Reference::BindOutputs(Level& level, const Op& op, const OpDef& def, Binding& binding) {
  for (const SlotDef& slot_def : def.outputs) {
    const Slot* slot = IsHidden(slot_def) ? nullptr : op.FindOutput(slot_def.name);
    const int32_t count = slot == nullptr ? 0 : static_cast<int32_t>(slot->args.size());
    binding.args.output_slots.push_back({static_cast<int32_t>(binding.args.tensors.size()), count});
    for (int32_t i = 0; i < count; ++i) {
      Variable& variable = Find(level, slot->args[i]);
      const bool array = (slot_def.flags & kTensorArray) != 0;
      binding.targets.push_back(array ? nullptr : &variable);
      binding.Add(array ? &variable : binding.Own({}));
      if (array) continue;
      binding.copies.back()->tensor.dtype = binding.dtype;
      if (rows_[slot->args[i]]) binding.copies.back()->selected_rows.emplace();
    }
  }
}

absl::Status Reference::RunOp(Level& level, const Op& op) {
  const OpDef* def = ops_.Find(op.type);
  if (def == nullptr) return NotFound("no op ", op.type);
  Binding binding;
  INTERP_RETURN_IF_ERROR(BindInputs(level, op, *def, binding));
  BindOutputs(level, op, *def, binding);
  if (def->parse != nullptr) {
    AttrReader reader(op);
    INTERP_ASSIGN_OR_RETURN(binding.attrs, def->parse(reader));
  }
  if (def->infer != nullptr) {
    InferContext infer(binding.args, binding.attrs.get());
    INTERP_RETURN_IF_ERROR(def->infer(infer));
  }
  return RunKernel(level, op, *def, binding);
}

absl::Status Reference::RunKernel(Level& level, const Op& op, const OpDef& def, Binding& binding) {
  const size_t first_output = binding.args.tensors.size() - binding.targets.size();
  for (size_t i = 0; i < binding.targets.size(); ++i) {
    if (binding.targets[i] == nullptr || def.dynamic_outputs) continue;
    INTERP_RETURN_IF_ERROR(binding.args.tensors[first_output + i]->Allocate(SystemAllocator()));
  }
  std::unique_ptr<BlockOfOp> block;
  if (def.sub_block != nullptr) {
    INTERP_ASSIGN_OR_RETURN(block, BlockOfOp::Make(*this, level, op, def));
  }
  std::unique_ptr<KernelState> state;
  const RandomSource random = {&level.random, RandomOpId(*program_, op, def)};
  const KernelFn kernel = KernelFor(def, binding.dtype);
  if (kernel == nullptr) return Unimplemented("no kernel of ", op.type);
  KernelContext context(
      binding.args, binding.attrs.get(),
      {.allocator = &SystemAllocator(), .state = &state, .random = &random, .block = block.get()});
  INTERP_RETURN_IF_ERROR(kernel(context));
  for (size_t i = 0; i < binding.targets.size(); ++i) {
    if (binding.targets[i] == nullptr) continue;
    binding.targets[i]->tensor = *binding.args.tensors[first_output + i];
    binding.targets[i]->selected_rows = binding.args.variables[first_output + i]->selected_rows;
  }
  return absl::OkStatus();
}

absl::Status Reference::RunBlock(Level& level) {
  for (const Op& op : program_->blocks[level.block].ops) {
    if (op.type == "feed") {
      AttrReader reader(op);
      Find(level, op.outputs[0].args[0]).tensor = (*feeds_)[reader.Int("col", 0)];
    } else if (op.type == "fetch") {
      INTERP_ASSIGN_OR_RETURN(Tensor copy,
                              CopyAs(Find(level, op.inputs[0].args[0]).tensor, DType::kUndefined));
      fetched_.push_back(std::move(copy));
    } else {
      INTERP_RETURN_IF_ERROR(RunOp(level, op));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> Reference::Run(Program program,
                                                   const std::vector<Tensor>& feeds) {
  NumberRandomOps(program, ops_);
  program_ = &program;
  feeds_ = &feeds;
  fetched_.clear();
  persistable_.assign(program.names.size(), false);
  declared_.clear();
  left_.clear();
  tensor_.assign(program.names.size(), true);
  rows_.assign(program.names.size(), false);
  for (const Block& block : program.blocks) {
    std::vector<bool>& declared = declared_.emplace_back(program.names.size(), false);
    for (const Var& var : block.vars) {
      declared[var.id] = true;
      if (var.kind != VarKind::kLodTensor) tensor_[var.id] = false;
      if (var.kind == VarKind::kSelectedRows) rows_[var.id] = true;
      if (var.persistable && var.kind == VarKind::kLodTensor) persistable_[var.id] = true;
    }
  }
  Level main{.random = {.step = runs_++}};
  INTERP_RETURN_IF_ERROR(RunBlock(main));
  return std::move(fetched_);
}

}  // namespace interp::testing
