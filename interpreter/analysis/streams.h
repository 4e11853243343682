// AssignStreams: the queue, stream and priority of each instruction.
#pragma once

#include <vector>

#include "core/program.h"
#include "interpreter/plan/plan.h"

namespace interp {

// Whether an instruction is a device's part in what several ranks do: by a row of the device it has
// an effect besides its outputs.
bool SpeaksWithRanks(const Instruction& instruction);

// Instructions of the host go to the host queue and stream 0, where order is by edges alone. Those
// of a device go to the device queue and to a stream of their place: copies to the device to "h2d",
// copies to the host to "d2h", copies from another device to "p2p", what speaks with other ranks
// (SpeaksWithRanks) to "comm", ops with an `execution_stream` attribute (Paddle's, but for its
// default "DefaultStream") to the stream of that name with their `stream_priority`, all others to
// "compute"; with `options.single_stream` all to "compute". Streams that are new are added to
// `streams`, which the plans of all blocks share, and the order within each stream to plan.edges.
//
// Priority is the op's `scheduling_priority` attribute where it has one, else 1 for communication
// ops and 0 for the others (lower first), as in Paddle.
void AssignStreams(const Program& program, std::vector<PlanStream>& streams, Plan& plan);

}  // namespace interp
