// Slots that earlier releases of Paddle gave ops and that their definitions here do not have.
#pragma once

#include "core/program.h"
#include "core/status.h"
#include "passes/pass.h"

namespace interp {

// Takes such slots from the ops that have a definition, for programs as they were loaded; Paddle
// ignores them as well. Runs before VerifyProgram, to which any other slot that a definition lacks
// is a mistake.
//   - Gradient ops of releases before 1.6 list all inputs and outputs of the forward op and the
//     gradients of all outputs, which need not be declared:
//
//       mul_grad(X=x, Y=w, Out=y, Out@GRAD=g)      becomes  mul_grad(X=x, Y=w, Out@GRAD=g)
//
//   - A few forward ops have lost slots (RoisLod of roi_align).
// An output goes when nothing reads, fetches or keeps what it names. Unimplemented with the op when
// something does; InvalidArgument where VerifyStructure finds something.
absl::StatusOr<Program> DropRetiredSlots(Program program, const PassContext& context);

}  // namespace interp
