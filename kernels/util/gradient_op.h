// Gradients that are another ordinary op: split's is concat, and so on.
#pragma once

#include <initializer_list>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "core/gradient.h"

namespace interp {

// A slot of such an op and what its arguments are: those of a slot of the forward op, or with @GRAD
// behind the slot's name their gradients.
struct GradientOpSlot {
  absl::string_view name;
  absl::string_view of;
};

// Adds an op `type` with the attributes of the forward op, unless nobody wants what it gives.
inline absl::Status AddGradientOp(GradientMaker& maker, absl::string_view type,
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
