// The flag --load-ops, which all commands have.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "interpreter/load_ops.h"

namespace interp {

// The libraries are loaded while the command line is parsed, before the command does anything.
inline void AddLoadOpsFlag(CLI::App& command) {
  command
      .add_option_function<std::vector<std::string>>(
          "--load-ops",
          [](const std::vector<std::string>& paths) {
            for (const std::string& path : paths) {
              const absl::Status status = LoadOps(path);
              if (!status.ok())
                throw CLI::ValidationError("--load-ops", std::string(status.message()));
            }
          },
          "shared library of ops of your own; repeatable")
      ->allow_extra_args(false);
}

}  // namespace interp
