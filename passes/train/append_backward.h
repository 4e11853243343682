// AppendBackward: the gradients of a loss, as ops of the program.
#pragma once

#include <string>
#include <vector>

#include "core/op_def.h"
#include "core/program.h"
#include "core/status.h"

namespace interp {

struct BackwardOptions {
  std::string loss;  // a variable of block 0 with one element
  // Variables that no gradient flows through, beside those that the program marks stop_gradient.
  std::vector<std::string> no_grad = {};
  // Whose gradients are wanted. Empty: those of all parameters (see Parameters).
  std::vector<std::string> sources = {};
};

struct SourceGradient {
  VarId source = -1;
  VarId gradient = -1;
};

struct BackwardProgram {
  Program program;
  // The sources that the loss depends on, in the order of their declarations.
  std::vector<SourceGradient> gradients;
};

// Appends to block 0 the ops that compute the gradients of the loss, as Paddle's append_backward
// does (python/paddle/base/backward.py): the same ops, names, slots, roles and blocks.
//
//   loss@GRAD is filled with 1. Ops are taken from the last to the first; each that has the
//   gradient of an output adds what its OpDef::gradient gives.
//   - x@GRAD is the gradient of x. Where several ops give it, they write x@GRAD@RENAME@block0@0,
//     ...1 and so on, which one `sum` adds up before anybody reads x@GRAD.
//   - The gradient of an output that the loss does not depend on is filled with zeros where the
//     gradient op reads it.
//   - An op that runs a block gets a new block, whose parent is the block of the gradient op and
//     whose forward block is the op's; the gradients that it gives are declared in it under their
//     plain names.
//   - A variable that is written again (a loop's counter) has one gradient for each version, under
//     one name.
//   - The gradient of a source that is written again is the sum of those of its versions, made at
//     the end of the block. An update in place, of an op or a loop, hands on that of its result
//     instead. A loop, or a branch without a scalar condition, that overwrites the source with
//     something else drops it, and what such blocks read of the new value is in no sum.
//   - Versions of a variable may differ in shape: what a gradient takes the shape from is copied
//     before the op that writes it again.
//   - A program may have gradients that the loss is made of (earlier_gradients.h).
//   - `is_sparse` of an op makes the gradients that it gives selected rows.
//
// The ops have op_role 1, and op_role_var where they give the gradient of a source; the op that
// makes the loss gets op_role 256. Linear in ops.
//
// Errors: no such loss, or it has not one element; it depends on no source; an op on the way has no
// gradient; the program has that of the loss already; those of VerifyProgram.
absl::StatusOr<BackwardProgram> AppendBackward(Program program, const BackwardOptions& options,
                                               const OpRegistry& ops);

// The parameters that training changes: those that the program marks (is_parameter, without
// stop_gradient). A program that marks none (Paddle 1.x) has for parameters the persistable
// variables of floats that its ops read and do not write. In the order of block 0's declarations.
std::vector<VarId> Parameters(const Program& program);

}  // namespace interp
