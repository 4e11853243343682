// Cores over ProbeOps (probe_ops.h).
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "interpreter/interpreter_core.h"
#include "tests/testing/matchers.h"
#include "tests/testing/probe_ops.h"

namespace interp::testing {

// Ops run on one thread each.
inline CoreOptions ProbeOptions(SchedulerKind kind = SchedulerKind::kTrace, int workers = 1) {
  CoreOptions options{.scheduler = kind, .num_workers = workers, .num_threads = 1};
  options.ops = &ProbeOps();
  return options;
}

// Null, and the test has failed, where there can be none.
inline std::unique_ptr<InterpreterCore> MakeProbeCore(const Program& program,
                                                      std::shared_ptr<Scope> scope = nullptr,
                                                      const CoreOptions& options = ProbeOptions()) {
  auto core = InterpreterCore::Create(program, {}, {}, std::move(scope), options);
  EXPECT_THAT(core, IsOk());
  return core.ok() ? *std::move(core) : nullptr;
}

}  // namespace interp::testing
