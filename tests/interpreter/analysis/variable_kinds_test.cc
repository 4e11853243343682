#include <gtest/gtest.h>

#include "tests/testing/matchers.h"
#include "tests/testing/plans.h"

namespace interp::testing {
namespace {

// What a kernel would find there is no tensor: it aborted on the dtype.
TEST(VariableKindsTest, WhatHoldsNoTensorIsNoArgument) {
  EXPECT_EQ(PlanOf(R"(block 0
  var x feed_minibatch
  mix(X=x) -> (Out=y)
)")
                .status()
                .message(),
            "block 0, op #0 mix: 'X' is 'x', a variable of kind feed_minibatch, expected a tensor");
  EXPECT_EQ(PlanOf(R"(block 0
  var x float32[1]
  var r reader
  mix(X=x) -> (Out=r)
)")
                .status()
                .message(),
            "block 0, op #0 mix: 'Out' is 'r', a variable of kind reader, expected a tensor");
}

}  // namespace
}  // namespace interp::testing
