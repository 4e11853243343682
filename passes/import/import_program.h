// Programs as they were loaded, as passes want them.
#pragma once

#include "core/program.h"
#include "core/status.h"
#include "passes/pass.h"

namespace interp {

// What earlier releases and other tools wrote, as Paddle 2.6 writes it: before the first pass, and
// before VerifyProgram, to which it would be a mistake. In this order: names of quantizers, slots
// that definitions no longer have, fused products and weights with padding, gradients that nothing
// declares, those of real variables that ops make complex, and scales that ops list as outputs.
// Errors are those of these steps, each in a file of passes/import or passes/quant.
absl::StatusOr<Program> ImportProgram(Program program, const PassContext& context);

}  // namespace interp
