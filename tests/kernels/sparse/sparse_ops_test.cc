// Ops on the parts of sparse tensors, beyond the golden cases: what Paddle does not check, and
// windows that it does not centre.
#include "tests/kernels/op_runs.h"

namespace interp::testing::sparse_ops_test {
namespace {

const Tensor kIndices = TensorOf<int32_t>({2, 3}, {0, 0, 1, 2, 0, 1});
const Tensor kValues = TensorOf<float>({3, 2}, {1, 2, 3, 4, 5, 6});
const Tensor kShape = TensorOf<int64_t>({3}, {2, 3, 2});

OpRun ToDense() {
  return {.type = "coo_to_dense",
          .inputs = {{"Values", kValues}, {"Indices", kIndices}, {"Shape", kShape}},
          .outputs = {"Out"}};
}

TEST(SparseOps, PointsOutsideOfTheShapeAreRefused) {
  const OpRun run = ToDense();
  ExpectRefusals({
      {With(run, 1, TensorOf<int32_t>({2, 3}, {0, 0, 1, 2, 0, 3})), "coordinate 3 in dimension 1"},
      {With(run, 1, TensorOf<int32_t>({2, 3}, {0, -1, 1, 2, 0, 1})),
       "coordinate -1 in dimension 0"},
      {With(run, 1, TensorOf<int32_t>({2, 2}, {0, 0, 1, 1})), "indices of shape [2,2]"},
      {With(run, 0, TensorOf<float>({3, 1}, {1, 2, 3})), "values of shape [3,1]"},
      {With(run, 2, TensorOf<int64_t>({3}, {-1, 3, 2})), "the shape [-1,3,2]"},
      {With(run, 1, TensorOf<float>({2, 3}, {0, 0, 1, 2, 0, 1})), "expected integers"},
  });
}

TEST(SparseOps, NoPointsGiveZeros) {
  OpRun run = ToDense();
  run.inputs[0].second = TensorOf<float>({0, 2}, {});
  run.inputs[1].second = TensorOf<int32_t>({2, 0}, {});
  const std::vector<Tensor> out = OutputsOf(run);
  EXPECT_EQ(out[0].shape, Shape({2, 3, 2}));
  for (int64_t i = 0; i < out[0].numel(); ++i) EXPECT_EQ(out[0].data<float>()[i], 0);
}

// A plane of one row and five columns, with one channel.
OpRun Conv(const std::string& attrs, const std::vector<float>& kernel) {
  return {.type = "coo_conv",
          .inputs = {{"Values", TensorOf<float>({3, 1}, {1, 10, 100})},
                     {"Indices", TensorOf<int64_t>({3, 3}, {0, 0, 0, 0, 0, 0, 0, 2, 4})},
                     {"Shape", TensorOf<int64_t>({4}, {1, 1, 5, 1})},
                     {"Kernel", TensorOf<float>({1, std::ssize(kernel), 1, 1}, kernel)}},
          .outputs = {"Out", "OutIndices"},
          .attrs = "strides=[1,1], paddings=[0,0], dilations=" + attrs};
}

TEST(SparseOps, WindowsOfASubmanifoldAreCentredAndItsPointsStay) {
  const std::vector<Tensor> dilated = OutputsOf(Conv("[1,2], subm=true", {1, 2, 3}));
  ASSERT_EQ(dilated[0].shape, Shape({3, 1}));
  EXPECT_EQ(dilated[0].data<float>()[0], 2 * 1 + 3 * 10);
  EXPECT_EQ(dilated[0].data<float>()[1], 1 * 1 + 2 * 10 + 3 * 100);
  EXPECT_EQ(dilated[0].data<float>()[2], 1 * 10 + 2 * 100);
  const std::vector<Tensor> even = OutputsOf(Conv("[1,1], subm=true", {1, 2}));
  ASSERT_EQ(even[0].shape, Shape({3, 1}));
  EXPECT_EQ(even[0].data<float>()[1], 2 * 10);
}

TEST(SparseOps, AWindowLargerThanTheSpaceHasNoPlace) {
  const std::vector<Tensor> out = OutputsOf(Conv("[1,3]", {1, 2, 3}));
  EXPECT_EQ(out[0].shape, Shape({0, 1}));
  EXPECT_EQ(out[1].shape, Shape({3, 0}));
}

TEST(SparseOps, WhatDoesNotFitAConvolutionIsRefused) {
  constexpr int64_t kSide = 759'000'000;  // about the most elements that a shape may have
  OpRun large = With(Conv("[1,1]", {1, 2}), 2, TensorOf<int64_t>({4}, {1, kSide, kSide, 1}));
  large.attrs = "strides=[1,1], paddings=[16777216,16777216], dilations=[1,1]";
  ExpectRefusals({
      {Conv("[1]", {1, 2}), "expected 2 strides, paddings and dilations"},
      {Conv("[1,0]", {1, 2}), "a stride or dilation is below 1"},
      {Conv("[1,33554432]", {1, 2}), "a dilation or padding is above 16777216"},
      {large, "too many elements"},
      {With(Conv("[1,1]", {1, 2}), 3, TensorOf<float>({1, 1, 2, 1}, {1, 2})), "[1,1,2,1]"},
  });
}

}  // namespace
}  // namespace interp::testing::sparse_ops_test
