#include "interpreter/analysis/insert_transfers.h"

#include <algorithm>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "interpreter/analysis/select_kernels.h"

namespace interp {
namespace {

bool IsImage(const PlanVar& var) {
  return var.kind == VarKind::kLodTensor && (var.rank == 4 || var.rank == 5);
}

Attr IntAttr(absl::string_view name, int value) {
  return {std::string(name), AttrValue(int32_t{value}), ""};
}

// By VarId: whether some instruction writes it.
std::vector<bool> WrittenVars(const Plan& plan) {
  std::vector<bool> written(plan.vars.size(), false);
  for (const Instruction& instruction : plan.instructions) {
    for (const VarId id : instruction.outputs) {
      if (id >= 0) written[id] = true;
    }
  }
  return written;
}

// Sets PlanVar::place of what instructions write.
void ChooseHomes(Plan& plan) {
  std::vector<bool> seen(plan.vars.size(), false);
  for (const Instruction& instruction : plan.instructions) {
    for (const VarId id : instruction.outputs) {
      if (id < 0 || plan.vars[id].kind != VarKind::kLodTensor) continue;
      PlanVar& var = plan.vars[id];
      if (!seen[id]) {
        var.place = instruction.place;
      } else if (var.persistable && var.place != instruction.place) {
        var.place = Place{};
      }
      seen[id] = true;
    }
  }
}

class TransferInserter {
 public:
  TransferInserter(const OpRegistry& registry, absl::Span<const DType> declared, Plan& plan)
      : registry_(registry), plan_(plan), vars_(plan.vars), written_(WrittenVars(plan)) {
    for (size_t id = 0; id < declared.size(); ++id) vars_[id].dtype = declared[id];
  }

  absl::Status Add(Instruction instruction) {
    const Layout wanted = WantedLayout(instruction);
    for (size_t arg = 0; arg < instruction.inputs.size(); ++arg) {
      if (instruction.inputs[arg] < 0) continue;
      const SlotDef& slot = instruction.def->inputs[InputSlotOf(instruction, arg)];
      if ((slot.flags & (kTensorArray | kNoNeedBuffer)) != 0) continue;
      const Place place =
          IsHostInput(instruction, static_cast<int>(arg)) ? Place{} : instruction.place;
      INTERP_ASSIGN_OR_RETURN(const VarId fitting, Fit(instruction.inputs[arg], slot, instruction,
                                                       {.place = place, .layout = wanted}));
      if (fitting != instruction.inputs[arg]) Redirect(instruction, arg, fitting);
    }
    const std::vector<std::pair<VarId, VarId>> elsewhere = WriteWhereItRuns(instruction);
    NoteOutputs(instruction, wanted);
    result_.push_back(std::move(instruction));
    for (const auto& [here, home] : elsewhere) INTERP_RETURN_IF_ERROR(BringHome(here, home));
    return absl::OkStatus();
  }

  std::vector<Instruction> Take() { return std::move(result_); }

 private:
  struct Wanted {
    Place place;
    Layout layout;
  };

  // The layout this instruction's images have.
  Layout WantedLayout(const Instruction& instruction) const {
    switch (instruction.layout_rule) {
      case LayoutRule::kPlain:
        return Layout::kPlain;
      case LayoutRule::kPrefersChannelsLast:
        return plan_.options.optimize_layout ? Layout::kChannelsLast : Layout::kPlain;
      case LayoutRule::kFollows:
        return std::any_of(
                   instruction.inputs.begin(), instruction.inputs.end(),
                   [&](VarId id) { return id >= 0 && vars_[id].layout == Layout::kChannelsLast; })
                   ? Layout::kChannelsLast
                   : Layout::kPlain;
    }
    return Layout::kPlain;
  }

  // The variable to read instead of `id`, after inserting what makes it. Layout before dtype, as
  // Paddle orders them.
  absl::StatusOr<VarId> Fit(VarId id, const SlotDef& slot, const Instruction& instruction,
                            const Wanted& wanted) {
    INTERP_ASSIGN_OR_RETURN(id, Move(id, wanted.place));
    const DType dtype = instruction.dtype;
    if ((slot.flags & kAnyLayout) == 0 && vars_[id].layout != wanted.layout &&
        (wanted.layout == Layout::kPlain || FollowsImage(id, instruction.layout_rule))) {
      INTERP_ASSIGN_OR_RETURN(id, ChangeLayout(id, wanted.layout));
    }
    if ((slot.flags & kAnyDType) == 0 && dtype != DType::kUndefined &&
        vars_[id].dtype != DType::kUndefined && vars_[id].dtype != dtype) {
      INTERP_ASSIGN_OR_RETURN(id, Cast(id, dtype));
    }
    return id;
  }

