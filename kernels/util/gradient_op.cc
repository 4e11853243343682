#include "kernels/util/gradient_op.h"

#include "absl/strings/strip.h"

namespace interp {

absl::Status AddGradientOp(GradientMaker& maker, absl::string_view type,
                           std::initializer_list<GradientOpSlot> inputs,
                           std::initializer_list<GradientOpSlot> outputs) {
  bool wanted = false;
  for (const auto& [name, of] : outputs) {
    wanted |= maker.Wants(absl::StripSuffix(of, kGradientSuffix));
  }
  if (!wanted) return absl::OkStatus();
  Op& gradient = maker.Add(type);
  for (const auto& [name, of] : inputs) {
    const absl::string_view slot = absl::StripSuffix(of, kGradientSuffix);
    AddInput(gradient, name,
             slot.size() < of.size() ? maker.OutputGradients(slot) : maker.Arguments(of));
  }
  for (const auto& [name, of] : outputs) {
    AddOutput(gradient, name, maker.InputGradients(absl::StripSuffix(of, kGradientSuffix)));
  }
  gradient.attrs = maker.op().attrs;
  return absl::OkStatus();
}

}  // namespace interp
