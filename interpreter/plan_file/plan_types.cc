#include "interpreter/plan_file/plan_types.h"

#include <algorithm>

#include "interpreter/analysis/bind_instructions.h"
#include "interpreter/analysis/blocks.h"
#include "interpreter/analysis/feed_columns.h"
#include "interpreter/analysis/select_kernels.h"
#include "interpreter/analysis/variable_table.h"
#include "interpreter/plan_file/plan_arguments.h"
#include "passes/op_effects.h"

namespace interp {
namespace {

// What the plan folds is a constant there, and none to the program.
bool IsConstantAs(const PlanVar& var, const PlanVar& expected) {
  if (!var.folded) return var.constant == expected.constant;
  return var.constant && var.kind == VarKind::kLodTensor && !var.persistable && !var.captured &&
         !var.settled;
}

absl::Status CheckDeclaration(const PlanVar& var, const PlanVar& expected) {
  if (var.name == expected.name && var.program_var == expected.program_var &&
      var.kind == expected.kind && var.rank == expected.rank && var.declared == expected.declared &&
      var.persistable == expected.persistable && IsConstantAs(var, expected) &&
      var.captured == expected.captured && var.settled == expected.settled && var.copy_of == -1) {
    return absl::OkStatus();
  }
  return InvalidArgument("variable '", var.name, "' is not as the program declares and uses it");
}

absl::Status WrongCopy(const PlanVar& var) {
  return InvalidArgument("variable '", var.name, "' is no copy of a constant, or is one wrongly");
}

// Of a variable that is the plan's own: it is plain storage or the copy of a constant.
absl::Status CheckOwn(const Plan& plan, const PlanVar& var) {
  const bool copy = var.copy_of != -1;
  if (var.program_var != -1 || var.declared || var.captured || var.settled || var.folded ||
      var.persistable != copy || var.constant != copy) {
    return WrongCopy(var);
  }
  if (!copy) return absl::OkStatus();
  if (var.copy_of < 0 || var.copy_of >= plan.num_program_vars) return WrongCopy(var);
  const PlanVar& original = plan.vars[var.copy_of];
  const bool tensors = original.kind == VarKind::kLodTensor && var.kind == VarKind::kLodTensor;
  return original.constant && tensors && var.rank == original.rank ? absl::OkStatus()
                                                                   : WrongCopy(var);
}

bool SameCaptures(const Plan& plan, const Plan& expected) {
  return std::equal(plan.captures.begin(), plan.captures.end(), expected.captures.begin(),
                    expected.captures.end(), [](const Capture& a, const Capture& b) {
                      return a.var == b.var && a.read == b.read && a.written == b.written;
                    });
}

// Follows the dtypes of variables through the plans.
class TypeChecker {
 public:
  TypeChecker(const Program& program, const std::vector<Plan>& plans, const BlockTree& tree)
      : program_(program), plans_(plans), tree_(tree), now_(plans.size()) {}

  absl::Status Check() {
    for (const int32_t block : tree_.order) {
      INTERP_RETURN_IF_ERROR(Annotate(CheckVariables(block), WhereBlock(block)));
    }
    return CheckBlock(0);
  }

 private:
  static std::string WhereBlock(int32_t block) { return absl::StrCat("the plan of block ", block); }

