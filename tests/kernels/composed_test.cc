// Ops that are a composition of two others: inputs and attributes that they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kernels/op_runs.h"
#include "tests/testing/matchers.h"

namespace interp::testing {
namespace {

TEST(ComposedTest, RefusesWhatDoesNotFit) {
  const Tensor pair = Numbers({2}, 1);
  const Tensor three = Numbers({3}, 2);
  ExpectRefusals({
      {{"dist", {{"X", pair}, {"Y", three}}, {"Out"}, ""}, "[3]"},
      {{"dist_grad", {{"X", pair}, {"Y", pair}, {"Out", pair}, {"Out@GRAD", pair}}, {"X@GRAD"}, ""},
       "expected one element"},
      {{"fused_elemwise_activation", {{"X", pair}, {"Y", pair}}, {"Out"}, ""}, "functor_list"},
      {{"fused_elemwise_activation",
        {{"X", pair}, {"Y", pair}},
        {"Out"},
        R"(functor_list=["elementwise_add", "elu"])"},
       "[elementwise_add, elu], expected one of"},
      {{"fused_elemwise_activation",
        {{"X", pair}, {"Y", three}},
        {"Out"},
        R"(functor_list=["relu", "elementwise_add"])"},
       "[3]"},
      {{"fused_elemwise_activation_grad",
        {{"X", pair}, {"Y", pair}, {"IntermediateOut", three}, {"Out@GRAD", pair}},
        {"X@GRAD"},
        R"(functor_list=["relu_grad", "elementwise_add_grad"])"},
       "'IntermediateOut' has shape [3]"},
  });
}

TEST(ComposedTest, NormsOfNothingAreZero) {
  const auto out =
      OutputsOf({"dist", {{"X", Numbers({0, 2}, 1)}, {"Y", Numbers({2}, 2)}}, {"Out"}, ""});
  EXPECT_EQ(out[0].shape, Shape());
  EXPECT_THAT(Values<float>(out[0]), ::testing::ElementsAre(0));
}

}  // namespace
}  // namespace interp::testing
