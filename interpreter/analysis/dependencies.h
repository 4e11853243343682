// BuildDependencies: which instruction must run after which.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "interpreter/plan/plan.h"

namespace interp {

// Paddle's test for communication ops, but for the accident that it takes any type with "c_" in it.
bool IsCommunication(const Instruction& instruction);

// Whether what the instruction does, itself or by a block that it runs, is seen outside: it has an
// effect (OpDef::side_effect) and no array that orders it, as the list of a fetch does. Such
// instructions keep the program's order. `blocks` are BlocksWithEffects.
bool KeepsOrder(const Instruction& instruction, const std::vector<bool>& blocks);
// By block: whether it has such an instruction. Block 0, which no instruction runs, is not looked
// at. Linear.
std::vector<bool> BlocksWithEffects(absl::Span<const Plan> plans);

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
// An edge with `memory` asks for completion. Reads of metadata alone (kNoNeedBuffer) and reads
// while an instruction is issued (IsHostInput) put no such demand on a later writer, and do not
// hide the writer before them from it.
//
// Implicit orders, as in Paddle's dependency_builder.cc: communication ops in program order;
// everything that waited for nothing waits for the `read` op before it;
// readers of the outputs of a coalesce_tensor wait for the last writer of them before its fused
// output is read; with `sequential`, each instruction waits for the one before, and without, those
// that keep the program's order (KeepsOrder, by `blocks_with_effects`). Paddle's random ops
// share a generator and keep their order, too; ours have streams of their own.
std::vector<Edge> BuildDependencies(const std::vector<Instruction>& instructions,
                                    const std::vector<PlanVar>& vars, bool sequential,
                                    const std::vector<bool>& blocks_with_effects);

// The edges over memory between one run and the next, on storages for which `keeps_memory` (by
// storage id) is set: `to` counts from 0 in the next run, so it may lie before `from`.
std::vector<Edge> BuildCrossRunDependencies(const std::vector<Instruction>& instructions,
                                            const std::vector<PlanVar>& vars,
                                            const std::vector<bool>& keeps_memory);

// Adds an edge between neighbours on each stream of a device, in program order: so they are issued.
void AddStreamEdges(const std::vector<Instruction>& instructions, std::vector<Edge>& edges);

}  // namespace interp
