// What the files of PrintPlan share.
#pragma once

#include <string>

#include "absl/types/span.h"
#include "core/json_writer.h"
#include "interpreter/plan_print.h"

namespace interp::plan_print {

// The name of a variable as text forms write it; @EMPTY@ for -1.
std::string VarText(const Plan& plan, VarId id);
// Names joined by ", ".
std::string VarsText(const Plan& plan, absl::Span<const VarId> ids);

// Whether the plan has more than the host's threads: text and DOT leave places, streams and events
// out where all of them are the host's.
bool UsesDevices(const Plan& plan);
// "compute sim:0", of a stream of the plan.
std::string StreamText(const Plan& plan, int32_t stream);

// How attributes are written: as values of JSON, or as strings in the text form, which keeps 64 bit
// integers exact where the reader's numbers are doubles.
enum class AttrForm : int8_t { kValues, kText };

// Writes the members of a stage into the open object. `program` may be null, see PrintPlan.
void WriteStage(JsonWriter& json, const Plan& plan, PlanStage stage, const Program* program,
                AttrForm attrs);

std::string ToJson(const Plan& plan, PlanStage stage, const Program* program);
std::string ToDot(const Plan& plan, PlanStage stage);

}  // namespace interp::plan_print
