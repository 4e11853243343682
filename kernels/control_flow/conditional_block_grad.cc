// conditional_block_grad: runs the gradient of the block on what it left. Where the block did not
// run, or its gradient makes none of an input, the gradient of that input is 0, of the shape that
// it had before the op. (Paddle: ConditionalBlockGradOp in
// fluid/operators/controlflow/conditional_block_op.cc.)
#include "absl/container/flat_hash_set.h"
#include "core/op_def.h"
#include "core/sub_blocks.h"
#include "kernels/control_flow/block_op.h"
#include "kernels/control_flow/gradient_values.h"

namespace interp {
namespace {

using control_flow::ArgumentOrNull;
using control_flow::HasValue;
using control_flow::ShareValue;

constexpr int kInput = 0;
constexpr int kScope = 1;
constexpr int kOutGrad = 2;
constexpr int kInputGrad = 0;

// What the block has of the gradients outside, by argument of Out@GRAD and of Input@GRAD.
struct GradientArguments {
  std::vector<bool> entries;  // a gradient of that output, which its ops may read
  std::vector<bool> results;  // a gradient of that input
  std::vector<bool> written;  // its ops write that
};

absl::Status CheckCounts(const Slot* gradients, absl::string_view name, const Slot* values,
                         absl::string_view of) {
  const size_t num_gradients = gradients == nullptr ? 0 : gradients->args.size();
  const size_t num_values = values == nullptr ? 0 : values->args.size();
  if (num_gradients == 0 || num_gradients == num_values) return absl::OkStatus();
  return InvalidArgument("'", name, "' has ", num_gradients, " arguments, '", of, "' has ",
                         num_values);
}

absl::flat_hash_set<VarId> WrittenBy(const Program& program, const Op& op) {
  absl::flat_hash_set<VarId> written;
  const int32_t block = SubBlockOf(op);
  if (block < 0 || block >= std::ssize(program.blocks)) return written;
  for (const Op& inner : program.blocks[block].ops) {
    for (const Slot& slot : inner.outputs) written.insert(slot.args.begin(), slot.args.end());
  }
  return written;
}

VarId GradientOf(const Program& program, VarId id) {
  return program.Find(GradientName(program.NameOf(id)));
}

absl::StatusOr<GradientArguments> FindArguments(const Program& program, const Op& op) {
  const Slot* const out = op.FindInput("Out");
  const Slot* const out_grad = op.FindInput("Out@GRAD");
  const Slot* const input = op.FindInput("Input");
  const Slot* const input_grad = op.FindOutput("Input@GRAD");
  INTERP_RETURN_IF_ERROR(CheckCounts(out_grad, "Out@GRAD", out, "Out"));
  INTERP_RETURN_IF_ERROR(CheckCounts(input_grad, "Input@GRAD", input, "Input"));
  GradientArguments found;
  for (size_t i = 0; out_grad != nullptr && i < out_grad->args.size(); ++i) {
    found.entries.push_back(program.NameOf(out_grad->args[i]) != kEmptyVarName &&
                            GradientOf(program, out->args[i]) >= 0);
  }
  if (input_grad == nullptr) return found;
  const absl::flat_hash_set<VarId> written = WrittenBy(program, op);
  for (size_t i = 0; i < input_grad->args.size(); ++i) {
    const VarId inside = GradientOf(program, input->args[i]);
    const bool wanted = program.NameOf(input_grad->args[i]) != kEmptyVarName;
    found.results.push_back(wanted && inside >= 0);
    found.written.push_back(wanted && written.contains(inside));
  }
  return found;
}

absl::Status FindBlock(const Program& program, const Op& op, SubBlock& block) {
  INTERP_ASSIGN_OR_RETURN(const GradientArguments found, FindArguments(program, op));
  for (size_t i = 0; i < found.entries.size(); ++i) {
    if (!found.entries[i]) continue;
    const VarId out = op.FindInput("Out")->args[i];
    block.entries.push_back({GradientName(program.NameOf(out)), kOutGrad, static_cast<int>(i)});
  }
  for (size_t i = 0; i < found.results.size(); ++i) {
    if (!found.results[i]) continue;
    block.results.push_back(GradientName(program.NameOf(op.FindInput("Input")->args[i])));
  }
  return absl::OkStatus();
}

GradientArguments ReadArguments(AttrReader& reader) {
  if (reader.program() == nullptr) {
    reader.Fail("runs a block, which is part of a program");
    return {};
  }
  absl::StatusOr<GradientArguments> found = FindArguments(*reader.program(), reader.op());
  if (found.ok()) return *std::move(found);
  reader.Fail(found.status().message());
  return {};
}

absl::Status RunGradient(KernelContext& ctx, StepRecord& record) {
  const auto& arguments = ctx.attrs<GradientArguments>();
  const absl::Span<Variable* const> gradients = ctx.input_variables(kOutGrad);
  size_t entry = 0;
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (arguments.entries[i]) ShareValue(*gradients[i], ctx.block().entry(entry++));
  }
  return ctx.block().RunOn(record);
}

// What the block makes of a tensor's gradient: none where it only finds what comes in, as where a
// loop in the branch overwrites the tensor. Elements of an array that it does not touch pass.
bool IsMade(const Variable& result, bool written) {
  return HasValue(result) && (written || !result.array.empty());
}

absl::Status ConditionalBlockGrad(KernelContext& ctx) {
  const auto& arguments = ctx.attrs<GradientArguments>();
  std::vector<StepRecord>& steps = ctx.input_variable(kScope).steps;
  const bool taken = !steps.empty();
  if (taken) INTERP_RETURN_IF_ERROR(RunGradient(ctx, steps.back()));
  steps.clear();
  const absl::Span<Variable* const> gradients = ctx.output_variables(kInputGrad);
  size_t next_result = 0;
  for (size_t i = 0; i < gradients.size(); ++i) {
    const Variable* const made =
        arguments.results[i] ? &ctx.block().result(next_result++) : nullptr;
    const Variable* const input = ArgumentOrNull(ctx.input_variables(kInput), i);
    if (gradients[i] == nullptr) continue;
    if (taken && made != nullptr && IsMade(*made, arguments.written[i])) {
      ShareValue(*made, *gradients[i]);
    } else if (input != nullptr) {
      const Variable& scopes = ctx.input_variable(kScope);
      INTERP_RETURN_IF_ERROR(control_flow::FillZerosAsNoted(ctx, scopes, i, *input, *gradients[i]));
    }
  }
  return absl::OkStatus();
}

constexpr int kShapes =
    kOptional | kVariadic | kNoNeedBuffer | kAnyDType | kAnyLayout | kMayBeEmpty | kMayBeArray;
constexpr int kGradients =
    kOptional | kVariadic | kAnyDType | kMayBeEmpty | kMayBeArray | kMayBeRows;

INTERP_REGISTER_OP(OpDef{
    .type = "conditional_block_grad",
    .inputs = {{"Input", kShapes},
               {"Scope", kTensorArray},
               {"Out@GRAD", kGradients},
               {"Cond", kShapes},
               {"Out", kShapes}},
    .outputs = {{"Input@GRAD", kOptional | kVariadic | kMayBeArray | kMayBeRows},
                {"Cond@GRAD", kOptional | kVariadic | kOfSubBlock}},
    .parse = ParseAttrs<GradientArguments, ReadArguments>,
    .kernel_dtype = control_flow::NoKernelDType,
    .kernels = {{DType::kUndefined, ConditionalBlockGrad}},
    .dynamic_outputs = true,
    .sub_block = FindBlock,
});

}  // namespace
}  // namespace interp
