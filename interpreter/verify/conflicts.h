// ForEachConflict: which moments of a run must not change places.
#pragma once

#include "absl/functional/function_ref.h"
#include "interpreter/plan/plan.h"
#include "interpreter/verify/run_order.h"

namespace interp::verify {

struct Conflict {
  EdgeKind kind = EdgeKind::kReadAfterWrite;  // one of the three hazards
  Moment first;
  Moment second;
  // The names by which they reach what they share; different ones for shared memory.
  VarId first_var = -1;
  VarId second_var = -1;
};

struct ConflictCounts {
  int64_t pairs = 0;
  int64_t pairs_between_runs = 0;
  int64_t variables = 0;        // with an access
  int64_t shared_storages = 0;  // memory of several names
};

// Calls `visit` for pairs of accesses of which one is a write and that meet in
//   a variable's metadata (shape, dtype, which memory): read and written while the instruction is
//     issued,
//   a variable's memory: read and written when the instruction completes, but host inputs of an
//     instruction of a device are read while it is issued; inputs without buffer need are not read,
//   memory that several names share, by share pairs of any instruction: the same, but an output
//     that is a view writes nothing.
// Who shares memory is found here anew, from the share pairs.
//
// Not every such pair is visited: after a write, each read until the next write is paired with it
// and with the next write; two writes are paired when no read lies between. That is enough. Let x
// and y be any two accesses to one thing, x first and one of them a write. Then a chain of visited
// pairs leads from x to y: a read is paired with the write before it and the one after it, so
// writes are linked with the next write directly or through a read between them; x, when it is a
// read, with the first write behind it, which is y or before y; and y, when it is a read, with the
// last write before it, which is x or behind x. In each pair the access counts with the same
// moment, so order along the chain is order of x and y. (An instruction that reads a variable both
// while it is issued and when it completes has two reads.) Metadata and memory are separate things,
// so a reader of metadata alone never stands for a read of the memory.
//
// With devices the same goes on into a second run for memory that lives on: of persistable
// variables and those never freed, and whatever shares it; `visit` gets the pairs that cross. Every
// run has the same accesses, so pairs of neighbouring runs link all runs. Memory freed in a run is
// handed on by a pool that waits itself. Without devices a run has ended before the next begins.
//
// REQUIRES: CheckPlanStructure has passed. Linear in arguments, but for the union-find.
ConflictCounts ForEachConflict(const Plan& plan, bool has_devices,
                               absl::FunctionRef<void(const Conflict&)> visit);

}  // namespace interp::verify
