// Long because every insertion changes versions, copies and homes of the same variables.
#include "interpreter/analysis/insert_transfers.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "core/device/device.h"
#include "interpreter/analysis/form.h"
#include "interpreter/analysis/select_kernels.h"
#include "interpreter/analysis/transfer_ops.h"
#include "interpreter/plan/instruction_rewriter.h"

namespace interp {
namespace {

class TransferInserter {
 public:
  TransferInserter(const OpRegistry& registry, const std::vector<DType>& declared, Plan& plan)
      : registry_(registry),
        declared_(declared),
        plan_(plan),
        vars_(plan.vars),
        versions_(plan.vars.size(), 0) {
    for (size_t id = 0; id < declared.size(); ++id) vars_[id].dtype = declared[id];
    for (const Instruction& instruction : plan.instructions) {
      for (int arg = 0; arg < static_cast<int>(instruction.inputs.size()); ++arg) {
        if (IsHiddenInput(instruction, arg)) read_within_.insert(instruction.inputs[arg]);
      }
    }
  }

  // Inserts what makes what the instructions of `list` read.
  absl::Status Rewrite(std::vector<Instruction>& list) {
    FindWantedImages(list);
    rewriter_.emplace(list);
    while (!rewriter_->done()) {
      Instruction instruction = rewriter_->Take();
      const absl::string_view op_type = instruction.op_type;
      const int32_t index = instruction.op_index;
      const absl::Status added = Add(std::move(instruction));
      if (!added.ok()) {
        return Annotate(added, absl::StrCat("block ", plan_.block, ", op #", index, " ", op_type));
      }
    }
    rewriter_->Finish();
    return absl::OkStatus();
  }

 private:
  // Which images readers take channels-last; not looked for where nobody asks.
  void FindWantedImages(const std::vector<Instruction>& list) {
    const bool asked = absl::c_any_of(list, [](const Instruction& instruction) {
      return instruction.layout_rule == LayoutRule::kForReaders;
    });
    wanted_images_.assign(asked ? vars_.size() : 0, false);
    if (!asked || !plan_.options.optimize_layout) return;
    for (auto at = list.rbegin(); at != list.rend(); ++at) {
      if (!WantsImages(*at)) continue;
      for (int arg = 0; arg < std::ssize(at->inputs); ++arg) {
        const VarId id = at->inputs[arg];
        const bool taken = (InputFlags(*at, arg) & (kTensorArray | kNoNeedBuffer)) == 0;
        if (id >= 0 && taken && FollowsImage(id, at->layout_rule)) wanted_images_[id] = true;
      }
    }
  }

  // Whether the instruction is best given channels-last images.
  bool WantsImages(const Instruction& instruction) const {
    switch (instruction.layout_rule) {
      case LayoutRule::kPlain:
        return instruction.def->view_turns;
      case LayoutRule::kPrefersChannelsLast:
        return true;
      case LayoutRule::kFollows:
        return MakesWantedImage(instruction);
      case LayoutRule::kForReaders:
        return false;
    }
    return false;
  }

  bool MakesWantedImage(const Instruction& instruction) const {
    return absl::c_any_of(instruction.outputs, [&](VarId id) {
      return id >= 0 && id < std::ssize(wanted_images_) && wanted_images_[id];
    });
  }

  absl::Status Add(Instruction&& instruction) {
    if (CastsConstant(instruction)) {
      Form form = FormOf(vars_[instruction.inputs[0]]);
      form.place = instruction.place;
      form.dtype = instruction.output_dtypes[0];
      cast_constants_[instruction.outputs[0]] = ConvertOnce(instruction.inputs[0], form);
      return absl::OkStatus();
    }
    ReadCastConstants(instruction);
    const Layout wanted = WantedLayout(instruction);
    const bool turns = instruction.layout_rule == LayoutRule::kForReaders;
    const Layout taken = turns ? Layout::kPlain : wanted;
    for (int arg = 0; arg < static_cast<int>(instruction.inputs.size()); ++arg) {
      const VarId id = instruction.inputs[arg];
      if (id < 0 || vars_[id].kind != VarKind::kLodTensor) continue;
      const int flags = InputFlags(instruction, arg);
      if ((flags & (kTensorArray | kNoNeedBuffer)) != 0) continue;
      INTERP_ASSIGN_OR_RETURN(const VarId fitting,
                              Fit(id, flags, WantedForm(instruction, arg, taken), instruction));
      if (fitting != id) Redirect(instruction, arg, fitting);
    }
    const std::vector<std::pair<VarId, VarId>> apart = WriteApart(instruction, wanted);
    NoteOutputs(instruction, wanted);
    DropTurnless(instruction);
    rewriter_->Append(std::move(instruction));
    for (const auto& [own, home] : apart) INTERP_RETURN_IF_ERROR(BringHome(own, home));
    return absl::OkStatus();
  }

