#include "interpreter/analysis/fold_constants.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "interpreter/analysis/transfer_ops.h"
#include "interpreter/plan/instruction_rewriter.h"

namespace interp {
namespace {

// More than any program has.
constexpr uint64_t kMostBytes = uint64_t{1} << 50;

class Folder {
 public:
  Folder(const BlockTree& tree, int32_t block, Plan& plan)
      : tree_(tree),
        block_(block),
        plan_(plan),
        writers_(plan.vars.size(), 0),
        read_(plan.vars.size(), false),
        seen_elsewhere_(plan.vars.size(), false),
        maker_(plan.vars.size(), -1) {
    for (const Instruction& instruction : plan.instructions) {
      for (const VarId id : instruction.outputs) {
        if (id >= 0) ++writers_[id];
      }
    }
    for (const std::vector<VarId>* list : {&plan.entries, &plan.results, &plan.inherited}) {
      for (const VarId id : *list) seen_elsewhere_[id] = true;
    }
    for (const SavedVar& saved : plan.saved) seen_elsewhere_[saved.var] = true;
    for (size_t id = 0; id < plan.vars.size(); ++id) {
      if (!IsParameter(static_cast<VarId>(id))) continue;
      const auto bytes = BytesOf(static_cast<VarId>(id), plan.vars[id].dtype).value_or(0);
      constant_bytes_ = std::min(constant_bytes_ + bytes, kMostBytes);  // of any claimed
    }
  }

  void Run() {
    if (!FindCandidates()) return;
    KeepWithinBounds();
    DropUnneeded();
    if (MostAtOnce() <= 2 * (kFoldTotalBytes + constant_bytes_)) Fold();
  }

 private:
  // Which instructions give the same in every run, and may be run ahead. False: none.
  bool FindCandidates() {
    folds_.assign(plan_.instructions.size(), false);
    bool any = false;
    for (size_t i = 0; i < folds_.size(); ++i) {
      const Instruction& instruction = plan_.instructions[i];
      const bool may = MayFold(instruction);
      for (const VarId id : instruction.inputs) {
        if (id >= 0) read_[id] = true;
      }
      if (!may) continue;
      folds_[i] = any = true;
      for (const VarId id : instruction.outputs) {
        if (id >= 0) maker_[id] = static_cast<InstrId>(i);
      }
    }
    return any;
  }

  bool MayFold(const Instruction& instruction) const {
    if (!CanFold(instruction) || instruction.op_index < 0) return false;
    uint64_t input_bytes = 0;
    for (const VarId id : instruction.inputs) {
      if (id < 0) continue;
      if (!IsParameter(id) && maker_[id] < 0) return false;
      // Such casts have no instruction at all.
      if (instruction.op_type == kCastOp && maker_[id] < 0) return false;
      input_bytes += BytesOf(id, plan_.vars[id].dtype).value_or(0);
    }
    uint64_t bytes = 0;
    bool any = false;
    for (size_t arg = 0; arg < instruction.outputs.size(); ++arg) {
      const VarId id = instruction.outputs[arg];
      if (id < 0) continue;
      const std::optional<uint64_t> output = BytesOf(id, instruction.output_dtypes[arg]);
      if (!MayBeConstant(id) || !output.has_value()) return false;
      bytes += *output;
      any = true;
    }
    const bool grows = bytes > kFoldAnywayBytes && bytes / kFoldGrowth > input_bytes;
    return any && !grows;
  }

  // Leaves those in the runs whose results would be too much to keep, with what needs them.
  void KeepWithinBounds() {
    kept_.assign(plan_.vars.size(), !plan_.options.garbage_collection);
    for (size_t i = 0; i < folds_.size(); ++i) {
      if (folds_[i]) continue;
      for (const VarId id : plan_.instructions[i].inputs) {
        if (id >= 0) kept_[id] = true;
      }
    }
    uint64_t left = kFoldTotalBytes + constant_bytes_;
    for (size_t i = 0; i < folds_.size(); ++i) {
      if (!folds_[i]) continue;
      const Instruction& instruction = plan_.instructions[i];
      uint64_t bytes = 0;
      for (size_t arg = 0; arg < instruction.outputs.size(); ++arg) {
        const VarId id = instruction.outputs[arg];
        if (id >= 0 && kept_[id]) bytes += *BytesOf(id, instruction.output_dtypes[arg]);
      }
      folds_[i] = bytes <= left && absl::c_all_of(instruction.inputs, [this](VarId id) {
                    return id < 0 || maker_[id] < 0 || folds_[maker_[id]];
                  });
      // What it reads is kept for it then, if others need that.
      if (!folds_[i]) bytes = BytesOfMade(instruction);
      left -= std::min(left, bytes);
    }
  }

  // What inputs take that are made ahead and not kept for others.
  uint64_t BytesOfMade(const Instruction& instruction) const {
    uint64_t bytes = 0;
    for (const VarId id : instruction.inputs) {
      if (id < 0 || maker_[id] < 0 || !folds_[maker_[id]] || kept_[id]) continue;
      bytes += BytesOf(id, plan_.vars[id].dtype).value_or(0);
    }
    return bytes;
  }

