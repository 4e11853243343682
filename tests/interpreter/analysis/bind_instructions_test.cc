#include "interpreter/analysis/bind_instructions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/matchers.h"
#include "tests/testing/plans.h"

namespace interp::testing::bind_instructions_test {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(BindInstructionsTest, AnArrayIsNoTensor) {
  EXPECT_THAT(PlanOf(R"(block 0
  var x int64[2]
  var array lod_tensor_array
  push(X=x) -> (ArrayOut=array)
  mix(X=array) -> (Out=y)
)"),
              FailsWith(kInvalid, "variable 'array' is an array or a rank table, but 'X' takes a"));
  EXPECT_THAT(PlanOf(R"(block 0
  var x int64[2]
  var array lod_tensor_array
  mix(X=x) -> (Out=array)
)"),
              FailsWith(kInvalid, "variable 'array' is an array"));
}

TEST(BindInstructionsTest, ATensorIsNoArray) {
  EXPECT_THAT(PlanOf(R"(block 0
  var x int64[2]
  push(X=x) -> (ArrayOut=y)
)"),
              FailsWith(kInvalid, "variable 'y' is a tensor, but 'ArrayOut' takes an array"));
  EXPECT_THAT(PlanOf(R"(block 0
  var x int64[2]
  gather(Array=x) -> (Out=y)
)"),
              FailsWith(kInvalid, "variable 'x' is a tensor, but 'Array' takes an array"));
}

// Its elements would be memory of a core that may be gone.
TEST(BindInstructionsTest, PersistableArraysAreRefused) {
  EXPECT_THAT(PlanOf(R"(block 0
  var x int64[2]
  var array lod_tensor_array persistable
  push(X=x) -> (ArrayOut=array)
)"),
              FailsWith(absl::StatusCode::kUnimplemented, "writes 'array'"));
}

}  // namespace
}  // namespace interp::testing::bind_instructions_test
