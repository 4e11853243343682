// Recompute: gives up activations after the forward part and computes them again for the backward
// part.
#pragma once

#include <string>
#include <vector>

#include "core/op_def.h"
#include "core/program.h"
#include "core/status.h"

namespace interp {

// Checkpoints cut the forward part of a training program into segments: each ends with the op that
// writes a checkpoint. What is written within a segment and read by the backward part is computed
// again from the checkpoints, right before its first reader there:
//
//   relu(X=a) -> (Out=b)                         relu(X=a) -> (Out=b)
//   ...                                          ...
//                                                relu(X=a) -> (Out=b.subprog_0)
//   relu_grad(Out=b, ...) -> (X@GRAD=a@GRAD)     relu_grad(Out=b.subprog_0, ...) -> ...
//
// so that collection frees b in the forward part. Kept as they are: checkpoints, what comes behind
// the last one, persistable variables, and the outputs of ops that draw random numbers, run blocks,
// have effects, write a variable that is written elsewhere too, or read one that is written again.
// A batch_norm that is computed again leaves its moving averages alone. The result is a program
// that Paddle runs; names are those of its RecomputeOptimizer.
//
// Works on any program whose ops have roles (AppendBackward's and Paddle's). Linear in ops.
// Errors: NotFound for a checkpoint that no forward op writes; InvalidArgument for a program
// without backward part; those of VerifyStructure.
struct RecomputeResult {
  Program program;
  int num_recomputed = 0;  // ops that were added
};
absl::StatusOr<RecomputeResult> Recompute(Program program,
                                          const std::vector<std::string>& checkpoints,
                                          const OpRegistry& ops);

}  // namespace interp
