#include "passes/train/split_update.h"

#include <algorithm>
#include <utility>

#include "core/edit_op.h"
#include "core/op_role.h"
#include "core/program_print.h"
#include "core/sub_blocks.h"
#include "passes/feed_fetch.h"
#include "passes/make_op.h"
#include "passes/op_effects.h"
#include "passes/prune.h"

namespace interp {
namespace {

// Of one part, by VarId.
struct Uses {
  explicit Uses(size_t num_vars) : open(num_vars), read(num_vars), written(num_vars) {}

  std::vector<bool> open;  // read before it is written
  std::vector<bool> read;
  std::vector<bool> written;
};

class UpdateSplitter {
 public:
  explicit UpdateSplitter(const Program& main)
      : main_(main),
        compute_(main.names.size()),
        update_(main.names.size()),
        by_backward_(main.names.size()),
        persistable_(main.names.size()),
        vars_(main.names.size()) {
    for (const Block& block : main.blocks) {
      for (const Var& var : block.vars)
        persistable_[var.id] = persistable_[var.id] || var.persistable;
    }
    for (const Var& var : main.blocks[0].vars) vars_[var.id] = &var;
  }

  absl::StatusOr<SplitProgram> Run() {
    INTERP_RETURN_IF_ERROR(FindUses());
    split_.compute = split_.update = main_;
    KeepOps(split_.compute, [](const Op& op) { return !IsUpdate(op); });
    KeepOps(split_.update, IsUpdate);
    INTERP_RETURN_IF_ERROR(FindStates());
    INTERP_RETURN_IF_ERROR(PassValues());
    for (size_t id = 0; id < vars_.size(); ++id) {
      if (persistable_[id] || update_.written[id]) {
        split_.fetched_from_update.insert(main_.names[id]);
      }
    }
    return std::move(split_);
  }

 private:
  absl::Status FindUses() {
    const std::vector<Op>& ops = main_.blocks[0].ops;
    int64_t counts[2] = {0, 0};
    for (size_t i = 0; i < ops.size(); ++i) {
      if (IsFeed(ops[i]) || IsFetch(ops[i])) continue;
      const bool update = IsUpdate(ops[i]);
      ++counts[update ? 1 : 0];
      auto [reads, writes] = UsesOf(main_, ops[i]);
      std::erase(writes, main_.Find(kEmptyVarName));
      if (HasSubBlock(ops[i])) reads.insert(reads.end(), writes.begin(), writes.end());
      std::erase(reads, main_.Find(kEmptyVarName));
      if (!update) INTERP_RETURN_IF_ERROR(CheckMayComeFirst(i, reads, writes));
      Note(reads, writes, update ? update_ : compute_);
      if (update || !IsBackward(ops[i])) continue;
      for (const VarId id : writes) by_backward_[id] = true;
    }
    if (counts[0] > 0 && counts[1] > 0) return absl::OkStatus();
    return InvalidArgument("the program has ", counts[0], " ops of forward and backward part and ",
                           counts[1], " of the update by their attribute op_role, expected both");
  }

  static void Note(const std::vector<VarId>& reads, const std::vector<VarId>& writes, Uses& uses) {
    for (const VarId id : reads) {
      uses.read[id] = true;
      uses.open[id] = uses.open[id] || !uses.written[id];
    }
    for (const VarId id : writes) uses.written[id] = true;
  }

  // Op `i` of the compute part runs before all of the update.
  absl::Status CheckMayComeFirst(size_t i, const std::vector<VarId>& reads,
                                 const std::vector<VarId>& writes) const {
    const auto fails = [&](VarId id) {
      return InvalidArgument(DescribeOp(main_, 0, i), ": uses '", main_.NameOf(id),
                             "' after ops of the update do: gradients cannot be computed before "
                             "the update");
    };
    for (const VarId id : reads) {
      if (update_.written[id]) return fails(id);
    }
    for (const VarId id : writes) {
      if (update_.written[id] || update_.read[id]) return fails(id);
    }
    return absl::OkStatus();
  }