  // The most that results take at a time while they are made.
  uint64_t MostAtOnce() const {
    std::vector<InstrId> last_reader(plan_.vars.size(), -1);
    for (size_t i = 0; i < folds_.size(); ++i) {
      for (const VarId id : plan_.instructions[i].inputs) {
        if (id >= 0) last_reader[id] = static_cast<InstrId>(i);
      }
    }
    uint64_t now = 0;
    uint64_t most = 0;
    std::vector<uint64_t> goes(folds_.size(), 0);  // behind an instruction
    for (size_t i = 0; i < folds_.size(); ++i) {
      if (!folds_[i]) continue;
      const Instruction& instruction = plan_.instructions[i];
      for (size_t arg = 0; arg < instruction.outputs.size(); ++arg) {
        const VarId id = instruction.outputs[arg];
        if (id < 0) continue;
        const uint64_t bytes = *BytesOf(id, instruction.output_dtypes[arg]);
        now += bytes;
        const InstrId last = std::max(last_reader[id], static_cast<InstrId>(i));
        if (!kept_[id] && folds_[last]) goes[last] += bytes;
      }
      most = std::max(most, now);
      now -= goes[i];
    }
    return most;
  }

  // Leaves those in the runs of which nothing is kept and that nothing folded needs.
  void DropUnneeded() {
    std::vector<bool> needed = kept_;
    for (size_t i = folds_.size(); i-- > 0;) {
      if (!folds_[i]) continue;
      const Instruction& instruction = plan_.instructions[i];
      folds_[i] =
          absl::c_any_of(instruction.outputs, [&](VarId id) { return id >= 0 && needed[id]; });
      if (!folds_[i]) continue;
      for (const VarId id : instruction.inputs) {
        if (id >= 0) needed[id] = true;
      }
    }
  }

  void Fold() {
    InstructionRewriter rewriter(plan_.instructions);
    for (size_t i = 0; !rewriter.done(); ++i) {
      Instruction instruction = rewriter.Take();
      if (folds_[i]) {
        Fold(std::move(instruction));
      } else {
        rewriter.Append(std::move(instruction));
      }
    }
    rewriter.Finish();
    for (Instruction& instruction : plan_.instructions) {
      EraseShares(instruction, [&](const InplacePair& pair) {
        return plan_.vars[instruction.inputs[pair.input]].folded;
      });
    }
  }

  // Lists of feeds are constants by name, too, but no tensors.
  bool IsParameter(VarId id) const {
    const PlanVar& var = plan_.vars[id];
    return var.constant && var.kind == VarKind::kLodTensor;
  }

  bool MayBeConstant(VarId id) const {
    const PlanVar& var = plan_.vars[id];
    return id < plan_.num_program_vars && var.kind == VarKind::kLodTensor && !var.persistable &&
           !var.captured && !var.settled && writers_[id] == 1 && !read_[id] && !seen_elsewhere_[id];
  }

  // By the declared shape; nothing where that does not tell.
  std::optional<uint64_t> BytesOf(VarId id, DType dtype) const {
    if (id >= plan_.num_program_vars) return std::nullopt;
    const Var* declared = tree_.Declaration(block_, plan_.vars[id].program_var);
    if (declared == nullptr || declared->dtype == DType::kUndefined) return std::nullopt;
    uint64_t bytes = SizeOf(dtype);
    for (const int64_t dim : declared->dims) {
      if (dim < 0) return std::nullopt;
      const auto factor = static_cast<uint64_t>(dim);
      if (factor != 0 && bytes > (uint64_t{1} << 62) / factor) return std::nullopt;
      bytes *= factor;
    }
    return bytes;
  }

  void Fold(Instruction instruction) {
    instruction.place = Place{};
    EraseShares(instruction, [&](const InplacePair& pair) { return !IsView(instruction, pair); });
    for (const VarId id : instruction.outputs) {
      if (id >= 0) plan_.vars[id].folded = plan_.vars[id].constant = true;
    }
    plan_.folded.push_back(std::move(instruction));
  }

  const BlockTree& tree_;
  const int32_t block_;
  Plan& plan_;
  std::vector<int32_t> writers_;      // by VarId: instructions that write it
  std::vector<bool> read_;            // by VarId: by an instruction so far
  std::vector<bool> seen_elsewhere_;  // by VarId: by who runs the block, or by its gradient
  uint64_t constant_bytes_ = 0;
  std::vector<InstrId> maker_;  // by VarId: the one that may fold; -1: none
  std::vector<bool> folds_;     // by InstrId
  std::vector<bool> kept_;      // by VarId: read by what can never be folded, or never collected
};

}  // namespace

void FoldConstants(const BlockTree& tree, int32_t block, Plan& plan) {
  if (plan.options.fold_constants) Folder(tree, block, plan).Run();
}

}  // namespace interp
