#include "interpreter/analysis/select_kernels.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "core/find_kernel.h"
#include "core/infer_dtypes.h"
#include "core/program_print.h"
#include "interpreter/analysis/bind_instructions.h"
#include "interpreter/analysis/form.h"
#include "interpreter/analysis/transfer_ops.h"
#include "interpreter/plan/instruction_rewriter.h"

namespace interp {
namespace {

DTypes DTypesOf(absl::Span<const VarId> args, const std::vector<PlanVar>& vars) {
  DTypes dtypes;
  for (const VarId id : args) dtypes.push_back(id < 0 ? DType::kUndefined : vars[id].dtype);
  return dtypes;
}

// A tensor is what its last writer made it, and so are the elements of an array, but for what is
// settled: that is what it is declared as.
void NoteWritten(PlanVar& var, DType dtype) {
  if (var.kind != VarKind::kLodTensor && var.kind != VarKind::kLodTensorArray &&
      var.kind != VarKind::kSelectedRows) {
    return;
  }
  if (!var.settled || var.dtype == DType::kUndefined) var.dtype = dtype;
}

// The arguments of the definition's own slots, which come before the hidden ones.
absl::Span<const VarId> OwnArgs(const VarIds& args, const ArgCounts& counts, size_t num_slots) {
  return absl::MakeConstSpan(args).first(
      args.size() - static_cast<size_t>(counts.size() > num_slots ? counts.back() : 0));
}

LayoutRule LayoutOf(const OpDef& def, const Instruction& instruction) {
  const KernelDef& kernel = def.kernels[instruction.kernel];
  if (kernel.place != PlaceKind::kCpu) return kernel.layout.value_or(LayoutRule::kPlain);
  if (def.layout_rule != nullptr)
    return def.layout_rule(instruction.attrs.get(), instruction.dtype);
  return kernel.layout.value_or(def.layout);
}

bool IsGradient(const OpDef& def) { return absl::EndsWith(def.type, "_grad"); }

// What an op is computed in. Floats of 16 bits are float32 where the op has no kernel for them, and
// so are gradients of integers float64, which Paddle passes on wherever a program casts a float to
// an integer. Inputs are cast then, and what the op gives is of the wider type; KernelSelector
// gives integers back.
DType ComputedIn(const OpDef& def, const void* attrs, const Instruction& instruction) {
  const DType dtype = instruction.dtype;
  const auto has = [&](DType candidate) {
    return FindKernel(def, candidate, attrs, instruction.place.kind).ok();
  };
  const bool half = dtype == DType::kFloat16 || dtype == DType::kBFloat16;
  const bool gradient = IsWhole(dtype) && IsGradient(def);
  if ((!half && !gradient) || has(dtype)) return dtype;
  // The host's kernel is exact.
  if (gradient && FindKernel(def, dtype, attrs, PlaceKind::kCpu).ok()) return dtype;
  const DType wider = half ? DType::kFloat32 : DType::kFloat64;
  return has(wider) ? wider : dtype;
}

}  // namespace

absl::Status SetTypes(const Op& op, Instruction& instruction, std::vector<PlanVar>& vars) {
  const OpDef& def = *instruction.def;
  const absl::Span<const VarId> in =
      OwnArgs(instruction.inputs, instruction.input_counts, def.inputs.size());
  const absl::Span<const VarId> out =
      OwnArgs(instruction.outputs, instruction.output_counts, def.outputs.size());
  const DTypes input_dtypes = DTypesOf(in, vars);
  DTypes& output_dtypes = instruction.output_dtypes;
  output_dtypes = DTypesOf(out, vars);
  const DTypeContext::Inputs inputs{input_dtypes, instruction.input_counts};
  const DTypeContext::Outputs outputs{absl::MakeSpan(output_dtypes), instruction.output_counts};
  const void* attrs = instruction.attrs.get();
  instruction.dtype = KernelDType(def, op, attrs, inputs, outputs);
  instruction.dtype = ComputedIn(def, attrs, instruction);
  INTERP_ASSIGN_OR_RETURN(instruction.kernel,
                          FindKernel(def, instruction.dtype, attrs, instruction.place.kind));
  instruction.layout_rule = LayoutOf(def, instruction);
  InferDTypes(def, attrs, instruction.dtype, inputs, outputs);
  for (size_t arg = 0; arg < out.size(); ++arg) {
    if (out[arg] >= 0) NoteWritten(vars[out[arg]], output_dtypes[arg]);
  }
  for (size_t arg = out.size(); arg < instruction.outputs.size(); ++arg) {
    output_dtypes.push_back(vars[instruction.outputs[arg]].dtype);
  }
  instruction.output_layouts.assign(instruction.outputs.size(), Layout::kPlain);
  return absl::OkStatus();
}

absl::StatusOr<Instruction> MakeInstruction(const Op& op, const OpDef& def, Place place,
                                            std::vector<PlanVar>& vars) {
  INTERP_ASSIGN_OR_RETURN(Instruction instruction, BindInsertedOp(op, def, place, vars));
  const absl::Status typed = SetTypes(op, instruction, vars);
  if (!typed.ok()) return Annotate(typed, absl::StrCat("inserted ", op.type));
  return instruction;
}

const Op& OpOf(const Program& program, const Plan& plan, const Instruction& instruction) {
  return instruction.op_index >= 0 ? program.blocks[plan.block].ops[instruction.op_index]
                                   : plan.inserted_ops[instruction.inserted_op];
}

namespace {

class KernelSelector {
 public:
  KernelSelector(const Program& program, const OpRegistry& registry, std::vector<Plan>& plans)
      : program_(program),
        assign_(registry.Find("assign")),
        cast_(registry.Find(kCastOp)),
        plans_(plans),
        at_start_(plans.size()) {}

