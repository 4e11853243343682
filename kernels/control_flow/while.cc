// while: runs its block as long as Condition holds, which the block computes anew.
// (Paddle: fluid/operators/controlflow/while_op.cc.)
#include "absl/container/flat_hash_set.h"
#include "core/op_def.h"
#include "kernels/control_flow/block_op.h"
#include "kernels/util/gradient_op.h"

namespace interp {
namespace {

constexpr int kCondition = 1;
constexpr int kStepScopes = 1;

absl::Status FindBlock(const Program&, const Op&, SubBlock& block) {
  block.saves_captures = true;
  return absl::OkStatus();
}

absl::Status While(KernelContext& ctx) {
  const Tensor& condition = ctx.input(kCondition);
  BlockRunner& block = ctx.block();
  std::vector<StepRecord>* const steps = block.saves() && ctx.has_output(kStepScopes)
                                             ? &ctx.output_variable(kStepScopes).steps
                                             : nullptr;
  if (steps != nullptr) steps->clear();
  while (true) {
    INTERP_ASSIGN_OR_RETURN(const bool goes_on,
                            control_flow::ReadCondition(condition, "Condition"));
    if (!goes_on) return absl::OkStatus();
    INTERP_RETURN_IF_ERROR(steps == nullptr ? block.Run()
                                            : block.RunAndSave(steps->emplace_back()));
  }
}

using VarSet = absl::flat_hash_set<VarId>;

void AddDeclared(const Block& block, VarSet& declared) {
  for (const Var& var : block.vars) declared.insert(var.id);
}

// Adds what `block`, the blocks around it and their forward blocks declare.
void AddDeclaredAround(const Program& program, int32_t block, VarSet& declared) {
  // Of a damaged program the parents may go round.
  for (size_t depth = 0; block >= 0 && depth <= program.blocks.size(); ++depth) {
    AddDeclared(program.blocks[block], declared);
    const int32_t forward = program.blocks[block].forward_block_idx;
    if (forward > 0) AddDeclared(program.blocks[forward], declared);
    block = program.blocks[block].parent_idx;
  }
}

// What the ops of the gradient's block read that neither they nor anybody around them makes: the
// gradients of the loop's results. In the order in which they are read first.
ArgIds MissingGradients(GradientMaker& maker) {
  const Program& program = maker.program();
  const Block& block = program.blocks[maker.gradient_block()];
  VarSet known = {maker.Empty()};
  AddDeclaredAround(program, block.forward_block_idx, known);
  AddDeclaredAround(program, maker.block(), known);
  // These may be declared already.
  for (const VarId var : maker.OutputGradients("Out")) known.erase(var);
  for (const absl::string_view slot : {"X", "Out"}) {
    const ArgIds args = maker.Arguments(slot);
    known.insert(args.begin(), args.end());
  }
  ArgIds missing;
  for (const Op& op : block.ops) {
    for (const Slot& slot : op.inputs) {
      for (const VarId var : slot.args) {
        if (known.insert(var).second) missing.push_back(var);
      }
    }
    for (const Slot& slot : op.outputs) known.insert(slot.args.begin(), slot.args.end());
  }
  return missing;
}

// The gradients of X that ops of the gradient's block write; @EMPTY@ for the others.
ArgIds WrittenGradients(GradientMaker& maker) {
  VarSet written;
  for (const Op& op : maker.program().blocks[maker.gradient_block()].ops) {
    for (const Slot& slot : op.outputs) written.insert(slot.args.begin(), slot.args.end());
  }
  ArgIds gradients = maker.InputGradients("X");
  for (VarId& gradient : gradients) {
    if (!written.contains(gradient)) gradient = maker.Empty();
  }
  return gradients;
}

// As WhileGradOpMaker of Paddle has it.
absl::Status MakeGradient(GradientMaker& maker) {
  INTERP_RETURN_IF_ERROR(CheckInTraining(maker));
  const ArgIds wanted = WrittenGradients(maker);
  const ArgIds missing = MissingGradients(maker);
  std::vector<std::string> names;
  for (const VarId var : missing) names.push_back(maker.program().NameOf(var));
  Op& gradient = maker.Add("while_grad");
  AddInput(gradient, "X", maker.Arguments("X"));
  AddInput(gradient, "Out", maker.Arguments("Out"));
  AddInput(gradient, "StepScopes", maker.Arguments("StepScopes"));
  AddInput(gradient, "Out@GRAD", missing);
  AddOutput(gradient, "X@GRAD", wanted);
  gradient.attrs = maker.op().attrs;
  SetAttr(gradient, "sub_block", BlockIndex{maker.gradient_block()});
  SetAttr(gradient, "original_output_grad", std::move(names));
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "while",
    .inputs = {{"X", kOptional | kVariadic | kAnyDType | kAnyLayout | kOfSubBlock},
               {"Condition", kAnyDType | kHostInput}},
    .outputs = {{"Out", kOptional | kVariadic | kOfSubBlock},
                {"StepScopes", kOptional | kTensorArray}},
    .kernel_dtype = control_flow::NoKernelDType,
    .infer = control_flow::InferNothing,
    .kernels = {{DType::kUndefined, While}},
    .sub_block = FindBlock,
    .gradient = {.make = MakeGradient},
});

}  // namespace
}  // namespace interp
