// GraphStats: what a core's CUDA graphs have done so far.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace interp {

struct GraphStats {
  int32_t graphs = 0;        // captured now
  int32_t instructions = 0;  // in them
  int64_t captures = 0;      // of graphs, ever
  int64_t replays = 0;
  // What could not be captured, though the plan has it in a graph: an instruction and the error.
  std::vector<std::string> refused;
};

}  // namespace interp
