// Gradients that are another ordinary op, as that of split is concat, and gradients of ops that
// keep something for them in training alone.
#pragma once

#include <initializer_list>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/gradient.h"

namespace interp {

// A slot of such an op and what its arguments are: those of a slot of the forward op, or with @GRAD
// behind the slot's name their gradients.
struct GradientOpSlot {
  absl::string_view name;
  absl::string_view of;
};

// Adds an op `type` with the attributes of the forward op, unless nobody wants what it gives.
absl::Status AddGradientOp(GradientMaker& maker, absl::string_view type,
                           std::initializer_list<GradientOpSlot> inputs,
                           std::initializer_list<GradientOpSlot> outputs);

// A GradientDef::make: adds the gradient op that the table beside it describes. Error:
// InvalidArgument where attribute is_test is set, as the op then keeps nothing for its gradient.
absl::Status AddTrainingGradient(GradientMaker& maker);

// That error alone.
absl::Status CheckInTraining(const GradientMaker& maker);

}  // namespace interp
