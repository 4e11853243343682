// FlowOfMicroBatch: what the values that the jobs of a micro-batch compute come from, as far as it
// decides what becomes of them in a batch.
#pragma once

#include <cstdint>
#include <vector>

#include "core/program.h"

namespace interp {

// How a value changes with the weight of the micro-batch where that is put on the gradients of
// losses.
enum class Weighting : int8_t {
  kNone,   // not at all
  kZero,   // is zero
  kOnce,   // is a multiple of it, as gradients are
  kMixed,  // the sum of some that do and some that do not
};

struct MicroBatchFlow {
  std::vector<bool> starts;          // by op: makes the gradient of a loss (op_role 257)
  std::vector<Weighting> weighting;  // by VarId, as the last op of the jobs leaves it
  std::vector<bool> of_samples;      // by VarId: may differ with the samples
  std::vector<bool> of_states;       // by VarId: may differ with how many micro-batches came before
};

// `job_of`: -1 for ops that are in no job. `samples`: of each micro-batch. `states`: go from one
// micro-batch to the next. Linear in ops and arguments.
MicroBatchFlow FlowOfMicroBatch(const Program& main, const std::vector<int32_t>& job_of,
                                const std::vector<VarId>& samples,
                                const std::vector<VarId>& states);

// Whether the op is of batch_norm's kind: in training it takes the batch's mean and variance, and
// only moves the averages that it is given.
bool MovesAverages(const Op& op);
// Whether `slot` of such an op, or of its gradient, which does not use them then, is such averages.
bool IsAverage(const Slot& slot);
// Whether no result of the op depends on the input but what becomes of it: such averages, where the
// op or the one whose gradient it is trains.
bool OnlyMoves(const Op& op, const Slot& input);

}  // namespace interp
