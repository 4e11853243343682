#include <algorithm>

#include "interpreter/verify/checks.h"

namespace interp::verify {
namespace {

// Follows which variables hold something else than what was written under their name.
class OverwrittenFinder {
 public:
  OverwrittenFinder(const Plan& plan, VerifyReport& report)
      : plan_(plan), report_(report), overwriter_(plan.vars.size(), -1), uses_(plan.vars.size()) {}

  void Run() {
    CheckCopies();
    VisitRun();
    CheckWhatBlocksLeave();
    // Values that live on are read by the next run, until that writes them.
    for (size_t id = 0; id < overwriter_.size(); ++id) {
      if (!plan_.vars[id].persistable && plan_.ref_counts[id] > 0) overwriter_[id] = -1;
    }
    next_run_ = true;
    if (std::any_of(overwriter_.begin(), overwriter_.end(), [](InstrId i) { return i >= 0; })) {
      VisitRun();
    }
  }

 private:
  // What the current instruction does to a variable.
  struct Use {
    InstrId id = -1;             // the instruction; all else is of another one unless this fits
    int32_t written = -1;        // output argument that writes it
    int32_t updated = -1;        // input argument that a share pair ties to that output
    int32_t taken_through = -1;  // input argument whose memory another variable takes over
    int32_t sharers = 0;         // other variables that are to use its memory
    bool moves = false;          // it is to use the memory of another variable
  };

  // A constant on a device is copied there once, before the first run.
  void CheckCopies() {
    std::vector<bool> copied(plan_.vars.size(), false);
    for (size_t id = 0; id < copied.size(); ++id) {
      const VarId source = plan_.vars[id].copy_of;
      if (source < 0) continue;
      copied[id] = true;
      copied[source] = true;
    }
    for (size_t i = 0; i < plan_.instructions.size(); ++i) {
      const auto id = static_cast<InstrId>(i);
      for (const VarId var : plan_.instructions[i].outputs) {
        if (var < 0 || !copied[var]) continue;
        Add(report_, {ViolationKind::kOverwritten, id, -1, var, false,
                      absl::StrCat("#", i, " writes it, but it is copied to a device only once")});
      }
    }
  }

  void VisitRun() {
    for (size_t i = 0; i < plan_.instructions.size(); ++i) {
      const auto id = static_cast<InstrId>(i);
      const Instruction& instruction = plan_.instructions[i];
      if (!next_run_) NoteUses(id);
      for (size_t arg = 0; arg < instruction.inputs.size(); ++arg) {
        if (ReadsMemory(instruction, static_cast<int>(arg))) VisitRead(id, static_cast<int>(arg));
      }
      if (!next_run_) NoteOverwritten(id);
      for (int arg = 0; arg < static_cast<int>(instruction.outputs.size()); ++arg) {
        const VarId var = instruction.outputs[arg];
        // A sub-block may leave alone what it could have written.
        if (var >= 0 && !IsHiddenOutput(instruction, arg)) overwriter_[var] = -1;
      }
    }
  }

  // The kernel that runs the block reads its results; its gradient reads what it saves. What is
  // saved at the start is shared, so nothing takes over its memory.
  void CheckWhatBlocksLeave() {
    for (const VarId var : plan_.results) CheckLeft(var, "the kernel that runs the block");
    for (const SavedVar& saved : plan_.saved) {
      if (!saved.at_start) CheckLeft(saved.var, "the gradient of the block");
    }
  }

  void CheckLeft(VarId var, absl::string_view reader) {
    if (overwriter_[var] < 0) return;
    Add(report_, {ViolationKind::kOverwritten, overwriter_[var], -1, var, false,
                  absl::StrCat("#", overwriter_[var], " may write its output over the memory, and ",
                               reader, " reads it after the activation")});
  }

  Use& UseOf(InstrId id, VarId var) {
    if (uses_[var].id != id) uses_[var] = {.id = id};
    return uses_[var];
  }

  void NoteUses(InstrId id) {
    const Instruction& instruction = plan_.instructions[id];
    for (size_t arg = 0; arg < instruction.outputs.size(); ++arg) {
      const VarId var = instruction.outputs[arg];
      if (var >= 0) UseOf(id, var).written = static_cast<int32_t>(arg);
    }
    for (const InplacePair& pair : instruction.share) {
      const VarId in = instruction.inputs[pair.input];
      const VarId out = instruction.outputs[pair.output];
      if (in == out) {
        UseOf(id, out).updated = pair.input;
        continue;
      }
      ++UseOf(id, in).sharers;
      UseOf(id, out).moves = true;
      if (!IsView(instruction, pair)) UseOf(id, in).taken_through = pair.input;
    }
    for (const InplacePair& pair : instruction.share) {
      const VarId in = instruction.inputs[pair.input];
      const Use& use = UseOf(id, in);
      if (use.taken_through != pair.input || (use.written < 0 && use.sharers == 1)) continue;
      Add(report_, {ViolationKind::kOverwritten, id, id, in, false,
                    "two outputs may be written to its memory"});
    }
  }

  void NoteOverwritten(InstrId id) {
    const Instruction& instruction = plan_.instructions[id];
    for (const InplacePair& pair : instruction.share) {
      const VarId in = instruction.inputs[pair.input];
      const bool other = in != instruction.outputs[pair.output];
      if (other && !IsView(instruction, pair)) overwriter_[in] = id;
    }
  }

  bool ReadsMemory(const Instruction& instruction, int arg) const {
    const VarId var = instruction.inputs[arg];
    if (var < 0 || plan_.vars[var].kind != VarKind::kLodTensor) return false;
    return (InputFlags(instruction, arg) & kNoNeedBuffer) == 0;
  }

  void VisitRead(InstrId id, int arg) {
    const VarId var = plan_.instructions[id].inputs[arg];
    const auto add = [&](InstrId first, std::string why) {
      Add(report_, {ViolationKind::kOverwritten, first, id, var, next_run_, std::move(why)});
    };
    if (overwriter_[var] >= 0) {
      add(overwriter_[var], absl::StrCat("#", overwriter_[var],
                                         " may write its output over the memory, and nothing "
                                         "writes the variable anew before #",
                                         id, " reads it"));
    }
    if (next_run_) return;
    if (IsHiddenInput(plan_.instructions[id], arg)) return;
    const Use& use = UseOf(id, var);
    if (use.written >= 0 && use.updated != arg && !MayUpdate(id, arg, use.written)) {
      add(id, "the instruction reads it and writes it, but is not made to do that in place");
    }
    if (use.moves) {
      add(id, "the instruction reads it, but gives it the memory of another input before");
    }
    if (use.taken_through >= 0 && use.taken_through != arg) {
      add(id, "an output may be written over it while it is read through another argument");
    }
  }

  // Whether the op is defined to read and write one variable through these two arguments.
  bool MayUpdate(InstrId id, int32_t in, int32_t out) const {
    const Instruction& instruction = plan_.instructions[id];
    return IsHiddenOutput(instruction, out) || DeclaresShare(instruction, in, out);
  }

  const Plan& plan_;
  VerifyReport& report_;
  std::vector<InstrId> overwriter_;  // by VarId: who may have written over it; -1: nobody
  std::vector<Use> uses_;            // by VarId
  bool next_run_ = false;
};

}  // namespace

void CheckOverwritten(const Plan& plan, VerifyReport& report) {
  OverwrittenFinder(plan, report).Run();
}

}  // namespace interp::verify