  // Fills now_[block] with what variables are before the first instruction.
  absl::Status CheckVariables(int32_t block) {
    const Plan& plan = plans_[block];
    Plan expected;
    expected.block = block;
    BuildVariableTable(program_, tree_, block, expected);
    SettleResults(plan, expected);
    if (block == 0) INTERP_RETURN_IF_ERROR(FindFeedsAndFetches(program_, tree_, expected));
    if (plan.feeds != expected.feeds || plan.fetches != expected.fetches ||
        plan.feed_list != expected.feed_list || plan.fetch_list != expected.fetch_list) {
      return InvalidArgument("feeds or fetches are not those of the program");
    }
    if (plan.num_program_vars != expected.num_program_vars || !SameCaptures(plan, expected)) {
      return InvalidArgument("has other variables than the program uses there");
    }
    if (plan.saved != expected.saved || plan.inherited != expected.inherited ||
        plan.forward_block != expected.forward_block ||
        plan.gradient_block != expected.gradient_block) {
      return InvalidArgument("leaves or takes other values for a gradient than the program says");
    }
    INTERP_RETURN_IF_ERROR(CheckStreams(plan));
    for (VarId id = 0; id < plan.num_program_vars; ++id) {
      INTERP_RETURN_IF_ERROR(CheckDeclaration(plan.vars[id], expected.vars[id]));
    }
    std::vector<PlanVar>& now = now_[block] = std::move(expected.vars);
    for (size_t id = now.size(); id < plan.vars.size(); ++id) {
      INTERP_RETURN_IF_ERROR(CheckOwn(plan, plan.vars[id]));
      now.push_back(plan.vars[id]);
      if (now.back().copy_of == -1) now.back().dtype = DType::kUndefined;
    }
    return CheckConstants(plan);
  }

  // All blocks run on the streams of the main one, and no variable lies where there is no stream.
  absl::Status CheckStreams(const Plan& plan) const {
    const std::vector<PlanStream>& streams = plans_[0].streams;
    const auto same = [](const PlanStream& a, const PlanStream& b) {
      return a.name == b.name && a.place == b.place && a.priority == b.priority;
    };
    if (streams.empty() || !streams[0].place.on_host() ||
        !std::equal(streams.begin(), streams.end(), plan.streams.begin(), plan.streams.end(),
                    same)) {
      return InvalidArgument("has other streams than the main block, or none of the host");
    }
    for (const PlanVar& var : plan.vars) {
      const bool there = std::any_of(streams.begin(), streams.end(), [&](const PlanStream& stream) {
        return stream.place == var.place;
      });
      if (there) continue;
      return InvalidArgument("variable '", var.name, "' lies on ", Name(var.place),
                             ", where no stream is");
    }
    return absl::OkStatus();
  }

  // What runs the block takes its results as they are declared. CheckSubBlock compares them with
  // the op's.
  static void SettleResults(const Plan& plan, Plan& expected) {
    for (const VarId id : plan.results) {
      if (id >= expected.num_program_vars) continue;
      PlanVar& var = expected.vars[id];
      if (var.kind == VarKind::kLodTensor) var.settled = true;
    }
  }

