#include "interpreter/plan_file/plan_types.h"

#include "interpreter/analysis/feed_columns.h"
#include "interpreter/analysis/select_kernels.h"
#include "interpreter/analysis/variable_table.h"

namespace interp {
namespace {

absl::Status CheckDeclaration(const PlanVar& var, const PlanVar& declared) {
  if (var.kind == declared.kind && var.rank == declared.rank && var.declared == declared.declared &&
      var.persistable == declared.persistable) {
    return absl::OkStatus();
  }
  return InvalidArgument("variable '", var.name, "' is not as the program declares it");
}

absl::Status CheckFeedsAndFetches(const Program& program, const Plan& plan) {
  Plan expected;
  INTERP_RETURN_IF_ERROR(FindFeedsAndFetches(program, expected));
  if (plan.feeds == expected.feeds && plan.fetches == expected.fetches &&
      plan.feed_list == expected.feed_list && plan.fetch_list == expected.fetch_list) {
    return absl::OkStatus();
  }
  return InvalidArgument("feeds or fetches are not those of the program");
}

// Follows the dtypes of variables through the plan.
class TypeChecker {
 public:
  TypeChecker(const Program& program, const Plan& plan)
      : program_(program), plan_(plan), now_(BuildVariableTable(program)) {}

  absl::Status Check() {
    INTERP_RETURN_IF_ERROR(CheckFeedsAndFetches(program_, plan_));
    INTERP_RETURN_IF_ERROR(CheckVariables());
    for (size_t i = 0; i < plan_.instructions.size(); ++i) {
      const absl::Status status = CheckInstruction(plan_.instructions[i]);
      if (!status.ok()) {
        return Annotate(status,
                        absl::StrCat("instruction #", i, " ", plan_.instructions[i].op_type));
      }
    }
    return absl::OkStatus();
  }

 private:
  // Fills now_ with what variables are before the first instruction.
  absl::Status CheckVariables() {
    for (size_t id = 0; id < now_.size(); ++id) {
      INTERP_RETURN_IF_ERROR(CheckDeclaration(plan_.vars[id], now_[id]));
      if (plan_.vars[id].copy_of != -1) return WrongCopy(plan_.vars[id]);
    }
    for (size_t id = now_.size(); id < plan_.vars.size(); ++id) {
      PlanVar var = plan_.vars[id];
      const bool copy = var.copy_of != -1;
      if (var.declared || var.persistable != copy) return WrongCopy(var);
      if (copy) {
        if (var.copy_of < 0 || var.copy_of >= plan_.num_program_vars) return WrongCopy(var);
        const PlanVar& original = plan_.vars[var.copy_of];
        if (!original.constant || original.kind != VarKind::kLodTensor) return WrongCopy(var);
        var.dtype = now_[var.copy_of].dtype;
      } else {
        var.dtype = DType::kUndefined;
      }
      now_.push_back(std::move(var));
    }
    return CheckConstants();
  }

  static absl::Status WrongCopy(const PlanVar& var) {
    return InvalidArgument("variable '", var.name, "' is no copy of a constant, or is one wrongly");
  }

  absl::Status CheckConstants() const {
    std::vector<bool> written(plan_.vars.size(), false);
    for (const Instruction& instruction : plan_.instructions) {
      for (const VarId id : instruction.outputs) {
        if (id >= 0) written[id] = true;
      }
    }
    for (size_t id = 0; id < plan_.vars.size(); ++id) {
      const PlanVar& var = plan_.vars[id];
      if (var.constant != (var.persistable && !written[id]) ||
          (var.constant && var.dtype != now_[id].dtype)) {
        return InvalidArgument("variable '", var.name, "' is constant, or has a dtype, wrongly");
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckInstruction(const Instruction& instruction) {
    const Op& op = instruction.op_index >= 0 ? program_.blocks[0].ops[instruction.op_index]
                                             : plan_.inserted_ops[instruction.inserted_op];
    Instruction typed;
    typed.def = instruction.def;
    typed.inputs = instruction.inputs;
    typed.outputs = instruction.outputs;
    typed.input_counts = instruction.input_counts;
    typed.output_counts = instruction.output_counts;
    typed.attrs = instruction.attrs;
    typed.place = instruction.place;
    INTERP_RETURN_IF_ERROR(CheckInputs(instruction));
    INTERP_RETURN_IF_ERROR(SetTypes(op, typed, now_));
    if (typed.dtype == instruction.dtype && typed.kernel == instruction.kernel &&
        typed.layout_rule == instruction.layout_rule &&
        typed.output_dtypes == instruction.output_dtypes) {
      return absl::OkStatus();
    }
    return InvalidArgument("its kernel is for ", Name(instruction.dtype),
                           ", by its inputs it is one for ", Name(typed.dtype),
                           ", or layout rule or output dtypes differ");
  }

  // Kernels read inputs as what they are themselves, but where a slot says otherwise.
  absl::Status CheckInputs(const Instruction& instruction) const {
    if (instruction.dtype == DType::kUndefined) return absl::OkStatus();
    size_t arg = 0;
    for (size_t slot = 0; slot < instruction.input_counts.size(); ++slot) {
      const int flags = instruction.def->inputs[slot].flags;
      for (int32_t i = 0; i < instruction.input_counts[slot]; ++i, ++arg) {
        const VarId id = instruction.inputs[arg];
        if (id < 0 || (flags & (kAnyDType | kTensorArray | kNoNeedBuffer)) != 0) continue;
        if (now_[id].dtype == instruction.dtype || now_[id].dtype == DType::kUndefined) continue;
        return InvalidArgument("reads '", now_[id].name, "', which is ", Name(now_[id].dtype),
                               ", as ", Name(instruction.dtype));
      }
    }
    return absl::OkStatus();
  }

  const Program& program_;
  const Plan& plan_;
  std::vector<PlanVar> now_;  // dtypes as of the instruction that is looked at
};

}  // namespace

absl::Status CheckPlanTypes(const Program& program, const Plan& plan) {
  return TypeChecker(program, plan).Check();
}

}  // namespace interp
