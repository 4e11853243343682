// An emulated machine for tests that start some of their own.
#pragma once

#include <gmock/gmock.h>
#include <gpu_machine.h>

#include <memory>
#include <utility>

#include "tests/testing/matchers.h"

namespace interp::cuda_test {

// Null where it cannot start, which fails the test.
inline std::unique_ptr<Machine> StartMachine() {
  auto machine = Machine::Start({});
  EXPECT_THAT(machine, testing::IsOk());
  return machine.ok() ? *std::move(machine) : nullptr;
}

}  // namespace interp::cuda_test
