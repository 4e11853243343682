// Errors of system calls.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace interp {

// The status of an `errno`: "<message>: No such file or directory". As absl::ErrnoToStatus, which
// fills a table at its first call; ThreadSanitizer takes that for a race, as absl is not
// instrumented.
absl::Status ErrnoStatus(int code, absl::string_view message);

}  // namespace interp