  template <typename Wanted>
  static void KeepOps(Program& program, const Wanted& wanted) {
    std::erase_if(program.blocks[0].ops,
                  [&](const Op& op) { return IsFeed(op) || IsFetch(op) || !wanted(op); });
    EmptyUnreachedBlocks(program);
  }

  VarKind KindOf(VarId id) const {
    return vars_[id] == nullptr ? VarKind::kLodTensor : vars_[id]->kind;
  }

  // A gradient that is declared persistable: no step starts with what the one before left in it.
  bool IsPassedState(VarId id) const {
    return persistable_[id] && vars_[id] != nullptr && compute_.written[id] && !compute_.open[id] &&
           update_.open[id];
  }

  // Integers are counters, which all runs of the compute part change alike.
  bool IsGradientSum(VarId id) const {
    const DType dtype = vars_[id] == nullptr ? DType::kUndefined : vars_[id]->dtype;
    return by_backward_[id] && update_.open[id] &&
           (dtype == DType::kUndefined || IsFloating(dtype));
  }

  // Persistable variables that a step changes are values of the compute part like any others.
  absl::Status FindStates() {
    std::vector<bool> changes(vars_.size(), false);
    for (VarId id = 0; id < std::ssize(vars_); ++id) {
      const bool used = compute_.read[id] || compute_.written[id];
      changes[id] = persistable_[id] && used && (compute_.written[id] || update_.written[id]);
      if (!changes[id] || IsPassedState(id)) continue;
      if (KindOf(id) != VarKind::kLodTensor) {
        return Unimplemented("'", main_.NameOf(id),
                             "' is persistable, changes and is no tensor: replicas cannot have "
                             "copies of it");
      }
      if (compute_.open[id]) split_.states_read.push_back(main_.NameOf(id));
      if (compute_.written[id]) split_.states_written.push_back(main_.NameOf(id));
      if (IsGradientSum(id)) split_.gradient_sums.push_back(main_.NameOf(id));
    }
    for (Block& block : split_.compute.blocks) {
      for (Var& var : block.vars) var.persistable = var.persistable && !changes[var.id];
    }
    return absl::OkStatus();
  }

  absl::Status PassValues() {
    INTERP_ASSIGN_OR_RETURN(const std::vector<VarId> data, DataVars(main_));
    for (VarId id = 0; id < std::ssize(vars_); ++id) {
      if (!update_.open[id] || (persistable_[id] && !IsPassedState(id))) continue;
      const std::string& name = main_.NameOf(id);
      if (!compute_.written[id]) {
        if (std::find(data.begin(), data.end(), id) == data.end()) continue;
        return Unimplemented("the update reads '", name, "', which is fed");
      }
      if (KindOf(id) == VarKind::kLodTensor) {
        const std::string passed = persistable_[id] ? PassState(*vars_[id]) : name;
        split_.passed.push_back({.name = passed, .variable = name, .merge = MergeOf(main_, name)});
      } else if (KindOf(id) == VarKind::kSelectedRows) {
        INTERP_RETURN_IF_ERROR(PassRows(*vars_[id]));
      } else {
        return Unimplemented("the update reads '", name,
                             "', which is neither tensor nor selected rows");
      }
    }
    return absl::OkStatus();
  }

  // The update keeps the variable and is given its value as that of another, as persistable ones
  // are not fed. Returns the name of the other.
  std::string PassState(const Var& var) {
    const std::string name = absl::StrCat(main_.NameOf(var.id), "@PASSED");
    Var passed = var;
    passed.persistable = false;
    passed.wire.clear();
    for (Program* part : {&split_.compute, &split_.update}) {
      passed.id = part->Intern(name);
      part->blocks[0].vars.push_back(passed);
    }
    split_.compute.blocks[0].ops.push_back(Convert("assign", var.id, passed.id));
    Op take = Convert("assign", passed.id, var.id);
    SetRole(take, kOptimizeRole);
    std::vector<Op>& update = split_.update.blocks[0].ops;
    update.insert(update.begin(), std::move(take));
    return name;
  }

