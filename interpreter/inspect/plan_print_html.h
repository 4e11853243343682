// Plan -> one HTML page that shows it: lanes by stream, instructions in order, edges, events, and
// the details of what is clicked. docs/seeing_a_plan.md says how to use it.
//
// The page is complete in itself and fetches nothing. It is interpreter/inspect/plan_view (embedded
// at build time) with the plan as JSON; like all dumps it has the same characters for the same
// plan. Names reach it as text only, whatever is in them.
#pragma once

#include <string>

#include "interpreter/inspect/plan_print.h"

namespace interp {

// `program` is what `plans`, those of all blocks, were built from. `title` heads the page: the
// model's name, say. With kDeps the page shows shrunk edges from the start. Linear in the plans'
// size.
std::string ToHtml(absl::Span<const Plan> plans, const Program& program,
                   absl::string_view title = "plan", PlanStage stage = PlanStage::kPlan);

}  // namespace interp