  // A cast in the program whose result is a constant, too: passes write those.
  bool CastsConstant(const Instruction& instruction) const {
    if (instruction.op_type != kCastOp) return false;
    // Folded itself: others of those read it.
    if (instruction.outputs[0] >= 0 && vars_[instruction.outputs[0]].folded) return false;
    const VarId in = instruction.inputs[0];
    const VarId out = instruction.outputs[0];
    return in >= 0 && out >= 0 && vars_[in].constant && vars_[in].kind == VarKind::kLodTensor &&
           vars_[out].kind == VarKind::kLodTensor && !vars_[out].persistable &&
           !vars_[out].settled && !vars_[out].captured && !read_within_.contains(out);
  }

  // Points inputs at constants that were cast; outputs end what their variables were.
  void ReadCastConstants(Instruction& instruction) {
    if (cast_constants_.empty()) return;
    for (int arg = 0; arg < static_cast<int>(instruction.inputs.size()); ++arg) {
      const auto found = cast_constants_.find(instruction.inputs[arg]);
      if (found != cast_constants_.end()) Redirect(instruction, arg, found->second);
    }
    for (const VarId id : instruction.outputs) cast_constants_.erase(id);
  }

  // Where a program declares an output with another rank, no one could tell from the variable that
  // its elements lie channels-last.
  bool MakesImage(const Instruction& instruction) const {
    return std::any_of(instruction.outputs.begin(), instruction.outputs.end(),
                       [&](VarId id) { return id >= 0 && IsImage(vars_[id]); });
  }

  // The layout this instruction's images have.
  Layout WantedLayout(const Instruction& instruction) const {
    switch (instruction.layout_rule) {
      case LayoutRule::kPlain:
        return Layout::kPlain;
      case LayoutRule::kPrefersChannelsLast:
        return plan_.options.optimize_layout ? Layout::kChannelsLast : Layout::kPlain;
      case LayoutRule::kFollows: {
        const bool follows = std::any_of(
            instruction.inputs.begin(), instruction.inputs.end(),
            [&](VarId id) { return id >= 0 && vars_[id].layout == Layout::kChannelsLast; });
        return follows && MakesImage(instruction) ? Layout::kChannelsLast : Layout::kPlain;
      }
      case LayoutRule::kForReaders:
        return MakesWantedImage(instruction) ? Layout::kChannelsLast : Layout::kPlain;
    }
    return Layout::kPlain;
  }

  Form WantedForm(const Instruction& instruction, int arg, Layout layout) const {
    const VarId id = instruction.inputs[arg];
    Form form{.place = instruction.place, .dtype = instruction.dtype, .layout = layout};
    if (IsHiddenInput(instruction, arg)) form.place = vars_[id].place;
    if (IsHostInput(instruction, arg)) form.place = Place{};
    return form;
  }

  // What a reader gets that takes any dtype. A fetch gives what is declared, also where an op
  // without a kernel for 16 bits has made float32.
  DType DTypeFor(const Instruction& reader, VarId id) const {
    const DType now = vars_[id].dtype;
    const bool fetches = reader.op_type == "fetch" || reader.op_type == "fetch_v2";
    if (!fetches || now != DType::kFloat32 || id >= std::ssize(declared_)) return now;
    const DType declared = declared_[id];
    return declared == DType::kFloat16 || declared == DType::kBFloat16 ? declared : now;
  }

