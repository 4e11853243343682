// Mutations: small damages to a plan, some of which change the order of conflicting accesses.
//
// They leave a plan that hangs together (CheckPlanStructure) and that a run would take: whether it
// is still right is what verification has to tell, and what running it on a simulated device shows.
#pragma once

#include <string>
#include <vector>

#include "interpreter/plan/plan.h"

namespace interp::testing {

enum class MutationKind : int8_t {
  kDropEdge,          // `second` no longer waits for `first`
  kDropWait,          // `first` no longer waits for its wait number `index`
  kDropRecord,        // `first` no longer records its event
  kCountDownEarlier,  // `second` counts `var` down instead of `first`, which uses it later
  kFreeEarlier,       // in the trace order `second` frees `var` instead of `first`
  kShareLiveValue,    // `first` may write output `index` over its input `second`, an argument
  kSwapOnStream,      // `second` is issued just before `first`, its neighbour on a stream
};
inline constexpr int kNumMutationKinds = 7;
const char* Name(MutationKind kind);

struct Mutation {
  MutationKind kind = MutationKind::kDropEdge;
  int32_t first = -1;
  int32_t second = -1;
  VarId var = -1;
  int32_t index = -1;
};

// All mutations of a plan, by kind.
std::vector<Mutation> AllMutations(const Plan& plan);
Plan Mutate(Plan plan, const Mutation& mutation);
// "drop edge #3 -> #5".
std::string Describe(const Plan& plan, const Mutation& mutation);

}  // namespace interp::testing
