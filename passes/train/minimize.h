// Minimize: a training program from a forward program.
#pragma once

#include <string>
#include <vector>

#include "core/op_def.h"
#include "core/program.h"
#include "core/status.h"
#include "passes/train/append_backward.h"
#include "passes/train/optimizer.h"

namespace interp {

struct MinimizeOptions {
  BackwardOptions backward;  // the loss among them
  OptimizerSpec optimizer;
  // Variables that segments of recomputation end with; see passes/train/recompute.h. Empty: none.
  std::vector<std::string> checkpoints = {};
};

struct TrainingPrograms {
  Program main;     // forward, backward and update
  Program startup;  // what `startup` was, and the first values of the optimizer's state
  std::vector<SourceGradient> gradients;  // in `main`
  int num_recomputed = 0;                 // ops that recomputation has added
};

// As Paddle's Optimizer.minimize: AppendBackward, Recompute and AppendOptimizer in one. The feed
// and fetch ops of `main` go: whoever runs a training program says what is fed and fetched.
// `startup` makes the parameters; an empty program is one without ops. Errors: those of the three,
// and of VerifyProgram for `startup`.
absl::StatusOr<TrainingPrograms> Minimize(Program main, Program startup,
                                          const MinimizeOptions& options, const OpRegistry& ops);

}  // namespace interp
