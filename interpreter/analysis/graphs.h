// FindGraphs: which work of a plan a GPU can take as one graph, and an order that makes graphs
// long.
//
// A graph is the same kernels on the same addresses with the same arguments (core/device/device.h,
// WorkGraph). So an instruction can be part of one whose work depends on nothing but shapes that do
// not change from run to run, and on memory of its device, random numbers included
// (core/resource/random_addresses.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "interpreter/plan/plan.h"

namespace interp {

// Instructions order[begin] to order[end - 1] of a GraphOrder, all of one stream: two or more.
struct GraphSegment {
  int32_t begin = 0;
  int32_t end = 0;
  int32_t stream = -1;  // index into Plan::streams
};

struct GraphOrder {
  std::vector<InstrId> order;  // every instruction, after those it depends on
  std::vector<GraphSegment> segments;
};

// Whether the plan has streams of GPUs.
bool UsesGpus(const Plan& plan);

// Why the work of an instruction cannot be part of a graph; empty where it can.
absl::string_view WhyInNoGraph(const Plan& plan, const Instruction& instruction);

// The ops of GPUs whose work is in no graph, each type once with the reason, as in
// "range (uses memory of the host)"; without the transfers that every plan has.
std::vector<std::string> TypesInNoGraph(const Plan& plan);

// Puts what can be captured together: of the ready instructions, those that cannot come first, then
// all of one stream that can, and at last those for which the host has to wait. Events that
// instructions of a segment wait for are recorded before its first one, and those that they record
// are needed after its last. `refused`, by InstrId or empty, has what turned out not to be
// capturable. O(edges + n log n).
GraphOrder FindGraphs(const Plan& plan, const std::vector<bool>& refused = {});

}  // namespace interp
