// Evaluate: the means of what a program gives on samples that it does not learn from.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "core/status.h"
#include "core/tensor.h"
#include "interpreter/interpreter_core.h"
#include "interpreter/train/sample_source.h"

namespace interp {

// What an evaluation has found.
struct EvaluationResult {
  std::vector<Tensor> means;  // of the fetches, float64
  int64_t num_skipped = 0;    // samples that are damaged and left out
};

// How long an evaluation may go on.
struct EvaluationLimits {
  std::optional<std::chrono::nanoseconds> timeout = std::nullopt;  // of the run of a batch
  std::stop_token stop = {};  // a request ends the run in progress, too
};

// The mean of each fetch over one epoch of `source` in order; batches count by their samples. It is
// taken element by element where the fetch has one shape in all batches. Else, as for a value per
// sample when the last batch is not full, it is one number: the mean of all elements of all
// batches, NaN where there are none. Errors: InvalidArgument for fetches that are no real numbers;
// those of InterpreterCore::Run; Cancelled where `limits.stop` is requested.
absl::StatusOr<EvaluationResult> Evaluate(InterpreterCore& core,
                                          const std::shared_ptr<SampleSource>& source,
                                          int64_t batch_size, const EvaluationLimits& limits = {});

}  // namespace interp
