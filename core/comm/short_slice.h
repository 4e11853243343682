// How soon a thread runs that wakes up for a moment while others compute.
#pragma once

namespace interp {

// Asks the scheduler to let the calling thread run in short turns, and so sooner: one that wakes up
// otherwise waits until a thread that computes has had its turn of some milliseconds. Takes nothing
// from others, needs no privilege, and has no effect before Linux 6.12.
void AskForShortSlice();

}  // namespace interp
