#include "tools/engine_environment.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/testing/matchers.h"

namespace interp::engine {
namespace {

using testing::FailsWith;

TEST(EngineEnvironment, ChoosesThePolicy) {
  const auto with = [](const char* name, const char* value) {
    setenv(name, value, 1);
    absl::StatusOr<EngineOptions> options = FromEnvironment({.workers = 3});
    unsetenv(name);
    return options;
  };
  EXPECT_EQ(FromEnvironment({.workers = 3})->workers, 3);
  EXPECT_EQ(with("INTERP_ENGINE", "naive")->policy, PolicyKind::kNaive);
  EXPECT_EQ(with("INTERP_ENGINE", "pooled")->policy, PolicyKind::kPooled);
  EXPECT_EQ(with("INTERP_ENGINE_WORKERS", "7")->workers, 7);
  EXPECT_EQ(with("INTERP_ENGINE_MAX_IN_FLIGHT", "0")->max_in_flight, 0);
  EXPECT_THAT(with("INTERP_ENGINE", "fast"),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        "INTERP_ENGINE: no engine policy is named 'fast'; there are: "
                        "naive pooled per-device"));
  EXPECT_THAT(with("INTERP_ENGINE_WORKERS", "many"),
              FailsWith(absl::StatusCode::kInvalidArgument, "from 1 to 256"));
}

}  // namespace
}  // namespace interp::engine
