// Weights that Paddle's fc_fuse_pass has padded.
#pragma once

#include "core/program.h"
#include "core/status.h"
#include "passes/pass.h"

namespace interp {

// Gives `fc` with padding_weights, whose W [K+4, N+4] has four rows and columns that mean nothing
// (Paddle's fc_fuse_pass.cc adds them where K and N are multiples of 128), the part that counts:
//
//   slice(Input=w) -> (Out=w@UNPADDED_0) {axes=[0,1], starts=[0,0], ends=[-4,-4]}
//
// before each such op; where w is constant the slice is made once. Runs before VerifyProgram.
// Numbers make the names new. InvalidArgument where VerifyStructure finds something.
absl::StatusOr<Program> CropPaddedWeights(Program program, const PassContext& context);

}  // namespace interp
