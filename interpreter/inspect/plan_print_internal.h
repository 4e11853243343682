// What the files of PrintPlan share.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/base/json_writer.h"
#include "interpreter/inspect/plan_print.h"

namespace interp::plan_print {

// VarText of each, joined by ", ".
std::string VarsText(const Plan& plan, absl::Span<const VarId> ids);

// The name of a slot; hidden arguments have one, too.
absl::string_view SlotName(const std::vector<SlotDef>& slots, size_t slot);

// The plans of the blocks that run, each behind the one that runs it.
std::vector<const Plan*> RunningPlans(absl::Span<const Plan> plans);

// Whether the plan has more than the host's threads: text and DOT leave places, streams and events
// out where all of them are the host's.
bool UsesDevices(const Plan& plan);
// "compute sim:0", of a stream of the plan.
std::string StreamText(const Plan& plan, int32_t stream);

// How attributes are written: as values of JSON, or as strings in the text form, which keeps 64 bit
// integers exact where the reader's numbers are doubles.
enum class AttrForm : int8_t { kValues, kText };

// Writes the members of a stage into the open object, those of other blocks than the first under
// "blocks". `program` may be null, see PrintPlan.
void WriteStage(JsonWriter& json, absl::Span<const Plan> plans, PlanStage stage,
                const Program* program, AttrForm attrs);

std::string ToJson(absl::Span<const Plan> plans, PlanStage stage, const Program* program);
std::string ToDot(absl::Span<const Plan> plans, PlanStage stage);

}  // namespace interp::plan_print
