// Shrink: the smallest program, found greedily, that still shows a failure.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/program.h"

namespace interp::testing {

struct ShrunkProgram {
  Program program;
  std::vector<int32_t> feeds;  // by column: which feed of the original program it is
};

// Removes ops (feed and fetch ops too) from block 0 while `fails` holds: delta debugging, from
// halves down to single ops, then single arguments of variadic slots. With an op goes what reads
// its results before anything else writes them, unless it can read the op's input instead; so every
// candidate reads only what was written, fed or is persistable. `fails` must hold for the program
// as it is; it is asked at most `max_tries` times, and need not be deterministic: what is returned
// has failed once.
ShrunkProgram Shrink(const Program& program, const std::function<bool(const ShrunkProgram&)>& fails,
                     int max_tries = 2000);

}  // namespace interp::testing
