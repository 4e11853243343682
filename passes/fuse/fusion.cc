#include "passes/fuse/fusion.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "core/attr_reader.h"
#include "core/each_argument.h"
#include "core/fused_forms.h"
#include "core/op_role.h"
#include "core/program_print.h"
#include "passes/fresh_var.h"
#include "passes/op_inputs.h"
#include "passes/train/micro_batches.h"

namespace interp {
namespace {

// Attributes that say where an op runs and for whom: it is not joined with one of another part.
constexpr absl::string_view kPartAttrs[] = {kDeviceAttr, kStageAttr, kJobAttr};

// Null also for an empty name, which says nothing.
const Attr* PartAttr(const Op& op, absl::string_view name) {
  const Attr* const attr = op.FindAttr(name);
  const auto* const text = attr == nullptr ? nullptr : std::get_if<std::string>(&attr->value);
  return text != nullptr && text->empty() ? nullptr : attr;
}

}  // namespace

bool IsOfSamePart(const Op& a, const Op& b) {
  return std::all_of(std::begin(kPartAttrs), std::end(kPartAttrs), [&](absl::string_view name) {
    const Attr* const of_a = PartAttr(a, name);
    const Attr* const of_b = PartAttr(b, name);
    if (of_a == nullptr || of_b == nullptr) return of_a == of_b;
    return of_a->value == of_b->value;
  });
}

bool HasKernelOf(const OpDef& def, DType dtype) {
  return std::any_of(def.kernels.begin(), def.kernels.end(),
                     [dtype](const KernelDef& kernel) { return kernel.dtype == dtype; });
}

bool CanMake(absl::string_view type, const PassContext& context) {
  const OpDef* const def = context.ops.Find(type);
  return def != nullptr && def->RunsOn(context.place);
}

Fuser::Fuser(Program program, const OpRegistry& ops)
    : program_(std::move(program)),
      registry_(ops),
      uses_(FindVarUses(program_, ops)),
      gone_(this->ops().size()) {}

std::optional<VarId> Fuser::Argument(const std::vector<Slot>& slots, absl::string_view name) {
  const auto slot =
      std::find_if(slots.begin(), slots.end(), [name](const Slot& s) { return s.name == name; });
  if (slot == slots.end() || slot->args.size() != 1) return std::nullopt;
  return slot->args[0];
}

std::optional<int> Fuser::OnlyReader(int op, absl::string_view slot) const {
  return SoleReader(op, slot, /*shapes=*/false);
}

std::optional<int> Fuser::OnlyReaderOfValues(int op, absl::string_view slot) const {
  return SoleReader(op, slot, /*shapes=*/true);
}

// With `shapes`, other ops may read the shape behind the reader.
std::optional<int> Fuser::SoleReader(int op, absl::string_view slot, bool shapes) const {
  const std::optional<VarId> id = Argument(ops()[op].outputs, slot);
  if (!id.has_value()) return std::nullopt;
  const VarUse& use = uses_[*id];
  const bool private_to_two = !use.pinned() && use.writes == 1 && use.reads == 1 &&
                              use.mentions == 2 + use.shape_reads && use.first == op &&
                              use.last > op;
  if (!private_to_two || gone_[use.last]) return std::nullopt;
  if (!IsOfSamePart(ops()[op], ops()[use.last])) return std::nullopt;
  if (use.shape_reads > 0 && (!shapes || use.first_shape_read <= use.last)) return std::nullopt;
  return use.last;
}

const Var* Fuser::Parameter(std::optional<VarId> id) const {
  if (!id.has_value()) return nullptr;
  const VarUse& use = uses_[*id];
  return use.persistable && use.writes == 0 ? use.var : nullptr;
}

const Var* Fuser::ParameterUntil(int until, std::optional<VarId> id) const {
  if (const Var* const constant = Parameter(id); constant != nullptr) return constant;
  if (!id.has_value()) return nullptr;
  const VarUse& use = uses_[*id];
  const bool later =
      use.block != VarUse::kSeveralBlocks && use.writes == 1 && use.last_change > until;
  return use.persistable && later ? use.var : nullptr;
}

const Var* Fuser::Constant(std::optional<VarId> id) const {
  if (const Var* const parameter = Parameter(id); parameter != nullptr) return parameter;
  if (!id.has_value() || uses_[*id].writes != 1 || uses_[*id].var == nullptr) return nullptr;
  if (made_of_parameters_.empty()) {
    made_of_parameters_ = FindMadeOfParameters();
    shapes_ = FindSymbolicShapes(program_, uses_);
  }
  const bool known = made_of_parameters_[*id] && shapes_[*id] == uses_[*id].var->dims;
  return known ? uses_[*id].var : nullptr;
}

const Var* Fuser::ConstantUntil(int until, std::optional<VarId> id) const {
  const Var* const parameter = ParameterUntil(until, id);
  return parameter != nullptr ? parameter : Constant(id);
}

bool Fuser::IsPure(const Op& op) const {
  const OpDef* const def = registry_.Find(op.type);
  return def != nullptr && !def->side_effect && !def->random && !def->dynamic_outputs &&
         def->sub_block == nullptr;
}

std::vector<bool> Fuser::FindMadeOfParameters() const {
  std::vector<bool> made(uses_.size(), false);
  for (int i = 0; i < std::ssize(ops()); ++i) {
    const bool constant = absl::c_all_of(EachArgument(ops()[i].inputs), [&](VarId id) {
      return made[id] || Parameter(id) != nullptr;
    });
    if (!constant || !IsPure(ops()[i])) continue;
    for (const VarId id : EachArgument(ops()[i].outputs)) {
      const VarUse& use = uses_[id];
      made[id] = !use.pinned() && use.writes == 1 && use.first == i && use.last_write == i;
    }
  }
  return made;
}

bool Fuser::IsStable(VarId id, int from) const {
  const VarUse& use = uses_[id];
  if (use.block == VarUse::kSeveralBlocks) return use.writes == 0;
  return use.last_write < from;
}

bool Fuser::IsUnused(VarId id) const { return !uses_[id].pinned() && uses_[id].mentions == 1; }

bool Fuser::OthersAreUnused(int op, absl::string_view slot) const {
  return absl::c_all_of(ops()[op].outputs, [&](const Slot& other) {
    return other.name == slot || absl::c_all_of(other.args, [&](VarId id) { return IsUnused(id); });
  });
}

bool Fuser::GivesOutAlone(int op) const {
  return OthersAreUnused(op, "Out") && CheckNothingFused(ops()[op]).ok();
}

template <typename F>
void Fuser::ForEachLink(const std::vector<int>& chain, const F& f) const {
  for (size_t i = 0; i + 1 < chain.size(); ++i) {
    for (const VarId id : EachArgument(ops()[chain[i]].outputs)) {
      if (!uses_[id].pinned() && uses_[id].reads == 1) f(id);
    }
  }
}

std::optional<int> Fuser::MakerFor(int reader, VarId id) const {
  const VarUse& use = uses_[id];
  const int maker = use.last_write;
  if (use.writes != 1 || use.pinned() || maker < 0 || maker >= reader || gone_[maker]) {
    return std::nullopt;
  }
  const bool fits =
      IsOfSamePart(ops()[maker], ops()[reader]) && CheckNothingFused(ops()[maker]).ok();
  return fits ? std::optional(maker) : std::nullopt;
}

bool Fuser::AreSeenWithin(const std::vector<int>& chain) const {
  absl::flat_hash_map<VarId, int64_t> mentions;
  for (const int op : chain) {
    for (const std::vector<Slot>* slots : {&ops()[op].inputs, &ops()[op].outputs}) {
      for (const VarId id : EachArgument(*slots)) ++mentions[id];
    }
  }
  const auto is_seen_within = [&](int op) {
    return op == chain.back() || absl::c_all_of(EachArgument(ops()[op].outputs), [&](VarId id) {
             return !uses_[id].pinned() && uses_[id].mentions == mentions[id];
           });
  };
  return absl::c_all_of(chain, is_seen_within);
}

Op Fuser::TakeForFusion(int index) {
  Op& op = program_.blocks[0].ops[index];
  Op fused;
  fused.type = op.type;
  fused.attrs = std::exchange(op.attrs, {});
  fused.is_target = op.is_target;
  fused.has_is_target = op.has_is_target;
  fused.unknown_fields = op.unknown_fields;
  return fused;
}

Op Fuser::TakeAs(absl::string_view type, int op) {
  Op taken = TakeForFusion(op);
  taken.type = std::string(type);
  std::erase_if(taken.attrs, [](const Attr& attr) {
    return !IsProvenanceAttr(attr) && !absl::c_linear_search(kPartAttrs, attr.name);
  });
  return taken;
}

bool Fuser::CanReplace(const std::vector<int>& chain, VarId out,
                       absl::Span<const VarId> parameters) const {
  const int last = chain.back();
  for (const VarId id : parameters) {
    if (ConstantUntil(last, id) == nullptr) return false;
  }
  bool shapes_stay = true;
  ForEachLink(chain, [&](VarId id) {
    const VarUse& use = uses_[id];
    shapes_stay &= use.shape_reads == 0 || (uses_[out].writes == 1 && use.first_shape_read > last);
  });
  return shapes_stay;
}

void Fuser::Replace(const std::vector<int>& chain, Op fused) {
  ForEachLink(chain, [&](VarId id) {
    if (uses_[id].shape_reads == 0) return;
    if (shape_of_.empty()) shape_of_.assign(uses_.size(), -1);
    shape_of_[id] = fused.outputs[0].args[0];
  });
  const Op& last = ops()[chain.back()];
  for (const absl::string_view name : kPartAttrs) {
    const Attr* const attr = PartAttr(last, name);
    if (attr != nullptr && fused.FindAttr(name) == nullptr) SetAttr(fused, name, attr->value);
  }
  if (const int32_t role = RoleOf(last); role != kForwardRole) SetRole(fused, role);
  for (const int op : chain) gone_[op] = true;
  fused_.emplace_back(chain.back(), std::move(fused));
}

void Fuser::PutBehind(int op, Op added) { behind_.emplace_back(op, std::move(added)); }

VarId Fuser::Declare(std::string name, const Var& like) {
  Var var = like;
  var.id = FreshVar(program_, std::move(name));
  var.persistable = false;
  declared_.push_back(std::move(var));
  return declared_.back().id;
}

void Fuser::RenameShapes() {
  for (Op& op : program_.blocks[0].ops) {
    for (VarId& id : EachArgument(op.inputs)) {
      const bool known = id < std::ssize(shape_of_);
      if (known && shape_of_[id] >= 0) id = shape_of_[id];
    }
  }
}

Program Fuser::TakeProgram() && {
  for (auto& [position, op] : fused_) {
    program_.blocks[0].ops[position] = std::move(op);
    gone_[position] = false;
  }
  std::stable_sort(behind_.begin(), behind_.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  if (!shape_of_.empty()) RenameShapes();
  std::vector<Op> ops = std::exchange(program_.blocks[0].ops, {});
  std::vector<Op>& kept = program_.blocks[0].ops;
  kept.reserve(ops.size() + behind_.size());
  auto next = behind_.begin();
  for (size_t i = 0; i < ops.size(); ++i) {
    if (!gone_[i]) kept.push_back(std::move(ops[i]));
    for (; next != behind_.end() && next->first == static_cast<int>(i); ++next) {
      kept.push_back(std::move(next->second));
    }
  }
  std::vector<Var>& vars = program_.blocks[0].vars;
  vars.insert(vars.end(), std::make_move_iterator(declared_.begin()),
              std::make_move_iterator(declared_.end()));
  return std::move(program_);
}

namespace {

std::optional<FusedActivation> ReadActivation(const Op& op) {
  AttrReader attrs(op);
  const auto made = [&](absl::string_view name, float alpha = 0,
                        float beta = 0) -> std::optional<FusedActivation> {
    if (!attrs.status().ok()) return std::nullopt;
    return FusedActivation{std::string(name), alpha, beta};
  };
  const auto made_unless_zero = [&](absl::string_view name, float alpha, float beta = 0) {
    return alpha == 0 ? std::nullopt : made(name, alpha, beta);
  };
  if (op.type == "relu" || op.type == "sigmoid" || op.type == "tanh") return made(op.type);
  if (op.type == "relu6") {
    // Below 0 the fused form clips between limits that have changed places.
    const float threshold = attrs.Float("threshold", 6);
    return threshold > 0 ? made("relu6", threshold) : std::nullopt;
  }
  if (op.type == "leaky_relu") return made_unless_zero("leaky_relu", attrs.Float("alpha", 0.02F));
  if (op.type == "swish") return made_unless_zero("swish", attrs.Float("beta", 1));
  if (op.type == "silu") return made("swish", 1);
  if (op.type == "hard_sigmoid") {
    return made_unless_zero("hard_sigmoid", attrs.Float("slope", 0.2F),
                            attrs.Float("offset", 0.5F));
  }
  // Whose attributes its kernel ignores, as Paddle's does.
  if (op.type == "hard_swish") return made("hard_swish", 1.0F / 6, 0.5F);
  if (op.type == "gelu" && !attrs.Bool("approximate", false)) return made("gelu");
  return std::nullopt;
}

}  // namespace

std::optional<BinaryOperands> OperandsByLastDim(const Op& op) {
  const std::optional<VarId> x = Fuser::Argument(op.inputs, "X");
  const std::optional<VarId> y = Fuser::Argument(op.inputs, "Y");
  AttrReader attrs(op);
  const bool by_last = attrs.Int("axis", -1) == -1 && attrs.status().ok();
  if (!x.has_value() || !y.has_value() || !by_last) return std::nullopt;
  return BinaryOperands{*x, *y};
}

std::optional<float> FactorOf(const Op& op) {
  if (op.type != "scale" || !ReadsOnly(op, {"X"})) return std::nullopt;
  AttrReader attrs(op);
  const float factor = attrs.Float("scale", 1);
  const bool plain = attrs.Float("bias", 0) == 0 && attrs.status().ok();
  return plain ? std::optional<float>(factor) : std::nullopt;
}

std::optional<FusedActivation> MatchActivation(const Op& op) {
  const bool plain = op.inputs.size() == 1 && op.outputs.size() == 1 &&
                     Fuser::Argument(op.inputs, "X").has_value() &&
                     Fuser::Argument(op.outputs, "Out").has_value();
  return plain ? ReadActivation(op) : std::nullopt;
}

bool OnlyNormalizes(const Fuser& fuser, const Op& norm) {
  AttrReader attrs(norm);
  const bool running = attrs.Bool("is_test", false) || attrs.Bool("use_global_stats", false);
  if (!running || attrs.Bool("trainable_statistics", false) ||
      attrs.Bool("fuse_with_relu", false)) {
    return false;
  }
  for (const Slot& slot : norm.outputs) {
    if (slot.name == "Y") continue;
    for (const VarId id : slot.args) {
      const bool state = id == Fuser::Argument(norm.inputs, "Mean") ||
                         id == Fuser::Argument(norm.inputs, "Variance");
      if (!state && !fuser.IsUnused(id)) return false;
    }
  }
  return true;
}

std::optional<int32_t> RowDimsOfProduct(const Op& op, const VarUse& x, bool rank_is_uncertain) {
  if (!CheckNothingFused(op).ok()) return std::nullopt;
  AttrReader attrs(op);
  const bool declared = x.var != nullptr && x.writes <= 1 && !rank_is_uncertain;
  const int32_t rank = declared ? static_cast<int32_t>(x.var->dims.size()) : 0;
  std::optional<int32_t> rows;
  if (op.type == "mul" && attrs.Int("y_num_col_dims", 1) == 1) {
    rows = attrs.Int("x_num_col_dims", 1);
  } else if (op.type == "matmul_v2" && !attrs.Bool("trans_x", false) &&
             !attrs.Bool("trans_y", false)) {
    rows = rank - 1;
  } else if (op.type == "matmul" && !attrs.Bool("transpose_X", false) &&
             !attrs.Bool("transpose_Y", false) && attrs.Float("alpha", 1) == 1 &&
             attrs.Int("head_number", 1) == 1) {
    rows = rank - 1;
  }
  return attrs.status().ok() && rows.value_or(0) >= 1 ? rows : std::nullopt;
}

bool IsPerChannel(const std::vector<int64_t>& dims, int64_t axis, int64_t rank,
                  int64_t channel_axis, int64_t channels) {
  const int64_t count = std::ssize(dims);
  const int64_t begin = axis == -1 ? rank - count : axis;
  if (channels <= 0 || begin < 0 || begin + count > rank || channel_axis < begin ||
      channel_axis >= begin + count) {
    return false;
  }
  for (int64_t i = 0; i < count; ++i) {
    if (dims[i] != (begin + i == channel_axis ? channels : 1)) return false;
  }
  return true;
}

}  // namespace interp
