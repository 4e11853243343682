#include "core/comm/transport.h"

#include <thread>

namespace interp {

void Transport::Idle(std::chrono::microseconds longest) { std::this_thread::sleep_for(longest); }

}  // namespace interp