  // The variable to read instead of `id`, after inserting what makes it. Place before layout before
  // dtype, as Paddle orders them, but for layouts that the place cannot change.
  absl::StatusOr<VarId> Fit(VarId id, int flags, Form wanted, const Instruction& instruction) {
    const PlanVar& var = vars_[id];
    if ((flags & kAnyDType) != 0 || wanted.dtype == DType::kUndefined ||
        var.dtype == DType::kUndefined) {
      wanted.dtype = DTypeFor(instruction, id);
    }
    if (((flags & kAnyLayout) != 0 && IsOfHost(instruction)) ||
        (wanted.layout == Layout::kChannelsLast && !FollowsImage(id, instruction.layout_rule))) {
      wanted.layout = var.layout;
    }
    if (wanted == FormOf(var)) return id;
    if (var.constant && CanConvertOnce(var, wanted)) return ConvertOnce(id, wanted);
    if (var.layout != wanted.layout && !HasRow(LayoutOp(var.layout, wanted.layout), wanted.place)) {
      INTERP_ASSIGN_OR_RETURN(id, ChangeLayout(id, wanted.layout));
    }
    INTERP_ASSIGN_OR_RETURN(id, Move(id, wanted.place));
    INTERP_ASSIGN_OR_RETURN(id, ChangeLayout(id, wanted.layout));
    return Cast(id, wanted.dtype);
  }

  // Whether the kernel is the host's: those alone look which layout an input has.
  static bool IsOfHost(const Instruction& instruction) {
    return instruction.def->kernels[instruction.kernel].place == PlaceKind::kCpu;
  }

  bool HasRow(const Op& op, Place place) const {
    const OpDef* const def = registry_.Find(op.type);
    return def != nullptr && def->RunsOn(place.kind);
  }

  // Filters are never brought to channels-last: their kernels pack them.
  bool FollowsImage(VarId id, LayoutRule rule) const {
    return IsImage(vars_[id]) && (rule == LayoutRule::kFollows || !vars_[id].persistable);
  }

  // Copies are made of what was loaded: what a cast has cut off cannot be brought back by another.
  bool CanConvertOnce(const PlanVar& var, const Form& to) const {
    return var.copy_of < 0 || to.dtype == var.dtype || var.dtype == vars_[var.copy_of].dtype;
  }

  // A constant in another form, which is there before any run.
  VarId ConvertOnce(VarId id, const Form& to) {
    if (vars_[id].copy_of >= 0) id = vars_[id].copy_of;
    const PlanVar& from = vars_[id];
    if (FormOf(from) == to) return id;
    std::string suffix;
    if (from.place != to.place) suffix += MoveSuffix(from.place, to.place);
    if (from.layout != to.layout) suffix += LayoutSuffix(from.layout, to.layout);
    if (from.dtype != to.dtype) suffix += CastSuffix(from.dtype, to.dtype);
    const auto key = std::make_tuple(id, int32_t{0}, suffix);
    if (const auto found = copies_.find(key); found != copies_.end()) return found->second;
    PlanVar copy = OwnVar(id, suffix);
    copy.persistable = copy.constant = true;
    copy.place = to.place;
    copy.layout = to.layout;
    copy.dtype = to.dtype;
    copy.copy_of = id;
    const VarId copy_id = AddVar(std::move(copy));
    copies_[key] = copy_id;
    return copy_id;
  }

  // Devices of two kinds do not know each other's memory.
  bool ByWayOfHost(Place from, Place to) const {
    if (from == to || from.on_host() || to.on_host()) return false;
    return !ArePeers(from, to) || !HasRow(MoveOp(from, to), to);
  }

  absl::StatusOr<VarId> Move(VarId id, Place to) {
    const Place from = vars_[id].place;
    if (from == to) return id;
    if (ByWayOfHost(from, to)) {
      INTERP_ASSIGN_OR_RETURN(id, Move(id, Place{}));
      return Move(id, to);
    }
    return Transfer(id, MoveOp(from, to), to.on_host() ? from : to, MoveSuffix(from, to),
                    [&](PlanVar& copy) { copy.place = to; });
  }

  absl::StatusOr<VarId> ChangeLayout(VarId id, Layout to) {
    const Layout from = vars_[id].layout;
    if (from == to) return id;
    return Transfer(id, LayoutOp(from, to), vars_[id].place, LayoutSuffix(from, to),
                    [&](PlanVar& copy) { copy.layout = to; });
  }

