// What the files of PrintPlan share.
#pragma once

#include <string>

#include "absl/types/span.h"
#include "interpreter/plan_print.h"

namespace interp::plan_print {

// The name of a variable as text forms write it; @EMPTY@ for -1.
std::string VarText(const Plan& plan, VarId id);
// Names joined by ", ".
std::string VarsText(const Plan& plan, absl::Span<const VarId> ids);

std::string ToJson(const Plan& plan, PlanStage stage);
std::string ToDot(const Plan& plan, PlanStage stage);

}  // namespace interp::plan_print
