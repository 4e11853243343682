// Flags that may be given several times.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace interp {

// Adds a flag that takes one value each time it is given: what follows the value is no value, so
// MODEL may stand anywhere.
inline CLI::Option& AddRepeatedFlag(CLI::App& command, const std::string& name,
                                    std::vector<std::string>& values, const std::string& help) {
  return *command.add_option(name, values, help)->allow_extra_args(false);
}

}  // namespace interp
