#include "core/gradient.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace interp {

std::string GradientName(absl::string_view name) { return absl::StrCat(name, kGradientSuffix); }

// Here and not in the header, which all kernels include: what destroys and moves an Op is long.
GradientMaker::GradientMaker(Request request) : request_(std::move(request)) {}
GradientMaker::~GradientMaker() = default;
std::vector<Op> GradientMaker::Take() { return std::move(ops_); }

ArgIds GradientMaker::Arguments(absl::string_view slot) const {
  if (const Slot* input = op().FindInput(slot); input != nullptr) return input->args;
  if (const Slot* output = op().FindOutput(slot); output != nullptr) return output->args;
  return {};
}

ArgIds GradientMaker::OutputGradients(absl::string_view slot) {
  const Slot* output = op().FindOutput(slot);
  if (output == nullptr) return {};
  ArgIds gradients;
  for (const VarId arg : output->args) {
    const std::string& name = program().NameOf(arg);
    gradients.push_back(name == kEmptyVarName ? arg : Intern(GradientName(name)));
  }
  return gradients;
}

ArgIds GradientMaker::InputGradients(absl::string_view slot) {
  const Slot* input = op().FindInput(slot);
  if (input == nullptr) return {};
  ArgIds gradients;
  for (const VarId arg : input->args) {
    gradients.push_back(request_.wants(arg) ? Intern(GradientName(program().NameOf(arg)))
                                            : Empty());
  }
  return gradients;
}

bool GradientMaker::Wants(absl::string_view slot) const {
  const Slot* input = op().FindInput(slot);
  return input != nullptr && std::any_of(input->args.begin(), input->args.end(), request_.wants);
}

VarId GradientMaker::Empty() { return Intern(kEmptyVarName); }

Op& GradientMaker::Add(absl::string_view type) {
  Op& op = ops_.emplace_back();
  op.type = std::string(type);
  return op;
}

void GradientMaker::AddByTable(const GradientDef& def) {
  Op gradient;
  gradient.type = def.type.empty() ? absl::StrCat(op().type, "_grad") : std::string(def.type);
  gradient.attrs = op().attrs;
  for (absl::string_view slot : def.inputs) {
    absl::string_view of = slot;
    const bool is_gradient = absl::ConsumeSuffix(&of, kGradientSuffix);
    AddInput(gradient, slot, is_gradient ? OutputGradients(of) : Arguments(slot));
  }
  bool wanted = false;
  for (absl::string_view slot : def.outputs) {
    const absl::string_view of = absl::StripSuffix(slot, kGradientSuffix);
    if (!Wants(of)) continue;
    wanted = true;
    AddOutput(gradient, slot, InputGradients(of));
  }
  if (wanted) ops_.push_back(std::move(gradient));
}

}  // namespace interp
