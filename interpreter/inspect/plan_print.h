// Plan -> text, JSON or DOT. The same plan always gives the same characters: no addresses, no
// times, everything in program order; so dumps can be diffed and serve as expected results of
// tests.
#pragma once

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "interpreter/plan/plan.h"

namespace interp {

enum class PlanStage : int8_t {
  kDeps,  // instructions and all edges between them, with kind, variable and whether they are kept
  kPlan,  // all that a run needs to know: order, kernels, layouts, memory sharing, frees, counts,
          // and where devices take part places, streams and events
};

enum class PlanFormat : int8_t { kText, kJson, kDot };

// The dump of one stage, with a line break at the end. `program`, when not null, is what the plan
// was built from: JSON of the plan stage then has attributes and declared dims, too. Linear in the
// plan's size. A page to look at: plan_print_html.h.
std::string PrintPlan(const Plan& plan, PlanStage stage, PlanFormat format,
                      const Program* program = nullptr);
// The same for the plans of a program, by block: those that run, the main one first. JSON has the
// others in the list "blocks" of the main one's object, DOT in boxes.
std::string PrintPlans(absl::Span<const Plan> plans, PlanStage stage, PlanFormat format,
                       const Program* program = nullptr);

}  // namespace interp
