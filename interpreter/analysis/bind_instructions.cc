#include "interpreter/analysis/bind_instructions.h"

#include <algorithm>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "core/base/annotate.h"
#include "core/device/device_maker.h"
#include "core/program_print.h"
#include "interpreter/analysis/variable_table.h"
#include "passes/op_effects.h"

namespace interp {
namespace {

// From an argument as the op has it to a VarId of the plan; -1 for @EMPTY@.
using ToVar = absl::FunctionRef<VarId(VarId)>;

bool HasArguments(const Slot& slot, ToVar to_var) {
  return std::any_of(slot.args.begin(), slot.args.end(), [&](VarId id) { return to_var(id) >= 0; });
}

absl::Status CheckKnown(const std::vector<Slot>& slots, const std::vector<SlotDef>& defs,
                        ToVar to_var, absl::string_view side) {
  for (const Slot& slot : slots) {
    const bool known = std::any_of(defs.begin(), defs.end(),
                                   [&](const SlotDef& def) { return def.name == slot.name; });
    if (!known && HasArguments(slot, to_var)) {
      return Unimplemented("has ", side, " slot '", slot.name,
                           "', which interp does not know; known: ",
                           absl::StrJoin(defs, " ", [](std::string* out, const SlotDef& def) {
                             absl::StrAppend(out, def.name);
                           }));
    }
  }
  return absl::OkStatus();
}

// Fills arguments and counts of one side of an instruction.
absl::Status BindSlots(const std::vector<Slot>& slots, const std::vector<SlotDef>& defs,
                       ToVar to_var, absl::string_view side, VarIds& args, ArgCounts& counts) {
  INTERP_RETURN_IF_ERROR(CheckKnown(slots, defs, to_var, side));
  for (const SlotDef& def : defs) {
    const auto slot =
        std::find_if(slots.begin(), slots.end(), [&](const Slot& s) { return s.name == def.name; });
    const bool present =
        slot != slots.end() && (def.flags & kOfSubBlock) == 0 && HasArguments(*slot, to_var);
    if (!present && (def.flags & (kOptional | kOfSubBlock)) == 0) {
      return InvalidArgument(side, " '", def.name, "' is missing");
    }
    if (present && slot->args.size() > 1 && (def.flags & kVariadic) == 0) {
      return InvalidArgument(side, " '", def.name, "' has ", slot->args.size(),
                             " arguments, expected 1");
    }
    counts.push_back(present ? static_cast<int32_t>(slot->args.size()) : 0);
    if (!present) continue;
    for (const VarId id : slot->args) args.push_back(to_var(id));
  }
  return absl::OkStatus();
}

absl::StatusOr<Instruction> Bind(const Op& op, const Program* program, const OpDef& def,
                                 Place place, ToVar to_var) {
  Instruction instruction;
  instruction.place = place;
  instruction.op_type = def.type;
  instruction.def = &def;
  INTERP_RETURN_IF_ERROR(BindSlots(op.inputs, def.inputs, to_var, "input", instruction.inputs,
                                   instruction.input_counts));
  INTERP_RETURN_IF_ERROR(BindSlots(op.outputs, def.outputs, to_var, "output", instruction.outputs,
                                   instruction.output_counts));
  if (def.parse != nullptr) {
    AttrReader reader(op, program);
    INTERP_ASSIGN_OR_RETURN(instruction.attrs, def.parse(reader));
  }
  return instruction;
}

// Where an op is to run, by its op_device attribute.
absl::StatusOr<Place> WantedPlace(const Op& op, Place own) {
  AttrReader reader(op);
  const std::string device = reader.String("op_device", "");
  INTERP_RETURN_IF_ERROR(reader.status());
  if (device.empty() || device == "all") return own;
  for (const absl::string_view accelerator : {"gpu", "xpu", "npu"}) {
    if (absl::StrContains(device, accelerator)) return own;
  }
  return Annotate(PlaceFromName(device), "attribute 'op_device'");
}

// Of a kind that kernels use through the variable itself.
bool IsWhole(const PlanVar& var) {
  return var.kind == VarKind::kLodTensorArray || var.kind == VarKind::kLodRankTable;
}

// Of a kind that lies on the host.
bool OnHostOnly(const PlanVar& var) { return IsWhole(var) || var.kind == VarKind::kSelectedRows; }

bool Any(bool (*is)(const PlanVar&), const Instruction& instruction,
         const std::vector<PlanVar>& vars) {
  const auto any_of = [&](const VarIds& args) {
    return std::any_of(args.begin(), args.end(), [&](VarId id) { return id >= 0 && is(vars[id]); });
  };
  return any_of(instruction.inputs) || any_of(instruction.outputs);
}

// `mixed`: kMayBeArray slots take tensors and arrays side by side (ops that run blocks).
absl::Status CheckKind(const PlanVar& var, const SlotDef& slot, bool with_arrays, bool mixed) {
  if (var.kind == VarKind::kSelectedRows) {
    if ((slot.flags & kMayBeRows) != 0) return absl::OkStatus();
    return InvalidArgument("variable '", var.name, "' is selected rows, but '", slot.name,
                           "' takes a tensor");
  }
  if ((slot.flags & kMayBeArray) != 0) {
    if (mixed || with_arrays == IsWhole(var)) return absl::OkStatus();
    return InvalidArgument("variable '", var.name, "' is ", with_arrays ? "no array" : "an array",
                           ", unlike other arguments: expected arrays only, or none");
  }
  const bool wants_whole = (slot.flags & kTensorArray) != 0;
  if (wants_whole ? var.kind != VarKind::kLodTensor : !IsWhole(var)) return absl::OkStatus();
  const absl::string_view kinds[] = {"a tensor", "an array or a rank table"};
  return InvalidArgument("variable '", var.name, "' is ", kinds[wants_whole ? 0 : 1], ", but '",
                         slot.name, "' takes ", kinds[wants_whole ? 1 : 0]);
}

// Arrays live as long as a run: their elements are memory of the core.
absl::Status CheckNotKept(const PlanVar& var) {
  if (!var.persistable || !OnHostOnly(var)) return absl::OkStatus();
  return Unimplemented("writes '", var.name, "', a persistable variable that is no tensor; ",
                       "interp keeps those for one run only");
}

absl::StatusOr<Place> ChoosePlace(const Op& op, const OpDef& def, Plan& plan) {
  INTERP_ASSIGN_OR_RETURN(const Place place, WantedPlace(op, plan.options.place));
  if (place.kind == PlaceKind::kCuda && FindDeviceMaker(place.kind) == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("is to run on ", Name(place),
                     ", and nothing that runs programs on GPUs is loaded (interp::LoadCuda)"));
  }
  if (place.on_host() || def.RunsOn(place.kind)) return place;
  const bool moves_data = op.type == "feed" || op.type == "fetch" || op.type == "fetch_v2";
  if (!moves_data && def.sub_block == nullptr) AddFallback(plan, op.type);
  return Place{};
}

// Readers, lists of feeds and the like hold no tensor that a kernel could use.
absl::Status CheckHoldTensors(const std::vector<PlanVar>& vars, const VarIds& args,
                              const ArgCounts& counts, const std::vector<SlotDef>& slots) {
  size_t arg = 0;
  for (size_t slot = 0; slot < slots.size(); ++slot) {
    for (int32_t i = 0; i < counts[slot]; ++i, ++arg) {
      if (args[arg] < 0 || (slots[slot].flags & kTensorArray) != 0) continue;
      const PlanVar& var = vars[args[arg]];
      if (var.kind == VarKind::kLodTensor || var.kind == VarKind::kLodTensorArray ||
          var.kind == VarKind::kLodRankTable || var.kind == VarKind::kSelectedRows) {
        continue;
      }
      return InvalidArgument("'", slots[slot].name, "' is '", var.name, "', a variable of kind ",
                             Name(var.kind), ", expected a tensor");
    }
  }
  return absl::OkStatus();
}

// Each output is inferred and given memory by itself.
absl::Status CheckOutputsDiffer(const Instruction& instruction, const std::vector<PlanVar>& vars) {
  std::vector<VarId> ids;
  for (int arg = 0; arg < static_cast<int>(instruction.outputs.size()); ++arg) {
    if (!IsHiddenOutput(instruction, arg)) ids.push_back(instruction.outputs[arg]);
  }
  std::sort(ids.begin(), ids.end());
  for (size_t i = 1; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] != ids[i - 1]) continue;
    return InvalidArgument("has '", vars[ids[i]].name, "' as two outputs");
  }
  return absl::OkStatus();
}

