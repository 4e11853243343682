// When ranks communicated, for traces.
#pragma once

#include <cstdint>
#include <string>

namespace interp {

// A collective or message, from when it was the first of its lane to its end: what it waited for
// other ranks is part of it. Nanoseconds of the steady clock.
struct CommSpan {
  std::string what;  // as errors name it
  int ring = -1;     // Communicator::number; -1: a message
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

}  // namespace interp
