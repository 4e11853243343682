// BuildDependencies: which instruction must run after which.
#pragma once

#include <vector>

#include "interpreter/plan.h"

namespace interp {

// All ordering edges, by `to` and then `from`, each pair once. `from` < `to`: program order is
// always a legal order.
//
// Data hazards (RAW, WAR, WAW) are kept for two kinds of things. A *variable* is read by its
// readers and written by its producers. A *storage* shared by several variables is read and written
// by the instructions that touch the bytes; an instruction that merely makes a view of it counts as
// a reader. For each thing the table holds the last writer and the readers since: a reader depends
// on the writer, a writer on those readers, or on the last writer when nobody has read. Each access
// adds at most one entry and is removed at most once, so time and edges are linear in accesses.
//
// Implicit orders, as in Paddle's dependency_builder.cc: random ops in program order; communication
// ops in program order; everything that waited for nothing waits for the `read` op before it;
// readers of the outputs of a coalesce_tensor wait for the last writer of them before its fused
// output is read; with `sequential`, each instruction waits for the one before.
std::vector<Edge> BuildDependencies(const std::vector<Instruction>& instructions,
                                    const std::vector<PlanVar>& vars, bool sequential);

}  // namespace interp
