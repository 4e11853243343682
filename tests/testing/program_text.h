// Programs out of text that parses, and what is asserted of them.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/program_parse.h"

namespace interp::testing {

inline Program Parse(absl::string_view text) {
  absl::StatusOr<Program> program = ParseProgram(text);
  EXPECT_TRUE(program.ok()) << program.status();
  return program.ok() ? *std::move(program) : Program();
}

// Of the ops of the main block.
inline std::vector<std::string> OpTypes(const Program& program) {
  std::vector<std::string> types;
  for (const Op& op : program.blocks[0].ops) types.push_back(op.type);
  return types;
}

}  // namespace interp::testing
