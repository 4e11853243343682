// BruteProof: what VerifyPlan proves, by definition and without any cleverness.
//
// All moments of two runs, an explicit transitive closure, and all pairs of conflicting accesses,
// not only neighbouring ones. Cubic: for plans of at most 256 instructions.
#pragma once

#include <string>

#include "interpreter/plan/plan.h"

namespace interp::testing {

// Empty when the plan is safe, else a reason why not.
std::string BruteProof(const Plan& plan);

}  // namespace interp::testing