  absl::StatusOr<std::vector<std::vector<DType>>> Run() {
    INTERP_RETURN_IF_ERROR(VisitBlock(0));
    return std::move(at_start_);
  }

 private:
  absl::Status VisitBlock(int32_t block) {
    Plan& plan = plans_[block];
    at_start_[block].reserve(plan.vars.size());
    for (const PlanVar& var : plan.vars) at_start_[block].push_back(var.dtype);
    InstructionRewriter rewriter(plan.instructions);
    while (!rewriter.done()) {
      Instruction instruction = rewriter.Take();
      const int32_t index = instruction.op_index;
      const absl::Status status = Visit(plan, std::move(instruction), rewriter);
      if (!status.ok()) return Annotate(status, DescribeOp(program_, block, index));
    }
    rewriter.Finish();
    return absl::OkStatus();
  }

  absl::Status Visit(Plan& plan, Instruction&& instruction, InstructionRewriter& rewriter) {
    const DType asked = GradientDType(plan, instruction);
    INTERP_RETURN_IF_ERROR(ChooseKernel(plan, instruction));
    if (instruction.sub_block >= 0) INTERP_RETURN_IF_ERROR(VisitSubBlock(plan, instruction));
    const bool widened = IsWhole(asked) && instruction.dtype == DType::kFloat64;
    const std::vector<std::pair<VarId, VarId>> split =
        widened ? SplitWidened(plan, instruction) : SplitSameNames(plan, instruction);
    const Place place = instruction.place;
    rewriter.Append(std::move(instruction));
    for (const auto& [fresh, original] : split) {
      INTERP_ASSIGN_OR_RETURN(Instruction added, widened
                                                     ? Convert(plan, fresh, original, asked, place)
                                                     : Move(plan, fresh, original, place));
      rewriter.Append(std::move(added));
    }
    return absl::OkStatus();
  }

  // The dtype that a gradient asks its kernel for; kUndefined for other ops.
  DType GradientDType(const Plan& plan, const Instruction& instruction) const {
    const OpDef& def = *instruction.def;
    if (!IsGradient(def) || instruction.sub_block >= 0) return DType::kUndefined;
    const DTypes inputs = DTypesOf(instruction.inputs, plan.vars);
    DTypes outputs = DTypesOf(instruction.outputs, plan.vars);
    return KernelDType(def, OpOf(program_, plan, instruction), instruction.attrs.get(),
                       {inputs, instruction.input_counts},
                       {absl::MakeSpan(outputs), instruction.output_counts});
  }

  static const KernelDef& KernelOf(const Instruction& instruction) {
    return instruction.def->kernels[instruction.kernel];
  }

  absl::Status ChooseKernel(Plan& plan, Instruction& instruction) const {
    const Op& op = OpOf(program_, plan, instruction);
    const absl::Status typed = SetTypes(op, instruction, plan.vars);
    const bool has_row = typed.ok() || instruction.place.on_host() || !absl::IsUnimplemented(typed);
    if (has_row) INTERP_RETURN_IF_ERROR(typed);
    if (!has_row || (!instruction.place.on_host() && KernelOf(instruction).host_only)) {
      AddFallback(plan, op.type);
      instruction.place = {};
      INTERP_RETURN_IF_ERROR(SetTypes(op, instruction, plan.vars));
    }
    if (KernelOf(instruction).inplace) return absl::OkStatus();
    EraseShares(instruction, [&](const InplacePair& pair) { return !IsView(instruction, pair); });
    return absl::OkStatus();
  }

  // The sub-block begins with what its captures and entries are here, and leaves what it made them.
  absl::Status VisitSubBlock(Plan& outer, Instruction& instruction) {
    Plan& inner = plans_[instruction.sub_block];
    ForEachCapture(instruction, inner, [&](VarId outer_var, VarId inner_var) {
      inner.vars[inner_var].dtype = outer.vars[outer_var].dtype;
    });
    for (size_t i = 0; i < inner.entries.size(); ++i) {
      const DType given = outer.vars[instruction.inputs[inner.entry_args[i]]].dtype;
      // A gradient that nothing made, and nobody declares outside, is what the block says it is.
      if (given != DType::kUndefined) inner.vars[inner.entries[i]].dtype = given;
    }
    for (size_t i = 0; i < inner.inherited.size(); ++i) {
      const Plan& forward = plans_[inner.forward_block];
      inner.vars[inner.inherited[i]].dtype = forward.vars[forward.saved[i].var].dtype;
    }
    INTERP_RETURN_IF_ERROR(VisitBlock(instruction.sub_block));
    ForEachCapture(instruction, inner, [&](VarId outer_var, VarId inner_var) {
      outer.vars[outer_var].dtype = inner.vars[inner_var].dtype;
    });
    for (int out = 0; out < static_cast<int>(instruction.outputs.size()); ++out) {
      if (!IsHiddenOutput(instruction, out)) continue;
      instruction.output_dtypes[out] = outer.vars[instruction.outputs[out]].dtype;
    }
    return absl::OkStatus();
  }

