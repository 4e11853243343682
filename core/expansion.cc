#include "core/expansion.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/edit_op.h"

namespace interp {
namespace {

absl::flat_hash_map<absl::string_view, std::unique_ptr<ExpansionDef>>& ExpansionDefs() {
  static auto* defs = new absl::flat_hash_map<absl::string_view, std::unique_ptr<ExpansionDef>>();
  return *defs;
}

VarId ArgumentOf(const Slot* slot, VarId empty) {
  if (slot == nullptr || slot->args.empty() || slot->args[0] == empty) return Expansion::kAbsent;
  return slot->args[0];
}

std::string PartName(absl::string_view variable, absl::string_view part) {
  return absl::StrCat(variable, "@", part);
}

}  // namespace

Expansion::Expansion(Program& program, const Op& op)
    : program_(program), op_(op), attrs_(op), empty_(program.Find(kEmptyVarName)) {}

VarId Expansion::Input(absl::string_view slot) const {
  return ArgumentOf(op_.FindInput(slot), empty_);
}

std::vector<VarId> Expansion::Inputs(absl::string_view slot) const {
  const Slot* const found = op_.FindInput(slot);
  return found == nullptr ? std::vector<VarId>()
                          : std::vector<VarId>(found->args.begin(), found->args.end());
}

VarId Expansion::Output(absl::string_view slot) const {
  return ArgumentOf(op_.FindOutput(slot), empty_);
}

// Named after the op and a number that no name has yet.
VarId Expansion::Temporary() {
  for (size_t i = program_.names.size();; ++i) {
    const std::string name = absl::StrCat(op_.type, "@PART", i);
    if (program_.Find(name) < 0) return program_.Intern(name);
  }
}

VarId Expansion::Add(absl::string_view type, std::initializer_list<Argument> inputs,
                     absl::string_view output) {
  for (const Argument& argument : inputs) {
    if (argument.id == kAbsent) return kAbsent;
  }
  const VarId out = Temporary();
  Op& added = ops_.emplace_back();
  added.type = std::string(type);
  added.attrs = op_.attrs;
  // Paddle's gradients of these have no defaults.
  if (absl::StartsWith(type, "elementwise_") && added.FindAttr("axis") == nullptr) {
    interp::SetAttr(added, "axis", -1);
  }
  for (const Argument& argument : inputs) AddInput(added, argument.slot, {argument.id});
  AddOutput(added, output, {out});
  return out;
}

VarId Expansion::AlsoGives(absl::string_view output) { return AlsoGives(output, 1)[0]; }

std::vector<VarId> Expansion::AlsoGives(absl::string_view output, int count) {
  std::vector<VarId> values;
  for (int i = 0; i < count; ++i) values.push_back(Temporary());
  AddOutput(ops_.back(), output, ArgIds(values.begin(), values.end()));
  return values;
}

void Expansion::AlsoTakes(absl::string_view slot, const std::vector<VarId>& arguments) {
  const bool absent = std::find(arguments.begin(), arguments.end(), kAbsent) != arguments.end();
  if (arguments.empty() || absent) return;
  AddInput(ops_.back(), slot, ArgIds(arguments.begin(), arguments.end()));
}

void Expansion::SetAttr(absl::string_view name, AttrValue value) {
  interp::SetAttr(ops_.back(), name, std::move(value));
}

VarId Expansion::Sum(const std::vector<VarId>& terms) {
  ArgIds present;
  for (const VarId term : terms) {
    if (term != kAbsent) present.push_back(term);
  }
  if (present.empty()) return kAbsent;
  if (present.size() == 1) return present[0];
  const VarId out = Add("sum", {});
  AddInput(ops_.back(), "X", std::move(present));
  return out;
}

VarId Expansion::Scale(VarId value, float factor) {
  const VarId out = Add("scale", {{"X", value}});
  if (out != kAbsent) SetAttr("scale", factor);
  return out;
}

void Expansion::Set(absl::string_view slot, VarId value) {
  const VarId output = Output(slot);
  if (output != kAbsent && value != kAbsent) Assign(output, value);
}

VarId Expansion::InputPart(absl::string_view slot, absl::string_view part) const {
  const VarId input = Input(slot);
  return input == kAbsent ? kAbsent : program_.Find(PartName(program_.NameOf(input), part));
}

void Expansion::SetPart(absl::string_view slot, absl::string_view part, VarId value) {
  const VarId output = Output(slot);
  if (output == kAbsent || value == kAbsent) return;
  Assign(program_.Intern(PartName(program_.NameOf(output), part)), value);
  LeaveOut(slot);
}

void Expansion::Assign(VarId output, VarId value) {
  Op& result = results_.emplace_back();
  result.type = "assign";
  AddInput(result, "X", {value});
  AddOutput(result, "Out", {output});
}

void Expansion::SetOrZeros(absl::string_view slot, VarId value, VarId like) {
  if (value == kAbsent && Wants(slot)) value = Add("fill_zeros_like", {{"X", like}});
  Set(slot, value);
}

absl::StatusOr<std::vector<Op>> Expansion::Take() && {
  INTERP_RETURN_IF_ERROR(attrs_.status());
  for (const Slot& slot : op_.outputs) {
    const VarId output = Output(slot.name);
    if (output == kAbsent) continue;
    bool given = absl::c_linear_search(left_out_, slot.name);
    for (const Op& result : results_) given |= result.outputs[0].args[0] == output;
    if (!given) return InvalidArgument("output '", slot.name, "' needs inputs that are absent");
  }
  std::move(results_.begin(), results_.end(), std::back_inserter(ops_));
  return std::move(ops_);
}

const ExpansionDef* FindExpansion(absl::string_view type) {
  const auto found = ExpansionDefs().find(type);
  return found == ExpansionDefs().end() ? nullptr : found->second.get();
}

ExpansionRegistration::ExpansionRegistration(ExpansionDef&& def) {
  OpRegistry::Global().Add(
      OpDef{.type = def.type, .inputs = def.inputs, .outputs = def.outputs, .gradient = {}});
  const absl::string_view type = def.type;
  ExpansionDefs().emplace(type, std::make_unique<ExpansionDef>(std::move(def)));
}

}  // namespace interp
