#include "interpreter/run/constant_copies.h"

#include <memory>
#include <utility>

#include "core/constant_elements.h"
#include "interpreter/analysis/select_kernels.h"
#include "interpreter/analysis/transfer_ops.h"
#include "interpreter/run/bound_args.h"

namespace interp {
namespace {

// Runs an op with one input X and one output Out, which is of dtype and layout `to`.
absl::StatusOr<Tensor> RunUnary(Op op, const Tensor& x, const PlanVar& to, const OpRegistry& ops) {
  const OpDef* def = ops.Find(op.type);
  if (def == nullptr) return Unimplemented("op ", op.type, " is not registered");
  Plan plan;
  plan.vars.resize(2);
  plan.vars[0].dtype = x.dtype;
  op.inputs = {{"X", {0}}};
  op.outputs = {{"Out", {1}}};
  INTERP_ASSIGN_OR_RETURN(const Instruction instruction,
                          MakeInstruction(op, *def, Place{}, plan.vars));
  Variable variables[2];
  variables[0].tensor = x;
  Tensor& out = variables[1].tensor;
  out.dtype = to.dtype;
  out.layout = to.layout;
  Variable* const pointers[] = {&variables[0], &variables[1]};
  BoundArgs args = BindArgs(plan, instruction, pointers);
  InferContext infer(args, instruction.attrs.get());
  if (def->infer != nullptr) INTERP_RETURN_IF_ERROR(def->infer(infer));
  INTERP_RETURN_IF_ERROR(out.Allocate(SystemAllocator()));
  std::unique_ptr<KernelState> state;
  KernelContext context(args, instruction.attrs.get(),
                        {.allocator = &SystemAllocator(), .state = &state});
  INTERP_RETURN_IF_ERROR(def->kernels[instruction.kernel].run(context));
  return std::move(out);
}

absl::StatusOr<Tensor> Convert(const PlanVar& var, Tensor value, DeviceSet* devices,
                               const OpRegistry& ops) {
  if (value.layout != var.layout) {
    PlanVar to = var;
    to.dtype = value.dtype;
    INTERP_ASSIGN_OR_RETURN(value, RunUnary(LayoutOp(value.layout, var.layout), value, to, ops));
  }
  if (value.dtype != var.dtype) {
    INTERP_ASSIGN_OR_RETURN(value, RunUnary(CastOp(value.dtype, var.dtype), value, var, ops));
  }
  if (var.place.on_host()) return value;
  return devices->heap(var.place).Upload(value);
}

}  // namespace

absl::StatusOr<Tensor> ConvertedConstant(BlockVar at, const PlanVar& var, const Tensor& constant,
                                         DeviceSet* devices, const OpRegistry& ops,
                                         SharedConstants& shared) {
  const auto make = [&]() -> absl::StatusOr<std::shared_ptr<const void>> {
    INTERP_ASSIGN_OR_RETURN(const ConstantElements elements, ConstantElements::Of(constant));
    absl::StatusOr<Tensor> copy = Convert(var, *elements, devices, ops);
    if (!copy.ok()) return Annotate(copy.status(), absl::StrCat("constant '", var.name, "'"));
    return std::make_shared<const Tensor>(*std::move(copy));
  };
  // Numbers below zero are no instruction's.
  INTERP_ASSIGN_OR_RETURN(const std::shared_ptr<const void> copy,
                          shared.GetOrMake(-1 - at.block, static_cast<uint64_t>(at.var), make));
  return *static_cast<const Tensor*>(copy.get());
}

}  // namespace interp