  // Redirects outputs that name an input without being declared inplace to fresh variables; returns
  // (fresh, original) pairs. Hidden arguments are the sub-block's business.
  static std::vector<std::pair<VarId, VarId>> SplitSameNames(Plan& plan, Instruction& instruction) {
    std::vector<std::pair<VarId, VarId>> split;
    for (int out = 0; out < static_cast<int>(instruction.outputs.size()); ++out) {
      const VarId id = instruction.outputs[out];
      if (id < 0 || plan.vars[id].kind != VarKind::kLodTensor) continue;
      if (IsHiddenOutput(instruction, out) || !ReadsOtherwise(instruction, out)) continue;
      instruction.outputs[out] = AddFresh(plan, id, instruction.output_dtypes[out]);
      split.emplace_back(instruction.outputs[out], id);
    }
    return split;
  }

  // Redirects the outputs of a gradient of integers, which are float64, to fresh variables.
  static std::vector<std::pair<VarId, VarId>> SplitWidened(Plan& plan, Instruction& instruction) {
    std::vector<std::pair<VarId, VarId>> split;
    for (size_t out = 0; out < instruction.outputs.size(); ++out) {
      const VarId id = instruction.outputs[out];
      if (id < 0 || plan.vars[id].kind != VarKind::kLodTensor) continue;
      if (instruction.output_dtypes[out] != DType::kFloat64) continue;
      instruction.outputs[out] = AddFresh(plan, id, DType::kFloat64);
      split.emplace_back(instruction.outputs[out], id);
    }
    instruction.share.clear();
    return split;
  }

  // A variable of the plan's own in place of `id`.
  static VarId AddFresh(Plan& plan, VarId id, DType dtype) {
    PlanVar fresh = plan.vars[id];
    absl::StrAppend(&fresh.name, "@out", plan.vars.size());
    fresh.program_var = -1;
    fresh.dtype = dtype;
    fresh.persistable = fresh.constant = fresh.declared = fresh.captured = fresh.settled = false;
    plan.vars.push_back(std::move(fresh));
    return static_cast<VarId>(plan.vars.size() - 1);
  }

  // Whether the instruction has output `out` as an input, too, in a way that is no update in place.
  static bool ReadsOtherwise(const Instruction& instruction, int out) {
    for (int in = 0; in < static_cast<int>(instruction.inputs.size()); ++in) {
      if (instruction.inputs[in] != instruction.outputs[out] || IsHiddenInput(instruction, in)) {
        continue;
      }
      if (!DeclaresShare(instruction, in, out) || IsView(instruction, {in, out})) return true;
    }
    return false;
  }

  absl::StatusOr<Instruction> Move(Plan& plan, VarId from, VarId to, Place place) const {
    if (assign_ == nullptr) {
      return Unimplemented("output '", plan.vars[to].name, "' is also an input");
    }
    Op op;
    op.type = "assign";
    return Insert(plan, std::move(op), *assign_, from, to, place);
  }

  absl::StatusOr<Instruction> Convert(Plan& plan, VarId from, VarId to, DType dtype,
                                      Place place) const {
    if (cast_ == nullptr) {
      return Unimplemented("output '", plan.vars[to].name, "' is a gradient of integers");
    }
    return Insert(plan, CastOp(DType::kFloat64, dtype), *cast_, from, to, place);
  }

  // The instruction X=from -> Out=to, one of those inserted.
  static absl::StatusOr<Instruction> Insert(Plan& plan, Op op, const OpDef& def, VarId from,
                                            VarId to, Place place) {
    op.inputs = {{"X", {from}}};
    op.outputs = {{"Out", {to}}};
    INTERP_ASSIGN_OR_RETURN(Instruction move, MakeInstruction(op, def, place, plan.vars));
    move.inserted_op = static_cast<int32_t>(plan.inserted_ops.size());
    plan.inserted_ops.push_back(std::move(op));
    return move;
  }

  const Program& program_;
  const OpDef* const assign_;
  const OpDef* const cast_;
  std::vector<Plan>& plans_;
  std::vector<std::vector<DType>> at_start_;  // by block and VarId
};

}  // namespace

absl::StatusOr<std::vector<std::vector<DType>>> SelectKernels(const Program& program,
                                                              const OpRegistry& registry,
                                                              std::vector<Plan>& plans) {
  return KernelSelector(program, registry, plans).Run();
}

}  // namespace interp
