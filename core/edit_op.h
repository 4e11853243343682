// Making and changing ops of a Program.
#pragma once

#include "absl/strings/string_view.h"
#include "core/program.h"

namespace interp {

// Puts a slot behind those of the op; one without arguments is left out.
void AddInput(Op& op, absl::string_view slot, ArgIds args);
void AddOutput(Op& op, absl::string_view slot, ArgIds args);
// Sets an attribute, which may be there already.
void SetAttr(Op& op, absl::string_view name, AttrValue value);

}  // namespace interp
