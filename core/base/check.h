// INTERP_CHECK: what only a fault of this library breaks.
#pragma once

namespace interp {

// Says on standard error what does not hold and where, and ends the process.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);

}  // namespace interp

// Ends the process unless `condition` holds, in every build, before memory is damaged.
#define INTERP_CHECK(condition)                         \
  (__builtin_expect(static_cast<bool>(condition), true) \
       ? static_cast<void>(0)                           \
       : ::interp::CheckFailed(__FILE__, __LINE__, #condition))
