// VerifyProgram: the invariants of a program that passes and analyses rely on.
#pragma once

#include <vector>

#include "core/op_def.h"
#include "core/program.h"
#include "core/status.h"

namespace interp {

// Checks in linear time that
//   - blocks are numbered by position, have a parent before them, and running one never leads back
//     to itself; nesting is at most 64 deep;
//   - ids are in range and no block declares a variable twice;
//   - ops with a definition give arguments only to slots of it, give all mandatory ones, and give
//     one argument to slots that take one; no op has one variable as two outputs;
//   - every input is declared in its block or an enclosing one, or written by an op before (ops
//   with
//     sub-blocks are exempt: they may list variables that exist only while they run);
//   - in-place pairs are legal, see below.
// Ops without a definition pass: only those that remain after all passes must be known.
//
// In-place pairs. Each pair must be in the op's definition as `inplace` or `view`, join two
// different variables of one declared dtype that a single block uses, and take each argument once.
// Whether they are harmless is checked by following the memory: every variable refers to some
// memory and to its state; writing over memory makes all other variables that refer to it stale. No
// stale variable may be read, nor be fed, fetched or persistable at the end; memory that came from
// outside may not be written over by a pair.
absl::Status VerifyProgram(const Program& program, const OpRegistry& ops);

// The last part of it.
absl::Status VerifyInplace(const Program& program, const OpRegistry& ops);

// The first part, which makes ids safe to use: for programs as they were loaded.
absl::Status VerifyStructure(const Program& program);

// After insert_feed_fetch: the feed ops have columns 0, 1, 2, ... in program order, and so have the
// fetch ops.
absl::Status VerifyColumns(const Program& program);

// Every op that can run (sub-blocks no op refers to cannot) has a definition. Unimplemented with
// the nearest names when not.
absl::Status VerifyOpsKnown(const Program& program, const OpRegistry& ops);

// By VarId: variables that block 0 reads only after an op other than feed wrote them, and arrays.
struct ComputedVars {
  std::vector<bool> computed;
  std::vector<bool> arrays;
};
ComputedVars FindComputedVars(const Program& program);

// No pass may take away the writer of a variable that is still read: block 0 of `program` reads
// none of those computed `before` the passes before it is written. What has become an array needs
// no writer: it is empty.
absl::Status VerifyStillComputed(const Program& program, const ComputedVars& before);

}  // namespace interp
