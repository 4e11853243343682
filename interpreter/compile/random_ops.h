// What tells the random ops of a program apart.
//
// An op is known by the name of its first output and by how many random ops before it in its block
// of the program, as it was before the passes, write that name. So it keeps its numbers when passes
// drop or join other ops, when other variables are fetched, when the plan adds copies or puts it
// elsewhere, and in a program that has been extended.
#pragma once

#include <cstdint>
#include <vector>

#include "core/op_def.h"
#include "core/program.h"
#include "interpreter/plan/plan.h"

namespace interp {

// Counts the writers of each name, for programs before the passes: all but the first random op that
// writes a name get its number as an attribute, which passes and plan files keep. Few programs have
// such ops. An op that has a number already keeps it.
void NumberRandomOps(Program& program, const OpRegistry& ops);

// RandomSource::op of an op that draws random numbers.
uint64_t RandomOpId(const Program& program, const Op& op, const OpDef& def);

// The same by InstrId; 0 for instructions that draw nothing. `program` is what the plan was made
// of.
std::vector<uint64_t> RandomOpIds(const Plan& plan, const Program& program);

}  // namespace interp
