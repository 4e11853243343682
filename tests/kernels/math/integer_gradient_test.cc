// Gradients of integers: sums are exact, and wrap around as those of the ops do.
#include <limits>

#include "tests/kernels/op_runs.h"

namespace interp::testing::integer_gradient_test {
namespace {

constexpr int64_t kExact = (int64_t{1} << 53) + 1;  // which no double holds

TEST(IntegerGradientTest, SumsAreExact) {
  const Tensor one = TensorOf<int64_t>({1}, {1});
  const Tensor two = TensorOf<int64_t>({2}, {1, 1});
  const Tensor grad = TensorOf<int64_t>({2}, {kExact, 0});
  for (const std::string type : {"elementwise_add_grad", "elementwise_mul_grad"}) {
    const std::vector<Tensor> out =
        OutputsOf({.type = type,
                   .inputs = {{"X", one}, {"Y", two}, {"Out@GRAD", grad}},
                   .outputs = {"X@GRAD"}});
    EXPECT_EQ(out[0].data<int64_t>()[0], kExact) << type;
  }
  const std::vector<Tensor> out = OutputsOf({.type = "expand_v2_grad",
                                             .inputs = {{"X", one}, {"Out@GRAD", grad}},
                                             .outputs = {"X@GRAD"},
                                             .attrs = "shape=[2]"});
  EXPECT_EQ(out[0].data<int64_t>()[0], kExact);
}

TEST(IntegerGradientTest, SumsWrapAround) {
  constexpr int32_t kMost = std::numeric_limits<int32_t>::max();
  const Tensor grad = TensorOf<int32_t>({3}, {kMost, kMost, kMost});
  const std::vector<Tensor> out =
      OutputsOf({.type = "expand_v2_grad",
                 .inputs = {{"X", TensorOf<int32_t>({1}, {1})}, {"Out@GRAD", grad}},
                 .outputs = {"X@GRAD"},
                 .attrs = "shape=[3]"});
  EXPECT_EQ(out[0].data<int32_t>()[0], 2147483645);  // as Paddle gives
}

}  // namespace
}  // namespace interp::testing::integer_gradient_test
