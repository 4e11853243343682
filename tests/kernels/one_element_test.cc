// Tensors of one element, and scalars: shapes and values that Paddle 2.6.2 gives, where no rule for
// longer ones tells them.
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/kernels/run_op.h"
#include "tests/testing/matchers.h"

namespace interp::one_element_test {
namespace {

using ::testing::Each;
using testing::OpRun;
using testing::RunOp;
using testing::Values;

Tensor Ones(const Shape& shape) {
  return Tensor::Of<float>(shape, std::vector<float>(shape.numel(), 1));
}

Tensor First(const OpRun& run) {
  const absl::StatusOr<std::vector<Tensor>> results = RunOp(run);
  EXPECT_TRUE(results.ok()) << results.status();
  return results.ok() ? results->front() : Tensor();
}

TEST(OneElementTest, Flatten2MakesAVectorOfAScalar) {
  EXPECT_EQ(First({"flatten2", {{"X", Ones({})}}, {"Out"}, "axis=0"}).shape, (Shape{1}));
}

TEST(OneElementTest, PositionsOfAScalarKeepOneDimension) {
  for (const char* type : {"arg_max", "arg_min"}) {
    EXPECT_EQ(First({type, {{"X", Ones({})}}, {"Out"}, "axis=0, keepdims=true"}).shape, (Shape{1}));
    EXPECT_EQ(
        First({type, {{"X", Ones({})}}, {"Out"}, "axis=0, keepdims=true, flatten=true"}).shape,
        (Shape{}));
  }
}

TEST(OneElementTest, RunningSumsAreNotExclusive) {
  for (const char* type : {"cumsum", "logcumsumexp"}) {
    const Tensor out = First({type, {{"X", Ones({1, 1})}}, {"Out"}, "axis=0, exclusive=true"});
    EXPECT_THAT(Values<float>(out), Each(1)) << type;
  }
}

}  // namespace
}  // namespace interp::one_element_test
