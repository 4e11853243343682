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

class TransferInserter {
 public:
  TransferInserter(bool optimize_layout, const OpRegistry& registry, std::vector<PlanVar>& vars,
                   std::vector<Op>& inserted_ops)
      : optimize_layout_(optimize_layout),
        registry_(registry),
        vars_(vars),
        inserted_ops_(inserted_ops) {}

  absl::Status Add(Instruction instruction) {
    const Layout wanted = WantedLayout(instruction);
    for (size_t arg = 0; arg < instruction.inputs.size(); ++arg) {
      if (instruction.inputs[arg] < 0) continue;
      const SlotDef& slot = instruction.def->inputs[InputSlotOf(instruction, arg)];
      if ((slot.flags & (kTensorArray | kNoNeedBuffer)) != 0) continue;
      INTERP_ASSIGN_OR_RETURN(const VarId fitting,
                              Fit(instruction.inputs[arg], slot, instruction, wanted));
      if (fitting != instruction.inputs[arg]) Redirect(instruction, arg, fitting);
    }
    SetOutputLayouts(instruction, wanted);
    result_.push_back(std::move(instruction));
    return absl::OkStatus();
  }

  std::vector<Instruction> Take() { return std::move(result_); }

 private:
  // The layout this instruction's images have.
  Layout WantedLayout(const Instruction& instruction) const {
    switch (instruction.layout_rule) {
      case LayoutRule::kPlain:
        return Layout::kPlain;
      case LayoutRule::kPrefersChannelsLast:
        return optimize_layout_ ? Layout::kChannelsLast : Layout::kPlain;
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
                            Layout layout) {
    const DType dtype = instruction.dtype;
    if ((slot.flags & kAnyLayout) == 0 && vars_[id].layout != layout &&
        (layout == Layout::kPlain || FollowsImage(id, instruction.layout_rule))) {
      INTERP_ASSIGN_OR_RETURN(id, ChangeLayout(id, layout));
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

  absl::StatusOr<VarId> ChangeLayout(VarId id, Layout to) {
    const int from_code = static_cast<int>(vars_[id].layout);
    const int to_code = static_cast<int>(to);
    Op op;
    op.type = "transfer_layout";
    op.attrs = {IntAttr("src_layout", from_code), IntAttr("dst_layout", to_code)};
    return Transfer(id, std::move(op), absl::StrCat("_layout_", from_code, "_", to_code),
                    [&](PlanVar& copy) { copy.layout = to; });
  }

  absl::StatusOr<VarId> Cast(VarId id, DType to) {
    const int from_code = static_cast<int>(vars_[id].dtype);
    const int to_code = static_cast<int>(to);
    Op op;
    op.type = "cast";
    op.attrs = {IntAttr("in_dtype", from_code), IntAttr("out_dtype", to_code)};
    return Transfer(id, std::move(op), absl::StrCat("_dtype_", from_code, "_", to_code),
                    [&](PlanVar& copy) { copy.dtype = to; });
  }

  // Inserts X=id -> Out=copy unless this version of `id` has such a copy.
  template <typename SetKind>
  absl::StatusOr<VarId> Transfer(VarId id, Op op, const std::string& suffix, SetKind set_kind) {
    const int32_t version = versions_[id];
    const auto key = std::make_tuple(id, version, suffix);
    if (const auto found = copies_.find(key); found != copies_.end()) return found->second;
    const OpDef* def = registry_.Find(op.type);
    if (def == nullptr) {
      return Unimplemented("variable '", vars_[id].name, "' needs op ", op.type,
                           ", which is not registered");
    }
    PlanVar copy = vars_[id];
    const int32_t earlier = copies_made_[std::make_pair(id, suffix)]++;
    copy.name = absl::StrCat(copy.name, suffix, earlier == 0 ? "" : absl::StrCat("_", earlier));
    copy.persistable = false;
    copy.declared = false;
    const Layout from = copy.layout;
    set_kind(copy);
    const DType dtype = copy.dtype;
    const Layout layout = copy.layout;
    const auto copy_id = static_cast<VarId>(vars_.size());
    vars_.push_back(std::move(copy));
    op.inputs = {{"X", {id}, ""}};
    op.outputs = {{"Out", {copy_id}, ""}};
    INTERP_ASSIGN_OR_RETURN(Instruction instruction, MakeInstruction(op, *def, vars_));
    vars_[copy_id].dtype = dtype;
    instruction.output_dtypes[0] = dtype;
    instruction.output_layouts[0] = op.type == "cast" ? from : layout;
    instruction.inserted_op = static_cast<int32_t>(inserted_ops_.size());
    inserted_ops_.push_back(std::move(op));
    result_.push_back(std::move(instruction));
    copies_[key] = copy_id;
    return copy_id;
  }

  // Points an input at its transferred copy. An output that was to share the old input's memory
  // shares nothing any more.
  static void Redirect(Instruction& instruction, size_t arg, VarId id) {
    instruction.inputs[arg] = id;
    std::erase_if(instruction.share,
                  [&](const InplacePair& pair) { return pair.input == static_cast<int32_t>(arg); });
  }

  void SetOutputLayouts(Instruction& instruction, Layout wanted) {
    for (size_t arg = 0; arg < instruction.outputs.size(); ++arg) {
      const VarId id = instruction.outputs[arg];
      if (id < 0) continue;
      const bool image = IsImage(vars_[id]) && !vars_[id].persistable;
      instruction.output_layouts[arg] = image ? wanted : Layout::kPlain;
      vars_[id].layout = instruction.output_layouts[arg];
      ++versions_[id];
    }
  }

  const bool optimize_layout_;
  const OpRegistry& registry_;
  std::vector<PlanVar>& vars_;
  std::vector<Op>& inserted_ops_;
  std::vector<Instruction> result_;
  absl::flat_hash_map<VarId, int32_t> versions_;  // writes seen so far
  absl::flat_hash_map<std::tuple<VarId, int32_t, std::string>, VarId> copies_;
  absl::flat_hash_map<std::pair<VarId, std::string>, int32_t> copies_made_;
};

}  // namespace

absl::StatusOr<std::vector<Instruction>> InsertTransfers(std::vector<Instruction> instructions,
                                                         bool optimize_layout,
                                                         const OpRegistry& registry,
                                                         std::vector<PlanVar>& vars,
                                                         std::vector<Op>& inserted_ops) {
  TransferInserter inserter(optimize_layout, registry, vars, inserted_ops);
  for (Instruction& instruction : instructions) {
    const std::string where =
        absl::StrCat("block 0, op #", instruction.op_index, " ", instruction.op_type);
    INTERP_RETURN_IF_ERROR(Annotate(inserter.Add(std::move(instruction)), where));
  }
  return inserter.Take();
}

}  // namespace interp