  // Values and row numbers leave the one part as tensors and become selected rows in the other.
  absl::Status PassRows(const Var& var) {
    const std::string& name = main_.NameOf(var.id);
    if (var.dims.empty() || var.dims[0] <= 0) {
      return Unimplemented("'", name, "' is selected rows of a tensor of unknown height");
    }
    Var values = var;
    values.kind = VarKind::kLodTensor;
    values.dims[0] = -1;
    values.persistable = false;
    values.wire.clear();
    Var rows = values;
    rows.dtype = DType::kInt64;
    rows.dims = {-1, 1};
    const std::string values_name = absl::StrCat(name, "@VALUES");
    const std::string rows_name = absl::StrCat(name, "@ROWS");
    for (Program* part : {&split_.compute, &split_.update}) {
      values.id = part->Intern(values_name);
      rows.id = part->Intern(rows_name);
      part->blocks[0].vars.push_back(values);
      part->blocks[0].vars.push_back(rows);
    }
    std::vector<Op>& ops = split_.compute.blocks[0].ops;
    ops.push_back(Convert("get_tensor_from_selected_rows", var.id, values.id));
    ops.push_back(Convert("extract_rows", var.id, rows.id));
    Op join = Convert("selected_rows_from_tensor", values.id, var.id);
    AddInput(join, "Rows", {rows.id});
    SetAttr(join, "shape", var.dims);
    SetRole(join, kOptimizeRole);
    std::vector<Op>& update = split_.update.blocks[0].ops;
    update.insert(update.begin(), std::move(join));
    split_.passed.push_back({.name = values_name, .variable = name, .merge = Merge::kScaledRows});
    split_.passed.push_back({.name = rows_name, .variable = name, .merge = Merge::kRows});
    return absl::OkStatus();
  }

  static Op Convert(absl::string_view type, VarId x, VarId out) {
    Op op = MakeUnaryOp(type, x, out);
    SetRole(op, kBackwardRole);
    return op;
  }

  const Program& main_;
  Uses compute_;
  Uses update_;
  std::vector<bool> by_backward_;  // by VarId: an op of the backward part writes it
  std::vector<bool> persistable_;  // by VarId
  std::vector<const Var*> vars_;   // by VarId: as block 0 declares it, or null
  SplitProgram split_;
};

}  // namespace

absl::StatusOr<SplitProgram> SplitUpdate(const Program& main) { return UpdateSplitter(main).Run(); }

absl::Status CheckSharesUpdate(const SplitProgram& split, absl::string_view runs) {
  if (!split.gradient_sums.empty()) {
    return Unimplemented("the update reads '", split.gradient_sums[0],
                         "', a persistable variable that the backward part changes: ", runs,
                         " would each add gradients of their own to it");
  }
  return CheckNoRows(split, runs);
}

absl::Status CheckNoRows(const SplitProgram& split, absl::string_view runs) {
  const PassedValue* before = nullptr;
  for (const PassedValue& value : split.passed) {
    // Selected rows are passed as two tensors, the second of which has the numbers of the rows.
    const bool numbers = before != nullptr && before->merge == Merge::kScaledRows &&
                         before->variable == value.variable;
    if (value.merge == Merge::kRows && !numbers) {
      return Unimplemented("the update reads '", value.variable,
                           "', whose rows are samples: ", runs, " have some each");
    }
    before = &value;
  }
  return absl::OkStatus();
}

Merge MergeOf(const Program& program, const std::string& name) {
  const VarId id = program.Find(name);
  for (const Var& var : program.blocks[0].vars) {
    if (var.id != id) continue;
    return !var.dims.empty() && var.dims[0] == -1 ? Merge::kRows : Merge::kMean;
  }
  return Merge::kMean;
}

}  // namespace interp
