// Compiled programs as messages. Private to this folder.
#pragma once

#include "core/op_def.h"
#include "core/place.h"
#include "core/status.h"
#include "interpreter/compile/compiled_program.h"
#include "proto/plan.pb.h"

namespace interp {

// Fills an empty `file`.
absl::Status EncodePlan(const CompiledProgram& compiled, proto::plan::PlanFile& file);

// InvalidArgument for a number that stands for no place.
absl::Status ReadPlace(int32_t code, Place* out);

// Reads `file`, which may hold anything. The result has passed CheckPlanStructure and
// CheckPlanTypes.
absl::StatusOr<CompiledProgram> DecodePlan(const proto::plan::PlanFile& file,
                                           const OpRegistry& ops);

}  // namespace interp
