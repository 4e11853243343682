// Programs in text form, run with passes and without.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/program_parse.h"
#include "interpreter/interpreter_core.h"
#include "tests/kernels/op_runs.h"
#include "tests/testing/matchers.h"

namespace interp::testing {

template <typename T>
struct RanText {
  Shape shape;
  Lod lod;
  std::vector<T> values;
  std::vector<std::string> ops;  // types of what ran, in order
  int64_t CountOf(absl::string_view type) const {
    return std::count(ops.begin(), ops.end(), std::string(type));
  }
};

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

// Runs the program twice and gives the second result of variable `fetch`. Nothing must fail.
template <typename T>
RanText<T> RunText(const std::string& text, const NamedTensors& feeds, const std::string& fetch,
                   const CoreOptions& options = {}, const NamedTensors& parameters = {}) {
  RanText<T> ran;
  const absl::StatusOr<Program> program = ParseProgram(text);
  EXPECT_THAT(program, IsOk()) << text;
  if (!program.ok()) return ran;
  std::vector<std::string> names;
  std::vector<Tensor> tensors;
  for (const auto& [name, tensor] : feeds) {
    names.push_back(name);
    tensors.push_back(tensor);
  }
  const auto scope = std::make_shared<Scope>();
  for (const auto& [name, tensor] : parameters) scope->FindOrCreate(name)->tensor = tensor;
  const auto core = InterpreterCore::Create(*program, names, {fetch}, scope, options);
  EXPECT_THAT(core, IsOk()) << text;
  if (!core.ok()) return ran;
  for (const Instruction& instruction : (*core)->plan().instructions) {
    ran.ops.emplace_back(instruction.op_type);
  }
  for (int run = 0; run < 2; ++run) {
    const auto results = (*core)->Run(tensors);
    EXPECT_THAT(results, IsOk()) << text;
    if (!results.ok()) return ran;
    ran.values = Values<T>((*results)[0]);
    ran.shape = (*results)[0].shape;
    ran.lod = (*results)[0].lod;
  }
  return ran;
}

// The same with the pass left out.
template <typename T>
RanText<T> RunTextWithout(const std::string& pass, const std::string& text,
                          const NamedTensors& feeds, const std::string& fetch,
                          const NamedTensors& parameters = {}) {
  CoreOptions options;
  options.passes.disable = {pass};
  return RunText<T>(text, feeds, fetch, options, parameters);
}

}  // namespace interp::testing
