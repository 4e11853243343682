// Networks written with ProgramBuilder, which tests compare, verify and run.
// tests/goldens/check_builder_programs.py has the same ones in Paddle.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/program_builder.h"

namespace interp::testing {

struct BuiltNet {
  std::string name;
  std::function<void(ProgramBuilder&)> build;
};

const std::vector<BuiltNet>& BuiltNets();

// Builds the net of that name; NotFound without one.
absl::StatusOr<BuiltProgram> Build(const std::string& name, BuilderOptions options = {});

// The last result that is a float: of networks that end so, the loss. "" where there is none.
std::string LastResult(const Program& program);

}  // namespace interp::testing
