#include "passes/train/addto.h"

#include <algorithm>
#include <utility>

#include "passes/fresh_var.h"
#include "passes/inserted_ops.h"
#include "passes/var_uses.h"

namespace interp {
namespace {

constexpr absl::string_view kSum = "sum";

class Accumulator {
 public:
  Accumulator(Program program, const OpRegistry& ops)
      : program_(std::move(program)), uses_(FindVarUses(program_, ops)) {}

  Program Run() && {
    std::vector<Op>& ops = program_.blocks[0].ops;
    for (size_t i = 0; i < ops.size(); ++i) {
      if (ops[i].type == kSum && IsAccumulation(ops[i])) Rewrite(ops[i]);
    }
    inserted_.PutInto(program_.blocks[0]);
    for (Var& var : new_vars_) program_.blocks[0].vars.push_back(std::move(var));
    return std::move(program_);
  }

 private:
  // All summands are plain values of one type, made once by this block.
  bool IsAccumulation(const Op& op) const {
    if (op.inputs.size() != 1 || op.outputs.size() != 1 || op.outputs[0].args.size() != 1) {
      return false;
    }
    ArgIds summands = op.inputs[0].args;
    if (summands.size() < 2) return false;
    std::sort(summands.begin(), summands.end());
    if (std::adjacent_find(summands.begin(), summands.end()) != summands.end()) return false;
    const Var* out = uses_[op.outputs[0].args[0]].var;
    return out != nullptr && std::all_of(summands.begin(), summands.end(), [&](VarId id) {
             const VarUse& use = uses_[id];
             return use.block == 0 && use.writes == 1 && !use.read_first && use.var != nullptr &&
                    use.var->kind == VarKind::kLodTensor && use.var->dtype == out->dtype &&
                    AddsExactly(use.var->dtype);
           });
  }

  // Partial sums have the precision of the kernel's own total.
  static bool AddsExactly(DType dtype) {
    return dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kInt32 ||
           dtype == DType::kInt64;
  }

  // Nobody needs the variable but its one reader.
  bool DiesWithReader(VarId id) const { return !uses_[id].pinned() && uses_[id].mentions == 2; }

  void Rewrite(Op& sum) {
    ArgIds& args = sum.inputs[0].args;
    // The result takes the LoD of the first summand.
    const bool same_lod = uses_[args[0]].var->lod_level == uses_[args[1]].var->lod_level;
    if (!DiesWithReader(args[0]) && DiesWithReader(args[1]) && same_lod) {
      std::swap(args[0], args[1]);
    }
    if (!DiesWithReader(args[0])) return;
    const VarId out = sum.outputs[0].args[0];
    VarId total = args[0];
    int32_t made = uses_[total].last_write;
    for (size_t k = 1; k + 1 < args.size(); ++k) {
      made = std::max(made, uses_[args[k]].last_write);
      const VarId next = NewPartialSum(out);
      Op& partial = inserted_.AddBefore(static_cast<size_t>(made) + 1, sum);
      partial.inputs[0].args = {total, args[k]};
      partial.outputs[0].args = {next};
      total = next;
    }
    args = {total, args.back()};
  }

  // Declarations are added at the end, since uses_ points to those there are.
  VarId NewPartialSum(VarId out) {
    Var var = *uses_[out].var;
    var.id = FreshVar(program_, absl::StrCat(program_.NameOf(out), "@ADDTO@"), next_partial_sum_);
    var.persistable = var.is_parameter = var.need_check_feed = false;
    var.wire.clear();
    new_vars_.push_back(std::move(var));
    return new_vars_.back().id;
  }

  Program program_;
  const std::vector<VarUse> uses_;
  InsertedOps inserted_;
  std::vector<Var> new_vars_;
  int64_t next_partial_sum_ = 1;
};

}  // namespace

absl::StatusOr<Program> AddTo(Program program, const PassContext& context) {
  return Accumulator(std::move(program), context.ops).Run();
}

}  // namespace interp