  // Filters are never brought to channels-last: their kernels pack them.
  bool FollowsImage(VarId id, LayoutRule rule) const {
    return IsImage(vars_[id]) && (rule == LayoutRule::kFollows || !vars_[id].persistable);
  }

  absl::StatusOr<VarId> Move(VarId id, Place to) {
    const Place from = vars_[id].place;
    if (from == to || vars_[id].kind != VarKind::kLodTensor) return id;
    if (!from.on_host() && !to.on_host()) {
      INTERP_ASSIGN_OR_RETURN(id, Move(id, Place{}));
      return Move(id, to);
    }
    const std::string suffix = absl::StrCat("_device_", Name(from), "_", Name(to));
    if (vars_[id].persistable && !written_[id]) return CopyOnce(id, to, suffix);
    Op op;
    op.type = to.on_host() ? "memcpy_d2h" : "memcpy_h2d";
    return Transfer(id, std::move(op), to.on_host() ? from : to, suffix,
                    [&](PlanVar& copy) { copy.place = to; });
  }

  // A parameter's copy on a device, which is there before any run.
  VarId CopyOnce(VarId id, Place to, const std::string& suffix) {
    const auto key = std::make_tuple(id, int32_t{0}, suffix);
    if (const auto found = copies_.find(key); found != copies_.end()) return found->second;
    PlanVar copy = vars_[id];
    absl::StrAppend(&copy.name, suffix);
    copy.declared = false;
    copy.place = to;
    copy.copy_of = id;
    const VarId copy_id = AddVar(std::move(copy));
    copies_[key] = copy_id;
    return copy_id;
  }

  absl::StatusOr<VarId> ChangeLayout(VarId id, Layout to) {
    const int from_code = static_cast<int>(vars_[id].layout);
    const int to_code = static_cast<int>(to);
    Op op;
    op.type = "transfer_layout";
    op.attrs = {IntAttr("src_layout", from_code), IntAttr("dst_layout", to_code)};
    return Transfer(id, std::move(op), vars_[id].place,
                    absl::StrCat("_layout_", from_code, "_", to_code),
                    [&](PlanVar& copy) { copy.layout = to; });
  }

  absl::StatusOr<VarId> Cast(VarId id, DType to) {
    const int from_code = static_cast<int>(vars_[id].dtype);
    const int to_code = static_cast<int>(to);
    Op op;
    op.type = "cast";
    op.attrs = {IntAttr("in_dtype", from_code), IntAttr("out_dtype", to_code)};
    return Transfer(id, std::move(op), vars_[id].place,
                    absl::StrCat("_dtype_", from_code, "_", to_code),
                    [&](PlanVar& copy) { copy.dtype = to; });
  }

  // Inserts X=id -> Out=copy, to run on `place`, unless this version of `id` has such a copy.
  template <typename SetKind>
  absl::StatusOr<VarId> Transfer(VarId id, Op op, Place place, const std::string& suffix,
                                 SetKind set_kind) {
    const auto key = std::make_tuple(id, versions_[id], suffix);
    if (const auto found = copies_.find(key); found != copies_.end()) return found->second;
    PlanVar copy = vars_[id];
    const int32_t earlier = copies_made_[std::make_pair(id, suffix)]++;
    copy.name = absl::StrCat(copy.name, suffix, earlier == 0 ? "" : absl::StrCat("_", earlier));
    copy.persistable = false;
    copy.declared = false;
    copy.copy_of = -1;
    set_kind(copy);
    const VarId copy_id = AddVar(std::move(copy));
    INTERP_RETURN_IF_ERROR(Insert(std::move(op), place, id, copy_id));
    copies_[key] = copy_id;
    return copy_id;
  }

  // Adds the instruction X=from -> Out=to, whose result is as `to` is declared.
  absl::Status Insert(Op op, Place place, VarId from, VarId to) {
    const OpDef* def = registry_.Find(op.type);
    if (def == nullptr) {
      return Unimplemented("variable '", vars_[from].name, "' needs op ", op.type,
                           ", which is not registered");
    }
    const DType dtype = vars_[to].dtype;
    op.inputs = {{"X", {from}, ""}};
    op.outputs = {{"Out", {to}, ""}};
    INTERP_ASSIGN_OR_RETURN(Instruction instruction, MakeInstruction(op, *def, place, vars_));
    vars_[to].dtype = dtype;
    instruction.output_dtypes[0] = dtype;
    instruction.output_layouts[0] = vars_[to].layout;
    instruction.inserted_op = static_cast<int32_t>(plan_.inserted_ops.size());
    plan_.inserted_ops.push_back(std::move(op));
    result_.push_back(std::move(instruction));
    return absl::OkStatus();
  }