  // Nothing writes constants, and they are what the program says.
  absl::Status CheckConstants(const Plan& plan) const {
    for (size_t id = 0; id < plan.vars.size(); ++id) {
      const PlanVar& var = plan.vars[id];
      if (var.constant && !var.folded && var.dtype != now_[plan.block][id].dtype) {
        return InvalidArgument("constant '", var.name, "' is of another dtype");
      }
    }
    for (const Instruction& instruction : plan.instructions) {
      for (const VarId id : instruction.outputs) {
        if (id < 0 || !plan.vars[id].constant) continue;
        return InvalidArgument("constant '", plan.vars[id].name, "' is written");
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckFolded(const Plan& plan, const Instruction& instruction) {
    INTERP_RETURN_IF_ERROR(CheckInstruction(plan, instruction));
    for (const VarId id : instruction.outputs) {
      if (id < 0 || plan.vars[id].dtype == now_[plan.block][id].dtype) continue;
      return InvalidArgument("makes '", plan.vars[id].name, "' of another dtype");
    }
    return absl::OkStatus();
  }

  absl::Status CheckBlock(int32_t block) {
    const Plan& plan = plans_[block];
    for (size_t i = 0; i < plan.folded.size(); ++i) {
      const absl::Status status = CheckFolded(plan, plan.folded[i]);
      if (!status.ok()) {
        return Annotate(status, absl::StrCat(WhereBlock(block), ", folded instruction #", i, " ",
                                             plan.folded[i].op_type));
      }
    }
    for (size_t i = 0; i < plan.instructions.size(); ++i) {
      const absl::Status status = CheckInstruction(plan, plan.instructions[i]);
      if (!status.ok()) {
        return Annotate(status, absl::StrCat(WhereBlock(block), ", instruction #", i, " ",
                                             plan.instructions[i].op_type));
      }
    }
    return absl::OkStatus();
  }

  // Of an op with dynamic outputs a variable that the plan has made is of the type of the one that
  // it stands for; what the op gives is checked when it runs.
  static void TakeDynamicTypes(const Plan& plan, const Instruction& instruction,
                               std::vector<PlanVar>& now) {
    if (!instruction.def->dynamic_outputs) return;
    for (const VarId id : instruction.outputs) {
      if (id < plan.num_program_vars || now[id].dtype != DType::kUndefined) continue;
      now[id].dtype = plan.vars[id].dtype;
    }
  }

  absl::Status CheckInstruction(const Plan& plan, const Instruction& instruction) {
    std::vector<PlanVar>& now = now_[plan.block];
    const Op& op = OpOf(program_, plan, instruction);
    Instruction typed;
    typed.def = instruction.def;
    typed.inputs = instruction.inputs;
    typed.outputs = instruction.outputs;
    typed.input_counts = instruction.input_counts;
    typed.output_counts = instruction.output_counts;
    typed.attrs = instruction.attrs;
    typed.place = instruction.place;
    typed.op_index = instruction.op_index;
    typed.sub_block = instruction.sub_block;
    INTERP_RETURN_IF_ERROR(CheckKinds(instruction, now));
    INTERP_RETURN_IF_ERROR(CheckInputs(instruction, now));
    INTERP_RETURN_IF_ERROR(CheckOpArguments(op, plan, instruction));
    INTERP_RETURN_IF_ERROR(CheckDeclaredShares(plan, instruction));
    TakeDynamicTypes(plan, instruction, now);
    INTERP_RETURN_IF_ERROR(SetTypes(op, typed, now));
    if (instruction.sub_block >= 0) INTERP_RETURN_IF_ERROR(CheckSubBlock(plan, op, typed));
    INTERP_RETURN_IF_ERROR(CheckOutputs(op, instruction, now));
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
  static absl::Status CheckInputs(const Instruction& instruction, const std::vector<PlanVar>& now) {
    if (instruction.dtype == DType::kUndefined) return absl::OkStatus();
    for (int arg = 0; arg < static_cast<int>(instruction.inputs.size()); ++arg) {
      const VarId id = instruction.inputs[arg];
      const int flags = InputFlags(instruction, arg);
      if (id < 0 || (flags & (kAnyDType | kTensorArray | kNoNeedBuffer)) != 0) continue;
      if (now[id].dtype == instruction.dtype || now[id].dtype == DType::kUndefined) continue;
      return InvalidArgument("reads '", now[id].name, "', which is ", Name(now[id].dtype), ", as ",
                             Name(instruction.dtype));
    }
    return absl::OkStatus();
  }

  // The sub-block begins with what its captures and entries are here; sets the dtypes of the hidden
  // outputs of `typed`.
  absl::Status CheckSubBlock(const Plan& plan, const Op& op, Instruction& typed) {
    const Plan& inner = plans_[typed.sub_block];
    const BlockNode& node = tree_.nodes[typed.sub_block];
    if (node.parent != plan.block || node.op != typed.op_index) {
      return InvalidArgument("runs block ", typed.sub_block, ", which its op does not");
    }
    std::vector<PlanVar>& now = now_[plan.block];
    std::vector<PlanVar>& inside = now_[typed.sub_block];
    INTERP_ASSIGN_OR_RETURN(const BlockInterface own, InterfaceOf(program_, op, typed, inner));
    if (own.entries != inner.entries || own.entry_args != inner.entry_args ||
        own.results != inner.results) {
      return InvalidArgument("has other variables in common with block ", inner.block,
                             " than the program says");
    }
    INTERP_RETURN_IF_ERROR(CheckCaptures(plan, typed, inner));
    ForEachCapture(typed, inner, [&](VarId outer_var, VarId inner_var) {
      inside[inner_var].dtype = now[outer_var].dtype;
    });
    for (size_t i = 0; i < inner.entries.size(); ++i) {
      const DType given = now[typed.inputs[inner.entry_args[i]]].dtype;
      if (given != DType::kUndefined) inside[inner.entries[i]].dtype = given;
    }
    for (size_t i = 0; i < inner.inherited.size(); ++i) {
      const VarId left = plans_[inner.forward_block].saved[i].var;
      inside[inner.inherited[i]].dtype = now_[inner.forward_block][left].dtype;
    }
    INTERP_RETURN_IF_ERROR(CheckBlock(inner.block));
    ForEachCapture(typed, inner, [&](VarId outer_var, VarId inner_var) {
      now[outer_var].dtype = inside[inner_var].dtype;
    });
    for (int out = 0; out < static_cast<int>(typed.outputs.size()); ++out) {
      if (!IsHiddenOutput(typed, out)) continue;
      typed.output_dtypes[out] = now[typed.outputs[out]].dtype;
    }
    return absl::OkStatus();
  }

  // Settled variables keep what they are. A mandatory output is left out only where the op keeps
  // its value: the kernel knows.
  static absl::Status CheckOutputs(const Op& op, const Instruction& instruction,
                                   const std::vector<PlanVar>& now) {
    for (int out = 0; out < static_cast<int>(instruction.outputs.size()); ++out) {
      const VarId id = instruction.outputs[out];
      if (IsHiddenOutput(instruction, out)) continue;
      if (id < 0) {
        const int slot = OutputSlotOf(instruction, out);
        const Slot* in_op = op.FindOutput(instruction.def->outputs[slot].name);
        const bool kept =
            in_op != nullptr && in_op->args.size() == 1 && LeavesUntouched(op, in_op->args[0]);
        if (kept || (instruction.def->outputs[slot].flags & (kOptional | kVariadic)) != 0) continue;
        return InvalidArgument("output '", instruction.def->outputs[slot].name, "' is left out");
      }
      const bool tensor = now[id].kind == VarKind::kLodTensor;
      if (!now[id].settled || !tensor || now[id].dtype == instruction.output_dtypes[out]) continue;
      return InvalidArgument("writes '", now[id].name, "', which is ", Name(now[id].dtype), ", as ",
                             Name(instruction.output_dtypes[out]));
    }
    return absl::OkStatus();
  }

  const Program& program_;
  const std::vector<Plan>& plans_;
  const BlockTree& tree_;
  std::vector<std::vector<PlanVar>> now_;  // by block; dtypes as of the instruction looked at
};

}  // namespace

absl::Status CheckPlanTypes(const Program& program, const std::vector<Plan>& plans,
                            const OpRegistry& registry) {
  INTERP_ASSIGN_OR_RETURN(const BlockTree tree, FindBlocks(program, registry));
  if (tree.nodes.size() != plans.size()) {
    return InvalidArgument("there are ", plans.size(), " plans of ", tree.nodes.size(), " blocks");
  }
  std::vector<bool> runs(plans.size(), false);
  int64_t first_number = 0;
  for (const int32_t block : tree.order) {
    runs[block] = true;
    if (plans[block].first_number != first_number) {
      return InvalidArgument("the plan of block ", block, " numbers its instructions from ",
                             plans[block].first_number, ", expected ", first_number);
    }
    first_number += std::ssize(plans[block].instructions);
  }
  for (size_t block = 1; block < plans.size(); ++block) {
    if (runs[block] || plans[block].block == 0) continue;
    return InvalidArgument("there is a plan of block ", block, ", which nothing runs");
  }
  // An instruction may be missing in the plan, and with it the way to what its op runs.
  for (const int32_t block : tree.order) {
    const BlockNode& node = tree.nodes[block];
    if (node.parent < 0) continue;
    const std::vector<Instruction>& from = plans[node.parent].instructions;
    const bool runs = std::any_of(from.begin(), from.end(), [&](const Instruction& instruction) {
      return instruction.op_index == node.op && instruction.sub_block == block;
    });
    if (!runs) return InvalidArgument("no instruction runs block ", block);
  }
  return TypeChecker(program, plans, tree).Check();
}

}  // namespace interp
