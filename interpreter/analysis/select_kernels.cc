#include "interpreter/analysis/select_kernels.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"

namespace interp {
namespace {

// Arguments of one side of an op, in the order of the definition's slots.
struct BoundSlots {
  std::vector<VarId> args;
  std::vector<int32_t> counts;
};

bool IsEmpty(const std::vector<PlanVar>& vars, VarId id) { return vars[id].name == kEmptyVarName; }

bool HasArguments(const Slot& slot, const std::vector<PlanVar>& vars) {
  return std::any_of(slot.args.begin(), slot.args.end(),
                     [&](VarId id) { return !IsEmpty(vars, id); });
}

absl::Status CheckKnown(const std::vector<Slot>& slots, const std::vector<SlotDef>& defs,
                        const std::vector<PlanVar>& vars, absl::string_view side) {
  for (const Slot& slot : slots) {
    const bool known = std::any_of(defs.begin(), defs.end(),
                                   [&](const SlotDef& def) { return def.name == slot.name; });
    if (!known && HasArguments(slot, vars)) {
      return Unimplemented("has ", side, " slot '", slot.name,
                           "', which interp does not know; known: ",
                           absl::StrJoin(defs, " ", [](std::string* out, const SlotDef& def) {
                             absl::StrAppend(out, def.name);
                           }));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<BoundSlots> Bind(const std::vector<Slot>& slots, const std::vector<SlotDef>& defs,
                                const std::vector<PlanVar>& vars, absl::string_view side) {
  INTERP_RETURN_IF_ERROR(CheckKnown(slots, defs, vars, side));
  BoundSlots bound;
  for (const SlotDef& def : defs) {
    const auto slot =
        std::find_if(slots.begin(), slots.end(), [&](const Slot& s) { return s.name == def.name; });
    const bool present = slot != slots.end() && HasArguments(*slot, vars);
    if (!present && (def.flags & kOptional) == 0) {
      return InvalidArgument(side, " '", def.name, "' is missing");
    }
    if (present && slot->args.size() > 1 && (def.flags & kVariadic) == 0) {
      return InvalidArgument(side, " '", def.name, "' has ", slot->args.size(),
                             " arguments, expected 1");
    }
    bound.counts.push_back(present ? static_cast<int32_t>(slot->args.size()) : 0);
    if (!present) continue;
    for (const VarId id : slot->args) bound.args.push_back(IsEmpty(vars, id) ? -1 : id);
  }
  return bound;
}

std::vector<std::vector<DType>> DTypesBySlot(const std::vector<VarId>& args,
                                             const std::vector<int32_t>& counts,
                                             const std::vector<PlanVar>& vars) {
  std::vector<std::vector<DType>> dtypes(counts.size());
  size_t arg = 0;
  for (size_t slot = 0; slot < counts.size(); ++slot) {
    for (int32_t i = 0; i < counts[slot]; ++i, ++arg) {
      dtypes[slot].push_back(args[arg] < 0 ? DType::kUndefined : vars[args[arg]].dtype);
    }
  }
  return dtypes;
}

DType DefaultKernelDType(const Op& op, const std::vector<std::vector<DType>>& inputs) {
  bool any = false;
  for (const std::vector<DType>& slot : inputs) {
    for (const DType dtype : slot) {
      if (dtype != DType::kUndefined) return dtype;
      any = true;
    }
  }
  AttrReader reader(op);
  return any ? DType::kUndefined : reader.Type("dtype", DType::kFloat32);
}

// Whether a kernel can serve on a place: devices have rows of their own, and sim runs the host's.
bool Serves(const KernelDef& kernel, PlaceKind place) {
  return kernel.place == place || (place == PlaceKind::kSim && kernel.place == PlaceKind::kCpu);
}

absl::StatusOr<int32_t> FindKernel(const OpDef& def, DType dtype, PlaceKind place) {
  int32_t best = -1;
  int best_rank = 0;
  for (size_t row = 0; row < def.kernels.size(); ++row) {
    const KernelDef& kernel = def.kernels[row];
    const bool exact = kernel.dtype == dtype;
    if (!Serves(kernel, place) || (!exact && kernel.dtype != DType::kUndefined)) continue;
    const int rank = 1 + (exact ? 1 : 0) + (kernel.place == place ? 2 : 0);
    if (rank <= best_rank) continue;
    best = static_cast<int32_t>(row);
    best_rank = rank;
  }
  if (best >= 0) return best;
  return Unimplemented(
      "has no kernel for ", Name(dtype), " on ", Name(place),
      "; there are: ", absl::StrJoin(def.kernels, " ", [](std::string* out, const KernelDef& k) {
        absl::StrAppend(out, Name(k.dtype), k.place == PlaceKind::kCpu ? "" : " on ",
                        k.place == PlaceKind::kCpu ? "" : Name(k.place));
      }));
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
  absl::StatusOr<Place> place = PlaceFromName(device);
  if (!place.ok()) return Annotate(place.status(), "attribute 'op_device'");
  return *place;
}

absl::StatusOr<Place> ChoosePlace(const Op& op, const OpDef& def, Place own,
                                  std::vector<std::string>& fallbacks) {
  INTERP_ASSIGN_OR_RETURN(const Place place, WantedPlace(op, own));
  if (place.on_host() || def.RunsOn(place.kind)) return place;
  const bool moves_data = op.type == "feed" || op.type == "fetch" || op.type == "fetch_v2";
  if (!moves_data && std::find(fallbacks.begin(), fallbacks.end(), op.type) == fallbacks.end()) {
    fallbacks.push_back(op.type);
  }
  return Place{};
}

// Gives the outputs their dtypes, in the instruction and in the table.
void InferDTypes(Instruction& instruction, const std::vector<std::vector<DType>>& inputs,
                 std::vector<PlanVar>& vars) {
  std::vector<std::vector<DType>> outputs =
      DTypesBySlot(instruction.outputs, instruction.output_counts, vars);
  DTypeContext context(inputs, instruction.attrs.get(), instruction.dtype, outputs);
  if (instruction.dtype != DType::kUndefined) {
    for (std::vector<DType>& slot : outputs) {
      std::fill(slot.begin(), slot.end(), instruction.dtype);
    }
  }
  if (instruction.def->infer_dtype != nullptr) instruction.def->infer_dtype(context);
  for (const std::vector<DType>& slot : outputs) {
    for (const DType dtype : slot) {
      const VarId id = instruction.outputs[instruction.output_dtypes.size()];
      instruction.output_dtypes.push_back(dtype);
      if (id >= 0 && vars[id].kind == VarKind::kLodTensor) vars[id].dtype = dtype;
    }
  }
}

int SlotOf(const std::vector<int32_t>& counts, size_t arg) {
  int slot = 0;
  for (size_t end = counts[0]; arg >= end; end += counts[++slot]) {
  }
  return slot;
}

bool IsFirstOfSlot(const std::vector<int32_t>& counts, size_t arg) {
  return arg == 0 || SlotOf(counts, arg) != SlotOf(counts, arg - 1);
}

// Whether the definition lets output argument `out` take over input argument `in`. Pairs speak of
// the first argument of a slot: of the others a kernel may read element j after writing element i.
bool DeclaresInplace(const Instruction& instruction, size_t in, size_t out) {
  if (!IsFirstOfSlot(instruction.input_counts, in) ||
      !IsFirstOfSlot(instruction.output_counts, out)) {
    return false;
  }
  const auto matches = [&](const SharePair& pair) {
    return pair.input == SlotOf(instruction.input_counts, in) &&
           pair.output == SlotOf(instruction.output_counts, out);
  };
  return std::any_of(instruction.def->inplace.begin(), instruction.def->inplace.end(), matches) ||
         std::any_of(instruction.def->view.begin(), instruction.def->view.end(), matches);
}

// Redirects outputs that name an input without being declared inplace to fresh variables; returns
// (fresh, original) pairs.
std::vector<std::pair<VarId, VarId>> SplitSameNames(Instruction& instruction,
                                                    std::vector<PlanVar>& vars) {
  std::vector<std::pair<VarId, VarId>> split;
  for (size_t out = 0; out < instruction.outputs.size(); ++out) {
    const VarId id = instruction.outputs[out];
    if (id < 0 || vars[id].kind != VarKind::kLodTensor) continue;
    for (size_t in = 0; in < instruction.inputs.size(); ++in) {
      if (instruction.inputs[in] != id || DeclaresInplace(instruction, in, out)) continue;
      PlanVar fresh = vars[id];
      fresh.name = absl::StrCat(fresh.name, "@out", vars.size());
      fresh.persistable = false;
      fresh.declared = false;
      instruction.outputs[out] = static_cast<VarId>(vars.size());
      split.emplace_back(instruction.outputs[out], id);
      vars.push_back(std::move(fresh));
      break;
    }
  }
  return split;
}

VarId FlatArgument(const std::vector<Slot>& slots, int32_t position) {
  for (const Slot& slot : slots) {
    if (position < static_cast<int32_t>(slot.args.size())) return slot.args[position];
    position -= static_cast<int32_t>(slot.args.size());
  }
  return -1;
}

// The op counts arguments in file order, the instruction in the order of its definition.
void BindShares(const Op& op, Instruction& instruction) {
  const auto position = [](const std::vector<VarId>& args, VarId id) {
    return static_cast<int32_t>(std::find(args.begin(), args.end(), id) - args.begin());
  };
  for (const InplacePair& pair : op.inplace) {
    instruction.share.push_back(
        {position(instruction.inputs, FlatArgument(op.inputs, pair.input)),
         position(instruction.outputs, FlatArgument(op.outputs, pair.output))});
  }
}

}  // namespace

int InputSlotOf(const Instruction& instruction, int arg) {
  return SlotOf(instruction.input_counts, static_cast<size_t>(arg));
}

absl::string_view Name(QueueKind queue) { return queue == QueueKind::kHost ? "host" : "device"; }

bool IsHostInput(const Instruction& instruction, int arg) {
  const int flags = instruction.def->inputs[InputSlotOf(instruction, arg)].flags;
  return !instruction.place.on_host() && (flags & (kHostInput | kValueInInfer)) != 0;
}

absl::Status SetTypes(const Op& op, Instruction& instruction, std::vector<PlanVar>& vars) {
  const OpDef& def = *instruction.def;
  const std::vector<std::vector<DType>> input_dtypes =
      DTypesBySlot(instruction.inputs, instruction.input_counts, vars);
  std::vector<std::vector<DType>> no_outputs(def.outputs.size());
  instruction.dtype = def.kernel_dtype == nullptr
                          ? DefaultKernelDType(op, input_dtypes)
                          : def.kernel_dtype(DTypeContext(input_dtypes, instruction.attrs.get(),
                                                          DType::kUndefined, no_outputs));
  INTERP_ASSIGN_OR_RETURN(instruction.kernel,
                          FindKernel(def, instruction.dtype, instruction.place.kind));
  instruction.layout_rule = def.layout_rule == nullptr
                                ? def.layout
                                : def.layout_rule(instruction.attrs.get(), instruction.dtype);
  InferDTypes(instruction, input_dtypes, vars);
  return absl::OkStatus();
}

absl::StatusOr<Instruction> MakeInstruction(const Op& op, const OpDef& def, Place place,
                                            std::vector<PlanVar>& vars) {
  Instruction instruction;
  instruction.place = place;
  instruction.op_type = op.type;
  instruction.def = &def;
  INTERP_ASSIGN_OR_RETURN(BoundSlots inputs, Bind(op.inputs, def.inputs, vars, "input"));
  INTERP_ASSIGN_OR_RETURN(BoundSlots outputs, Bind(op.outputs, def.outputs, vars, "output"));
  instruction.inputs = std::move(inputs.args);
  instruction.input_counts = std::move(inputs.counts);
  instruction.outputs = std::move(outputs.args);
  instruction.output_counts = std::move(outputs.counts);
  if (def.parse != nullptr) {
    AttrReader reader(op);
    INTERP_ASSIGN_OR_RETURN(instruction.attrs, def.parse(reader));
  }
  INTERP_RETURN_IF_ERROR(SetTypes(op, instruction, vars));
  instruction.output_layouts.assign(instruction.outputs.size(), Layout::kPlain);
  return instruction;
}

std::vector<std::string> UnsupportedOps(const Program& program, const OpRegistry& registry) {
  std::set<std::string> missing;
  for (const Block& block : program.blocks) {
    for (const Op& op : block.ops) {
      if (registry.Find(op.type) == nullptr) missing.insert(op.type);
    }
  }
  return std::vector<std::string>(missing.begin(), missing.end());
}

namespace {

// Adds the instruction of op `index`, and the moves that give split outputs to their names.
absl::Status AddInstructions(const Op& op, int32_t index, const OpDef& def, const OpDef* share_data,
                             Plan& plan) {
  INTERP_ASSIGN_OR_RETURN(const Place place,
                          ChoosePlace(op, def, plan.options.place, plan.fallbacks));
  INTERP_ASSIGN_OR_RETURN(Instruction instruction, MakeInstruction(op, def, place, plan.vars));
  instruction.op_index = index;
  BindShares(op, instruction);
  const std::vector<std::pair<VarId, VarId>> split = SplitSameNames(instruction, plan.vars);
  plan.instructions.push_back(std::move(instruction));
  for (const auto& [fresh, original] : split) {
    if (share_data == nullptr) {
      return Unimplemented("output '", plan.vars[original].name, "' is also an input");
    }
    Op give;
    give.type = "share_data";
    give.inputs = {{"X", {fresh}, ""}};
    give.outputs = {{"Out", {original}, ""}};
    INTERP_ASSIGN_OR_RETURN(Instruction move, MakeInstruction(give, *share_data, place, plan.vars));
    move.inserted_op = static_cast<int32_t>(plan.inserted_ops.size());
    plan.inserted_ops.push_back(std::move(give));
    plan.instructions.push_back(std::move(move));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SelectKernels(const Program& program, const OpRegistry& registry, Plan& plan) {
  if (const std::vector<std::string> missing = UnsupportedOps(program, registry);
      !missing.empty()) {
    return Unimplemented("the program uses ops that interp does not have: ",
                         absl::StrJoin(missing, " "), " (run `interp ops` to list all it has)");
  }
  const std::vector<Op>& ops = program.blocks[0].ops;
  plan.instructions.reserve(ops.size());
  for (size_t i = 0; i < ops.size(); ++i) {
    const absl::Status added =
        AddInstructions(ops[i], static_cast<int32_t>(i), *registry.Find(ops[i].type),
                        registry.Find("share_data"), plan);
    if (!added.ok()) return Annotate(added, absl::StrCat("block 0, op #", i, " ", ops[i].type));
  }
  return absl::OkStatus();
}

}  // namespace interp
