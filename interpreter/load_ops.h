// Ops from outside: shared libraries whose files register them (docs/add_an_op.md).
#pragma once

#include <string>

#include "core/status.h"

namespace interp {

// Loads the shared library at `path`, for good, and adds the ops that it registers: all of them, or
// none. A path without '/' names a file in the working folder. What the library does when it is
// loaded is done with the rights of this process: load only what you trust.
//
// Errors: NotFound when there is no such file, FailedPrecondition when the system cannot load it
// (the message is the system's), AlreadyExists when it defines an op that there is already,
// InvalidArgument when it registers nothing. Asked for again, a library gives what it gave before;
// one that is in the process otherwise is fine.
//
// Thread-safety: before programs are read; not beside anything that uses ops.
absl::Status LoadOps(const std::string& path);

}  // namespace interp
