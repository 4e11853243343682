// PlaceEvents: where device work crosses streams, what records and what waits.
#pragma once

#include "interpreter/plan/plan.h"

namespace interp {

// Classifies every edge (Edge::run_type) and realises the demands of those over memory: fills
// Plan::events and each instruction's `record` and `waits`, between runs too.
//
// What is known to be complete is followed as a vector clock per stream (the last position of every
// other stream that is behind it for certain) and per instruction of the host (what the thread that
// issues it has blocked for, by any path of edges). A wait is placed only where the clock does not
// cover the edge already. Positions on a stream are program order, which edges of kind kStream
// guarantee. Every edge counts, also those marked as shrunk: shrinking asks for the order of issue,
// not of completion.
//
// Between runs, the memory of a storage lives on when it is persistable or never freed; all else is
// handed on by a stream-ordered pool, which waits itself. Two passes over the instructions, the
// second with the clocks of the first, find which waits for the previous run are needed.
//
// REQUIRES: edges, streams, successors and ref_counts are there. O((instructions + edges) x
// streams).
void PlaceEvents(Plan& plan);

}  // namespace interp