VarId FlatArgument(const std::vector<Slot>& slots, int32_t position) {
  for (const Slot& slot : slots) {
    if (position < static_cast<int32_t>(slot.args.size())) return slot.args[position];
    position -= static_cast<int32_t>(slot.args.size());
  }
  return -1;
}

// The flattened input argument that an entry is like; -1: there is none.
int32_t EntryArgument(const Instruction& instruction, const SubBlock::Entry& entry) {
  if (entry.slot < 0 || entry.slot >= static_cast<int>(instruction.def->inputs.size()) ||
      entry.arg < 0 || entry.arg >= instruction.input_counts[entry.slot]) {
    return -1;
  }
  int32_t arg = entry.arg;
  for (int slot = 0; slot < entry.slot; ++slot) arg += instruction.input_counts[slot];
  return instruction.inputs[arg] < 0 ? -1 : arg;
}

absl::StatusOr<VarId> FindOwn(const Program& program, const Plan& plan, const std::string& name) {
  const VarId id = program.Find(name);
  const VarId var = id < 0 ? -1 : FindVar(plan, id);
  if (var >= 0 && !plan.vars[var].captured) return var;
  return InvalidArgument("block ", plan.block, " has no variable '", name, "' of its own");
}

class Binder {
 public:
  Binder(const Program& program, const OpRegistry& registry, int32_t block,
         std::vector<Plan>& plans)
      : program_(program),
        registry_(registry),
        plans_(plans),
        plan_(plans[block]),
        vars_(program.names.size(), -1) {
    for (int32_t var = 0; var < plan_.num_program_vars; ++var) {
      vars_[plan_.vars[var].program_var] = var;
    }
  }

