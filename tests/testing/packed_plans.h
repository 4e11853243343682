// Plans with the constants that a run packed, and damage to their files.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "interpreter/interpreter_core.h"
#include "interpreter/plan/packed_constants.h"
#include "tests/testing/matchers.h"

namespace interp::testing {

inline CoreOptions PackedOptions(const OpRegistry& ops) {
  CoreOptions options{.scheduler = SchedulerKind::kTrace, .num_threads = 1};
  options.ops = &ops;
  return options;
}

struct Ready {
  CompiledProgram compiled;
  std::shared_ptr<Scope> scope = std::make_shared<Scope>();
  std::string note = {};
};

// The program with its parameters, which are sorted by name, and what a run makes of them.
inline Ready PackedOf(Program program, std::vector<NamedTensor> parameters, const Tensor& feed,
                      const OpRegistry& ops) {
  Ready ready;
  ready.compiled = *Compile(std::move(program), {}, {}, {}, {}, ops);
  auto packed = std::make_shared<PackedConstants>();
  packed->machine = MachineFingerprint();
  packed->parameters = std::move(parameters);
  for (const auto& [name, tensor] : packed->parameters) {
    packed->parameter_checksums.push_back(ChecksumOf(tensor));
    ready.scope->FindOrCreate(name)->tensor = tensor;
  }
  const auto core = InterpreterCore::Create(ready.compiled, ready.scope, PackedOptions(ops));
  EXPECT_THAT((*core)->Run({feed}), IsOk());
  packed->entries = (*core)->PackedEntries();
  ready.compiled.packed = std::move(packed);
  return ready;
}

// Changes a byte of a tensor's elements in the file.
inline std::string WithDamage(std::string bytes, const Tensor& tensor) {
  const std::string elements(static_cast<const char*>(tensor.raw_data()), tensor.size_bytes());
  const size_t at = bytes.rfind(elements);
  EXPECT_NE(at, std::string::npos);
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  return bytes;
}

}  // namespace interp::testing
