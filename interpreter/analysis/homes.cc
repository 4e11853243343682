#include "interpreter/analysis/homes.h"

namespace interp {
namespace {

// Follows the program through all blocks and notes who writes a variable first.
class HomeChooser {
 public:
  explicit HomeChooser(std::vector<Plan>& plans)
      : plans_(plans), seen_(plans.size()), kept_(plans.size()), callers_(plans.size()) {
    for (size_t block = 0; block < plans.size(); ++block) {
      seen_[block].resize(plans[block].vars.size(), false);
      kept_[block].resize(plans[block].vars.size(), false);
    }
  }

  void Run() {
    VisitBlock(0);
    Settle(0);
  }

 private:
  void VisitBlock(int32_t block) {
    for (const Instruction& instruction : plans_[block].instructions) {
      for (int arg = 0; arg < static_cast<int>(instruction.outputs.size()); ++arg) {
        const VarId id = instruction.outputs[arg];
        if (id >= 0 && !IsHiddenOutput(instruction, arg)) NoteWriter(block, id, instruction.place);
      }
      if (instruction.sub_block >= 0) VisitSubBlock(block, instruction);
    }
  }

  void NoteWriter(int32_t block, VarId id, Place place) {
    PlanVar& var = plans_[block].vars[id];
    if (var.kind != VarKind::kLodTensor) return;
    if (!seen_[block][id]) {
      var.place = place;
    } else if (var.persistable && var.place != place) {
      var.place = Place{};
    }
    seen_[block][id] = true;
  }

  void VisitSubBlock(int32_t block, const Instruction& instruction) {
    const int32_t inner = instruction.sub_block;
    callers_[inner] = {.block = block, .instruction = &instruction};
    ForEachCapture(instruction, plans_[inner], [&](VarId outside, VarId inside) {
      if (KernelFollows(instruction, outside)) KeepOnHost(block, outside);
      plans_[inner].vars[inside].place = plans_[block].vars[outside].place;
      seen_[inner][inside] = seen_[block][outside];
    });
    // The kernel writes and reads these, on the host.
    for (const VarId id : plans_[inner].entries) NoteWriter(inner, id, Place{});
    for (const VarId id : plans_[inner].results) NoteWriter(inner, id, Place{});
    Inherit(inner);
    VisitBlock(inner);
    ForEachCapture(instruction, plans_[inner], [&](VarId outside, VarId inside) {
      if (!kept_[block][outside])
        plans_[block].vars[outside].place = plans_[inner].vars[inside].place;
      seen_[block][outside] = seen_[inner][inside];
    });
  }

  // Whatever was chosen before, also where the value comes from: a forward block, or the blocks
  // around.
  void KeepOnHost(int32_t block, VarId id) {
    const Plan& plan = plans_[block];
    plans_[block].vars[id].place = Place{};
    seen_[block][id] = kept_[block][id] = true;
    for (size_t i = 0; i < plan.inherited.size(); ++i) {
      if (plan.inherited[i] != id) continue;
      KeepOnHost(plan.forward_block, plans_[plan.forward_block].saved[i].var);
    }
    const Caller caller = callers_[block];
    if (caller.instruction == nullptr) return;
    ForEachCapture(*caller.instruction, plan, [&](VarId outside, VarId inside) {
      if (inside == id) KeepOnHost(caller.block, outside);
    });
  }

  // A gradient's values lie where its forward block, which is earlier, has left them.
  void Inherit(int32_t block) {
    Plan& plan = plans_[block];
    for (size_t i = 0; i < plan.inherited.size(); ++i) {
      const Plan& forward = plans_[plan.forward_block];
      plan.vars[plan.inherited[i]].place = forward.vars[forward.saved[i].var].place;
      seen_[block][plan.inherited[i]] = true;
    }
  }

  // Whether the kernel reads, between activations, what the block writes.
  static bool KernelFollows(const Instruction& instruction, VarId id) {
    bool written = false;
    for (int arg = 0; arg < static_cast<int>(instruction.outputs.size()); ++arg) {
      written |= instruction.outputs[arg] == id && IsHiddenOutput(instruction, arg);
    }
    return written && TakesInput(instruction, id);
  }

  // Gives captures the places that were chosen in the end.
  void Settle(int32_t block) {
    for (const Instruction& instruction : plans_[block].instructions) {
      if (instruction.sub_block < 0) continue;
      Plan& inner = plans_[instruction.sub_block];
      ForEachCapture(instruction, inner, [&](VarId outside, VarId inside) {
        inner.vars[inside].place = plans_[block].vars[outside].place;
      });
      Inherit(instruction.sub_block);
      Settle(instruction.sub_block);
    }
  }

  struct Caller {
    int32_t block = -1;
    const Instruction* instruction = nullptr;
  };

  std::vector<Plan>& plans_;
  std::vector<std::vector<bool>> seen_;  // by block and VarId: somebody writes it
  std::vector<std::vector<bool>> kept_;  // and KeepOnHost has chosen the host for it
  std::vector<Caller> callers_;          // by block: what runs it; null for the main block
};

}  // namespace

void ChooseHomes(std::vector<Plan>& plans) { HomeChooser(plans).Run(); }

}  // namespace interp