  absl::Status Run() {
    const std::vector<Op>& ops = program_.blocks[plan_.block].ops;
    plan_.instructions.reserve(ops.size());
    for (size_t i = 0; i < ops.size(); ++i) {
      const absl::Status added = Add(ops[i], static_cast<int32_t>(i));
      if (!added.ok()) return Annotate(added, DescribeOp(program_, plan_.block, i));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Add(const Op& op, int32_t index) {
    const OpDef& def = *registry_.Find(op.type);
    INTERP_ASSIGN_OR_RETURN(const Place place, ChoosePlace(op, def, plan_));
    INTERP_ASSIGN_OR_RETURN(Instruction instruction, Bind(op, &program_, def, place,
                                                          [this](VarId id) { return vars_[id]; }));
    instruction.op_index = index;
    if (Any(OnHostOnly, instruction, plan_.vars)) instruction.place = Place{};
    INTERP_RETURN_IF_ERROR(CheckKinds(instruction, plan_.vars));
    DropKeptOutputs(op, instruction);
    BindShares(op, instruction);
    INTERP_RETURN_IF_ERROR(BindSubBlock(op, instruction));
    plan_.instructions.push_back(std::move(instruction));
    return absl::OkStatus();
  }

  // State that an op in test mode lists as output, but leaves as it is, is written by nobody.
  void DropKeptOutputs(const Op& op, Instruction& instruction) const {
    for (VarId& var : instruction.outputs) {
      if (var < 0 || !plan_.vars[var].constant) continue;
      if (LeavesUntouched(op, plan_.vars[var].program_var)) var = -1;
    }
  }

  // The op counts arguments in file order, the instruction in the order of its definition.
  void BindShares(const Op& op, Instruction& instruction) const {
    const auto position = [&](const VarIds& args, VarId id) {
      return static_cast<int32_t>(std::find(args.begin(), args.end(), vars_[id]) - args.begin());
    };
    for (const InplacePair& pair : op.inplace) {
      instruction.share.push_back(
          {position(instruction.inputs, FlatArgument(op.inputs, pair.input)),
           position(instruction.outputs, FlatArgument(op.outputs, pair.output))});
    }
  }

  absl::Status BindSubBlock(const Op& op, Instruction& instruction) {
    INTERP_ASSIGN_OR_RETURN(instruction.sub_block, SubBlockOf(program_, op, *instruction.def));
    if (instruction.sub_block < 0) return absl::OkStatus();
    Plan& inner = plans_[instruction.sub_block];
    const size_t num_inputs = instruction.inputs.size();
    const size_t num_outputs = instruction.outputs.size();
    for (const Capture& capture : inner.captures) {
      const VarId var = vars_[inner.vars[capture.var].program_var];
      if (capture.read) instruction.inputs.push_back(var);
      if (capture.written) instruction.outputs.push_back(var);
    }
    instruction.input_counts.push_back(
        static_cast<int32_t>(instruction.inputs.size() - num_inputs));
    instruction.output_counts.push_back(
        static_cast<int32_t>(instruction.outputs.size() - num_outputs));
    INTERP_ASSIGN_OR_RETURN(BlockInterface own, InterfaceOf(program_, op, instruction, inner));
    inner.entries = std::move(own.entries);
    inner.entry_args = std::move(own.entry_args);
    inner.results = std::move(own.results);
    // The kernel takes them as they are declared.
    for (const VarId var : inner.results) {
      if (inner.vars[var].kind == VarKind::kLodTensor) inner.vars[var].settled = true;
    }
    return absl::OkStatus();
  }

  const Program& program_;
  const OpRegistry& registry_;
  std::vector<Plan>& plans_;
  Plan& plan_;
  std::vector<VarId> vars_;  // by VarId of the program; @EMPTY@ and what the block has not: -1
};

}  // namespace

absl::StatusOr<BlockInterface> InterfaceOf(const Program& program, const Op& op,
                                           const Instruction& instruction, const Plan& inner) {
  SubBlock block;
  INTERP_RETURN_IF_ERROR(instruction.def->sub_block(program, op, block));
  BlockInterface result;
  for (const SubBlock::Entry& entry : block.entries) {
    INTERP_ASSIGN_OR_RETURN(const VarId var, FindOwn(program, inner, entry.name));
    result.entries.push_back(var);
    result.entry_args.push_back(EntryArgument(instruction, entry));
    if (result.entry_args.back() < 0) {
      return InvalidArgument("nothing gives '", entry.name, "' a value");
    }
  }
  for (const std::string& name : block.results) {
    INTERP_ASSIGN_OR_RETURN(const VarId var, FindOwn(program, inner, name));
    result.results.push_back(var);
  }
  return result;
}

absl::Status CheckKinds(const Instruction& instruction, const std::vector<PlanVar>& vars) {
  const OpDef& def = *instruction.def;
  INTERP_RETURN_IF_ERROR(
      CheckHoldTensors(vars, instruction.inputs, instruction.input_counts, def.inputs));
  INTERP_RETURN_IF_ERROR(
      CheckHoldTensors(vars, instruction.outputs, instruction.output_counts, def.outputs));
  INTERP_RETURN_IF_ERROR(CheckOutputsDiffer(instruction, vars));
  const bool arrays = Any(IsWhole, instruction, vars);
  const bool mixed = def.sub_block != nullptr;
  for (int arg = 0; arg < static_cast<int>(instruction.inputs.size()); ++arg) {
    const VarId id = instruction.inputs[arg];
    if (id < 0 || IsHiddenInput(instruction, arg)) continue;
    const SlotDef& slot = def.inputs[InputSlotOf(instruction, arg)];
    if ((slot.flags & kNoNeedBuffer) != 0) continue;
    INTERP_RETURN_IF_ERROR(CheckKind(vars[id], slot, arrays, mixed));
  }
  for (int arg = 0; arg < static_cast<int>(instruction.outputs.size()); ++arg) {
    const VarId id = instruction.outputs[arg];
    if (id < 0 || IsHiddenOutput(instruction, arg)) continue;
    INTERP_RETURN_IF_ERROR(
        CheckKind(vars[id], def.outputs[OutputSlotOf(instruction, arg)], arrays, mixed));
    INTERP_RETURN_IF_ERROR(CheckNotKept(vars[id]));
  }
  if (!arrays || instruction.place.on_host()) return absl::OkStatus();
  return InvalidArgument("uses arrays or rank tables, but is to run on ", Name(instruction.place));
}

absl::Status BindInstructions(const Program& program, const OpRegistry& registry, int32_t block,
                              std::vector<Plan>& plans) {
  return Binder(program, registry, block, plans).Run();
}

void AddFallback(Plan& plan, absl::string_view type) {
  std::vector<std::string>& types = plan.fallbacks;
  if (std::find(types.begin(), types.end(), type) == types.end()) types.emplace_back(type);
}

absl::StatusOr<Instruction> BindInsertedOp(const Op& op, const OpDef& def, Place place,
                                           const std::vector<PlanVar>& vars) {
  const auto num_vars = static_cast<VarId>(vars.size());
  INTERP_ASSIGN_OR_RETURN(Instruction instruction, Bind(op, nullptr, def, place, [&](VarId id) {
                            return id >= 0 && id < num_vars ? id : -1;
                          }));
  return instruction;
}

}  // namespace interp
