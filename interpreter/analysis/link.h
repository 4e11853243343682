// LinkInstructions: successor lists, dependency counts and the trace order, from the edges.
#pragma once

#include "interpreter/plan/plan.h"

namespace interp {

// Fills successors, dep_counts, order, max_width and critical_path from the edges that are not
// shrunk. `order` takes, of the instructions whose predecessors are done, the one with the lowest
// priority value, and the first in the program among equals. O(edges + n log n).
void LinkInstructions(Plan& plan);

// Marks instructions whose output shapes can change while the shapes of the feeds do not: ops with
// dynamic outputs or that infer from values that are no constants, writers of variables with
// several writers, and all that read from such.
void MarkDynamicShapes(Plan& plan);

}  // namespace interp
