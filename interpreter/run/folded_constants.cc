#include "interpreter/run/folded_constants.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "interpreter/run/constant_cache.h"
#include "interpreter/run/constant_copies.h"
#include "interpreter/run/run_one.h"

namespace interp {
namespace {

// What instructions make without memory of the core, and with nothing kept beyond them.
InstructionRunner::Services WithoutPool(InstructionRunner::Services services,
                                        SharedConstants& shared) {
  services.pool = &SystemAllocator();
  services.shared = &shared;
  return services;
}

}  // namespace

FoldedConstants::FoldedConstants(const Plan& plan, absl::Span<Variable* const> variables,
                                 RunControl& control, const InstructionRunner::Services& services,
                                 const RunnerOptions& options, const OpRegistry& ops)
    : plan_(plan),
      variables_(variables),
      control_(control),
      services_(services),
      options_(options),
      ops_(ops),
      made_(plan.folded.empty()) {}

bool FoldedConstants::MakeAnew() {
  const auto make = [&]() -> absl::StatusOr<std::shared_ptr<const void>> {
    const std::vector<VarId> kept = FindKept();
    INTERP_RETURN_IF_ERROR(Run(kept));
    auto values = std::make_shared<FoldedValues>();
    for (const VarId id : kept) values->emplace_back(id, variables_[id]->tensor);
    return std::shared_ptr<const void>(std::move(values));
  };
  // Numbers below zero are no instruction's.
  const auto values = services_.shared->GetOrMake(-1 - plan_.block, kFoldedKey, make);
  for (const Instruction& instruction : plan_.folded) {
    for (const VarId id : instruction.outputs) {
      if (id >= 0) variables_[id]->tensor.DropMemory();
    }
  }
  absl::Status status = values.status();
  if (status.ok()) {
    for (const auto& [id, tensor] : *static_cast<const FoldedValues*>(values->get())) {
      variables_[id]->tensor = tensor;
    }
    for (size_t id = 0; status.ok() && id < plan_.vars.size(); ++id) {
      if (plan_.vars[id].copy_of < 0 || !IsFolded(plan_, static_cast<VarId>(id))) continue;
      status = Copy(static_cast<VarId>(id));
    }
  }
  made_ = status.ok();
  // A run that is to stop knows its reason.
  if (!made_ && !control_.ShouldStop()) control_.Fail(std::move(status));
  return made_;
}

absl::Status FoldedConstants::Run(const std::vector<VarId>& kept) {
  for (const Instruction& instruction : plan_.folded) {
    for (const VarId id : instruction.outputs) {
      if (id >= 0) variables_[id]->tensor.DropMemory();  // of others now
    }
  }
  const std::vector<std::vector<VarId>> last_uses = LastUses(kept);
  ConstantCache packed;
  InstructionRunner runner(plan_, {.instructions = plan_.folded, .variables = variables_},
                           WithoutPool(services_, packed), options_);
  for (size_t i = 0; i < plan_.folded.size(); ++i) {
    INTERP_RETURN_IF_ERROR(CopyInputs(plan_.folded[i]));
    RunOne({.runner = &runner, .control = &control_}, static_cast<InstrId>(i), {.infer_all = true});
    if (control_.ShouldStop()) return absl::CancelledError("the run is to stop");
    for (const VarId id : last_uses[i]) variables_[id]->tensor.DropMemory();
  }
  return absl::OkStatus();
}

// What it reads in another form than it was made in.
absl::Status FoldedConstants::CopyInputs(const Instruction& instruction) {
  for (const VarId id : instruction.inputs) {
    if (id < 0 || plan_.vars[id].copy_of < 0 || !IsFolded(plan_, id)) continue;
    INTERP_RETURN_IF_ERROR(Copy(id));
  }
  return absl::OkStatus();
}

absl::Status FoldedConstants::Copy(VarId copy) {
  const PlanVar& var = plan_.vars[copy];
  INTERP_ASSIGN_OR_RETURN(
      variables_[copy]->tensor,
      ConvertedConstant({.block = plan_.block, .var = copy}, var, variables_[var.copy_of]->tensor,
                        services_.devices, ops_, *services_.shared));
  return absl::OkStatus();
}

// By folded instruction, the folded variables that it is the last to name and that are not kept.
std::vector<std::vector<VarId>> FoldedConstants::LastUses(const std::vector<VarId>& kept) const {
  std::vector<bool> live(plan_.vars.size(), false);
  for (const VarId id : kept) live[id] = true;
  std::vector<std::vector<VarId>> last(plan_.folded.size());
  for (size_t i = plan_.folded.size(); i-- > 0;) {
    for (const VarIds* const ids : {&plan_.folded[i].inputs, &plan_.folded[i].outputs}) {
      for (const VarId id : *ids) {
        if (id < 0 || live[id] || !plan_.vars[id].folded) continue;
        live[id] = true;
        last[i].push_back(id);
      }
    }
  }
  return last;
}

// Variables that are read by more than folded instructions; all where nothing is collected.
std::vector<VarId> FoldedConstants::FindKept() const {
  std::vector<bool> used(plan_.vars.size(), !plan_.options.garbage_collection);
  for (const Instruction& instruction : plan_.instructions) {
    for (const VarId id : instruction.inputs) {
      if (id >= 0) used[id] = true;
    }
  }
  for (const PlanVar& var : plan_.vars) {
    if (var.copy_of >= 0) used[var.copy_of] = true;
  }
  std::vector<VarId> kept;
  for (const Instruction& instruction : plan_.folded) {
    for (const VarId id : instruction.outputs) {
      if (id >= 0 && used[id]) kept.push_back(id);
    }
  }
  return kept;
}

}  // namespace interp
