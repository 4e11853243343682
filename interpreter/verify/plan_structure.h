// CheckPlanStructure: whether a plan hangs together, so that all else may index it freely.
#pragma once

#include "absl/types/span.h"
#include "core/status.h"
#include "interpreter/plan/plan.h"

namespace interp {

// InvalidArgument unless every index is in range and every vector has the size that others imply:
// arguments fit their slots, kernels and attributes are there, edges and successors lead forward in
// program order and are sorted, `order` is a permutation, streams and events exist where
// instructions name them. Says nothing about whether the plan is right: that is VerifyPlan's part.
// For plans that come from outside; enums are taken to hold one of their values. Linear.
absl::Status CheckPlanStructure(const Plan& plan);

// The same for the plans of all blocks of a program, by block, from block 0 on, and whether
// instructions that run a block have what its plan captures as hidden arguments. Plans of blocks
// that never run are not looked at.
absl::Status CheckPlansStructure(absl::Span<const Plan> plans);

}  // namespace interp
