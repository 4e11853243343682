// Flags that would have no effect. They are errors: who gives one expects something of it.
#pragma once

#include <CLI/CLI.hpp>
#include <initializer_list>

#include "core/status.h"

namespace interp {

// InvalidArgument, "--rtol has no effect without --expect", when `effective` is false and `command`
// was given one of `flags`. `when` is the end of that message.
absl::Status CheckEffect(const CLI::App& command, std::initializer_list<const char*> flags,
                         bool effective, absl::string_view when);

}  // namespace interp