  absl::StatusOr<VarId> Cast(VarId id, DType to) {
    const DType from = vars_[id].dtype;
    if (from == to) return id;
    return Transfer(id, CastOp(from, to), vars_[id].place, CastSuffix(from, to),
                    [&](PlanVar& copy) { copy.dtype = to; });
  }

  // Inserts X=id -> Out=copy, to run on `place`, unless this version of `id` has such a copy.
  template <typename SetForm>
  absl::StatusOr<VarId> Transfer(VarId id, Op op, Place place, const std::string& suffix,
                                 SetForm set_form) {
    const auto key = std::make_tuple(id, versions_[id], suffix);
    if (const auto found = copies_.find(key); found != copies_.end()) return found->second;
    PlanVar copy = OwnVar(id, suffix);
    set_form(copy);
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
    op.inputs = {{"X", {from}}};
    op.outputs = {{"Out", {to}}};
    INTERP_ASSIGN_OR_RETURN(Instruction instruction, MakeInstruction(op, *def, place, vars_));
    vars_[to].dtype = dtype;
    instruction.output_dtypes[0] = dtype;
    instruction.output_layouts[0] = vars_[to].layout;
    instruction.inserted_op = static_cast<int32_t>(plan_.inserted_ops.size());
    plan_.inserted_ops.push_back(std::move(op));
    rewriter_->Append(std::move(instruction));
    return absl::OkStatus();
  }

  // A variable of the plan's own beside `id`; the n-th of one suffix has the number behind.
  PlanVar OwnVar(VarId id, const std::string& suffix) {
    PlanVar own = vars_[id];
    const int32_t earlier = copies_made_[std::make_pair(id, suffix)]++;
    absl::StrAppend(&own.name, suffix, earlier == 0 ? "" : absl::StrCat("_", earlier));
    own.program_var = own.copy_of = -1;
    own.persistable = own.constant = own.folded = false;
    own.declared = own.captured = own.settled = false;
    return own;
  }

  VarId AddVar(PlanVar var) {
    vars_.push_back(std::move(var));
    versions_.push_back(0);
    return static_cast<VarId>(vars_.size() - 1);
  }

  // Points an input at its transferred copy. An output that was to share the old input's memory
  // shares nothing any more.
  static void Redirect(Instruction& instruction, int arg, VarId id) {
    instruction.inputs[arg] = id;
    EraseShares(instruction, [&](const InplacePair& pair) { return pair.input == arg; });
  }

  // What the kernel makes of output `arg`. Outputs of slots with kAnyLayout are plain in any case:
  // gradients of filters, which go to optimizers.
  Form MadeForm(const Instruction& instruction, int arg, Layout wanted) const {
    const bool image = IsImage(vars_[instruction.outputs[arg]]) &&
                       (OutputFlags(instruction, arg) & kAnyLayout) == 0;
    return {instruction.place, instruction.output_dtypes[arg], image ? wanted : Layout::kPlain};
  }

  // What the variable has to be afterwards, if it was made in the form `made`.
  Form HomeForm(VarId id, const Form& made) const {
    const PlanVar& var = vars_[id];
    Form home{.place = var.place, .dtype = made.dtype, .layout = made.layout};
    if (!var.settled) return home;
    home.layout = Layout::kPlain;
    if (var.dtype != DType::kUndefined) home.dtype = var.dtype;
    return home;
  }

  // Lets outputs that are not made in the form of their variables go to variables of their own;
  // returns (own, home) pairs. No output takes over memory of another place.
  std::vector<std::pair<VarId, VarId>> WriteApart(Instruction& instruction, Layout wanted) {
    std::vector<std::pair<VarId, VarId>> apart;
    for (int arg = 0; arg < static_cast<int>(instruction.outputs.size()); ++arg) {
      const VarId home = instruction.outputs[arg];
      if (home < 0 || vars_[home].kind != VarKind::kLodTensor) continue;
      if (IsHiddenOutput(instruction, arg)) continue;
      const Form made = MadeForm(instruction, arg, wanted);
      if (HomeForm(home, made) == made) continue;
      const bool moves = made.place != vars_[home].place;
      PlanVar own =
          OwnVar(home, moves ? absl::StrCat("_device_", Name(instruction.place)) : "_own");
      own.place = made.place;
      own.dtype = made.dtype;
      own.layout = made.layout;
      instruction.outputs[arg] = AddVar(std::move(own));
      apart.emplace_back(instruction.outputs[arg], home);
    }
    EraseShares(instruction, [&](const InplacePair& pair) {
      const VarId in = instruction.inputs[pair.input];
      const VarId out = instruction.outputs[pair.output];
      return in >= 0 && out >= 0 && vars_[in].place != vars_[out].place;
    });
    return apart;
  }

