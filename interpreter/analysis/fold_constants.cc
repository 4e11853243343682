#include "interpreter/analysis/fold_constants.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "interpreter/analysis/transfer_ops.h"
#include "interpreter/plan/instruction_rewriter.h"

namespace interp {
namespace {

class Folder {
 public:
  Folder(const BlockTree& tree, int32_t block, Plan& plan)
      : tree_(tree),
        block_(block),
        plan_(plan),
        writers_(plan.vars.size(), 0),
        read_(plan.vars.size(), false),
        seen_elsewhere_(plan.vars.size(), false) {
    for (const Instruction& instruction : plan.instructions) {
      for (const VarId id : instruction.outputs) {
        if (id >= 0) ++writers_[id];
      }
    }
    for (const std::vector<VarId>* list : {&plan.entries, &plan.results, &plan.inherited}) {
      for (const VarId id : *list) seen_elsewhere_[id] = true;
    }
    for (const SavedVar& saved : plan.saved) seen_elsewhere_[saved.var] = true;
    uint64_t constants = 0;
    for (size_t id = 0; id < plan.vars.size(); ++id) {
      if (IsConstantTensor(static_cast<VarId>(id))) {
        constants += BytesOf(static_cast<VarId>(id), plan.vars[id].dtype).value_or(0);
      }
    }
    left_bytes_ = kFoldTotalBytes + constants / 4;
  }

  void Run() {
    InstructionRewriter rewriter(plan_.instructions);
    while (!rewriter.done()) {
      Instruction instruction = rewriter.Take();
      const bool folds = Folds(instruction);
      for (const VarId id : instruction.inputs) {
        if (id >= 0) read_[id] = true;
      }
      if (folds) {
        Fold(std::move(instruction));
      } else {
        rewriter.Append(std::move(instruction));
      }
    }
    rewriter.Finish();
    if (plan_.folded.empty()) return;
    for (Instruction& instruction : plan_.instructions) {
      EraseShares(instruction, [&](const InplacePair& pair) {
        return plan_.vars[instruction.inputs[pair.input]].folded;
      });
    }
  }

 private:
  bool Folds(const Instruction& instruction) {
    if (!CanFold(instruction) || instruction.op_index < 0) return false;
    uint64_t input_bytes = 0;
    for (int arg = 0; arg < static_cast<int>(instruction.inputs.size()); ++arg) {
      const VarId id = instruction.inputs[arg];
      if (id < 0) continue;
      if (!IsConstantTensor(id)) return false;
      // Such casts have no instruction at all.
      if (instruction.op_type == kCastOp && !plan_.vars[id].folded) return false;
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
    if (!any || grows || bytes > left_bytes_) return false;
    left_bytes_ -= bytes;
    return true;
  }

  // Lists of feeds are constants by name, too, but no tensors.
  bool IsConstantTensor(VarId id) const {
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
  uint64_t left_bytes_ = 0;
};

}  // namespace

void FoldConstants(const BlockTree& tree, int32_t block, Plan& plan) {
  if (plan.options.fold_constants) Folder(tree, block, plan).Run();
}

}  // namespace interp
