// LivenessBound: how little memory the variables of a run could have taken, in the order it ran.
#pragma once

#include <cstdint>
#include <vector>

#include "interpreter/interpreter_core.h"

namespace interp {

struct LivenessBound {
  uint64_t bytes = 0;  // alive at once, at most
  InstrId at = -1;     // the (first) instruction that has so much; -1: none has any
};

// Walks Plan::order with the sizes that the last run of `core` left. A variable is alive from the
// instruction that first writes it to the last that reads or writes its memory, what is fetched to
// the end; an instruction needs its inputs and outputs at once. Variables that share memory (views,
// in-place pairs) count once, with the largest; one that is written anew in between has the size of
// its last value all along. Sizes are rounded up as allocators round.
//
// Found from what instructions access, without the plan's lists of what to free: whatever these
// miss shows as a difference between the bound and the measured peak of variables. Parameters,
// feeds, views of either and tensor arrays lie elsewhere and count as nothing, and so does memory
// of devices.
//
// Of blocks that ops run nothing is counted: a bound of the main block alone.
//
// A bound for `trace`; other schedulers run in other orders. REQUIRES: the last run succeeded, none
// is in progress. Linear in the plan's size.
LivenessBound FindLivenessBound(const InterpreterCore& core);

// What it is the largest of: the bytes alive at each instruction, in the order of Plan::order.
std::vector<uint64_t> AliveBytesInOrder(const InterpreterCore& core);

}  // namespace interp