  // Converts what an instruction wrote to a variable of its own to what its variable is.
  absl::Status BringHome(VarId own, VarId home) {
    const Form from = FormOf(vars_[own]);
    const Form to = HomeForm(home, from);
    INTERP_RETURN_IF_ERROR(CheckKeeps(vars_[home], from.dtype, to.dtype));
    VarId at = own;
    if (ByWayOfHost(from.place, to.place)) {
      INTERP_ASSIGN_OR_RETURN(at, Move(at, Place{}));
    }
    vars_[home].dtype = to.dtype;
    vars_[home].layout = to.layout;
    ++versions_[home];
    const bool moves = vars_[at].place != to.place;
    const bool casts = from.dtype != to.dtype;
    if (from.layout != to.layout) {
      if (!moves && !casts) return Insert(LayoutOp(from.layout, to.layout), to.place, at, home);
      INTERP_ASSIGN_OR_RETURN(at, ChangeLayout(at, to.layout));
    }
    if (casts) {
      if (!moves) return Insert(CastOp(from.dtype, to.dtype), to.place, at, home);
      INTERP_ASSIGN_OR_RETURN(at, Cast(at, to.dtype));
    }
    const Place place = to.place.on_host() ? vars_[at].place : to.place;
    INTERP_RETURN_IF_ERROR(Insert(MoveOp(vars_[at].place, to.place), place, at, home));
    // Readers on that place need no copy back.
    if (at == own) {
      copies_[std::make_tuple(home, versions_[home], MoveSuffix(to.place, from.place))] = own;
    }
    return absl::OkStatus();
  }

  // What the variables it writes are from here on.
  void NoteOutputs(Instruction& instruction, Layout wanted) {
    for (int arg = 0; arg < static_cast<int>(instruction.outputs.size()); ++arg) {
      const VarId id = instruction.outputs[arg];
      if (id < 0) continue;
      ++versions_[id];
      if (vars_[id].kind != VarKind::kLodTensor) continue;
      if (IsHiddenOutput(instruction, arg)) {
        if (vars_[id].dtype == DType::kUndefined) vars_[id].dtype = instruction.output_dtypes[arg];
        continue;
      }
      const Form made = MadeForm(instruction, arg, wanted);
      instruction.output_layouts[arg] = vars_[id].layout = made.layout;
      vars_[id].dtype = made.dtype;
    }
  }

  // Views that turn with the layout are none where that stays.
  void DropTurnless(Instruction& instruction) const {
    if (!instruction.def->view_turns) return;
    EraseShares(instruction, [&](const InplacePair& pair) {
      return vars_[instruction.inputs[pair.input]].layout ==
             instruction.output_layouts[pair.output];
    });
  }

  const OpRegistry& registry_;
  const std::vector<DType>& declared_;  // by VarId, when the block starts
  Plan& plan_;
  std::vector<PlanVar>& vars_;
  std::optional<InstructionRewriter> rewriter_;
  std::vector<bool> wanted_images_;  // by VarId, before anything was inserted
  std::vector<int32_t> versions_;    // by VarId: writes seen so far
  absl::flat_hash_map<std::tuple<VarId, int32_t, std::string>, VarId> copies_;
  absl::flat_hash_map<std::pair<VarId, std::string>, int32_t> copies_made_;
  absl::flat_hash_set<VarId> read_within_;            // by blocks that instructions run
  absl::flat_hash_map<VarId, VarId> cast_constants_;  // results of casts, and what is read instead
};

}  // namespace

absl::Status InsertTransfers(const OpRegistry& registry, const std::vector<DType>& declared,
                             Plan& plan) {
  TransferInserter inserter(registry, declared, plan);
  // All that folded instructions read are constants: nothing is inserted among them.
  INTERP_RETURN_IF_ERROR(inserter.Rewrite(plan.folded));
  return inserter.Rewrite(plan.instructions);
}

}  // namespace interp