  VarId AddVar(PlanVar var) {
    vars_.push_back(std::move(var));
    written_.push_back(true);
    return static_cast<VarId>(vars_.size() - 1);
  }

  // Points an input at its transferred copy. An output that was to share the old input's memory
  // shares nothing any more.
  static void Redirect(Instruction& instruction, size_t arg, VarId id) {
    instruction.inputs[arg] = id;
    std::erase_if(instruction.share,
                  [&](const InplacePair& pair) { return pair.input == static_cast<int32_t>(arg); });
  }

  // Lets outputs whose variables lie elsewhere go to variables of the instruction's own place;
  // returns (own, home) pairs. No output takes over memory of another place.
  std::vector<std::pair<VarId, VarId>> WriteWhereItRuns(Instruction& instruction) {
    std::vector<std::pair<VarId, VarId>> elsewhere;
    for (VarId& id : instruction.outputs) {
      if (id < 0 || vars_[id].kind != VarKind::kLodTensor) continue;
      if (vars_[id].place == instruction.place) continue;
      PlanVar own = vars_[id];
      const std::string suffix = absl::StrCat("_device_", Name(instruction.place));
      const int32_t earlier = copies_made_[std::make_pair(id, suffix)]++;
      own.name = absl::StrCat(own.name, suffix, earlier == 0 ? "" : absl::StrCat("_", earlier));
      own.persistable = false;
      own.declared = false;
      own.place = instruction.place;
      const VarId home = id;
      id = AddVar(std::move(own));
      elsewhere.emplace_back(id, home);
    }
    std::erase_if(instruction.share, [&](const InplacePair& pair) {
      const VarId in = instruction.inputs[pair.input];
      const VarId out = instruction.outputs[pair.output];
      return in >= 0 && out >= 0 && vars_[in].place != vars_[out].place;
    });
    return elsewhere;
  }

  // Copies what an instruction wrote on its own place to where its variable lies.
  absl::Status BringHome(VarId own, VarId home) {
    VarId from = own;
    if (!vars_[own].place.on_host() && !vars_[home].place.on_host()) {
      INTERP_ASSIGN_OR_RETURN(from, Move(own, Place{}));
    }
    const bool to_host = vars_[home].place.on_host();
    const Place place = to_host ? vars_[from].place : vars_[home].place;
    Op op;
    op.type = to_host ? "memcpy_d2h" : "memcpy_h2d";
    vars_[home].dtype = vars_[own].dtype;
    vars_[home].layout = vars_[own].layout;
    ++versions_[home];
    INTERP_RETURN_IF_ERROR(Insert(std::move(op), place, from, home));
    // Readers on that place need no copy back.
    const std::string suffix =
        absl::StrCat("_device_", Name(vars_[home].place), "_", Name(vars_[own].place));
    copies_[std::make_tuple(home, versions_[home], suffix)] = own;
    return absl::OkStatus();
  }

  // What the variables it writes are from here on.
  void NoteOutputs(Instruction& instruction, Layout wanted) {
    for (size_t arg = 0; arg < instruction.outputs.size(); ++arg) {
      const VarId id = instruction.outputs[arg];
      if (id < 0) continue;
      if (vars_[id].kind == VarKind::kLodTensor) vars_[id].dtype = instruction.output_dtypes[arg];
      const bool image = IsImage(vars_[id]) && !vars_[id].persistable;
      instruction.output_layouts[arg] = image ? wanted : Layout::kPlain;
      vars_[id].layout = instruction.output_layouts[arg];
      ++versions_[id];
    }
  }

  const OpRegistry& registry_;
  Plan& plan_;
  std::vector<PlanVar>& vars_;
  std::vector<bool> written_;  // by VarId: some instruction writes it
  std::vector<Instruction> result_;
  absl::flat_hash_map<VarId, int32_t> versions_;  // writes seen so far
  absl::flat_hash_map<std::tuple<VarId, int32_t, std::string>, VarId> copies_;
  absl::flat_hash_map<std::pair<VarId, std::string>, int32_t> copies_made_;
};

}  // namespace

absl::Status InsertTransfers(const OpRegistry& registry, absl::Span<const DType> declared,
                             Plan& plan) {
  ChooseHomes(plan);
  TransferInserter inserter(registry, declared, plan);
  for (Instruction& instruction : plan.instructions) {
    const std::string where =
        absl::StrCat("block 0, op #", instruction.op_index, " ", instruction.op_type);
    INTERP_RETURN_IF_ERROR(Annotate(inserter.Add(std::move(instruction)), where));
  }
  plan.instructions = inserter.Take();
  return absl::OkStatus();
}

}  // namespace interp
