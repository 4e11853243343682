#include "core/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/matchers.h"

namespace interp::tensor_test {
namespace {

using ::testing::ElementsAre;
using testing::Values;

TEST(TensorTest, OfCopiesValues) {
  const Tensor t = Tensor::Of<float>({2, 2}, {1, 2, 3, 4});
  EXPECT_THAT(Values<float>(t), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(DescribeType(t), "float32[2,2]");
  EXPECT_EQ(t.size_bytes(), 16);
}

TEST(TensorTest, AllocateReusesMemoryItOwnsAlone) {
  Tensor t = Tensor::Of<float>({4}, {1, 2, 3, 4});
  const void* memory = t.raw_data();
  t.shape = {2};
  ASSERT_TRUE(t.Allocate(SystemAllocator()).ok());
  EXPECT_EQ(t.raw_data(), memory);

  const Tensor shared = t;
  ASSERT_TRUE(t.Allocate(SystemAllocator()).ok());
  EXPECT_NE(t.raw_data(), shared.raw_data());
}

TEST(TensorTest, CopiedMetadataAreTheSameAndMemoryStays) {
  Tensor from = Tensor::Of<float>({1, 2, 1, 1}, {1, 2});
  from.layout = Layout::kChannelsLast;
  from.lod = {{0, 1}};
  Tensor to = Tensor::Of<int32_t>({1}, {7});
  const void* memory = to.raw_data();
  EXPECT_FALSE(SameMetadata(from, to));
  CopyMetadata(from, to);
  EXPECT_TRUE(SameMetadata(from, to));
  EXPECT_EQ(to.raw_data(), memory);
  to.layout = Layout::kPlain;
  EXPECT_FALSE(SameMetadata(from, to));
}

TEST(TensorTest, AllocateNeverReusesBorrowedMemory) {
  const float values[] = {1, 2};
  Tensor t = Tensor::Borrow(DType::kFloat32, {2}, values);
  EXPECT_FALSE(t.buffer()->writable);
  ASSERT_TRUE(t.Allocate(SystemAllocator()).ok());
  EXPECT_NE(t.raw_data(), values);
}

TEST(TensorTest, BorrowingNothingGivesNoMemory) {
  const Tensor t = Tensor::Borrow(DType::kFloat32, {2}, nullptr);
  EXPECT_FALSE(t.has_memory());
  EXPECT_EQ(DescribeType(t), "float32[2]");
}

TEST(TensorTest, ImpossibleShapesAreAnError) {
  Tensor t;
  t.dtype = DType::kFloat32;
  t.shape = {-1, 2};
  EXPECT_EQ(t.Allocate(SystemAllocator()).message(),
            "shape [-1,2] is negative or too large for memory");
  t.shape = {int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_EQ(t.Allocate(SystemAllocator()).code(), absl::StatusCode::kInvalidArgument);
}

TEST(TensorTest, DroppingMemoryKeepsTheRest) {
  Tensor t = Tensor::Of<int32_t>({2}, {1, 2});
  t.lod = {{0, 1, 2}};
  t.DropMemory();
  EXPECT_FALSE(t.has_memory());
  EXPECT_EQ(DescribeType(t), "int32[2]");
  EXPECT_EQ(t.lod, (Lod{{0, 1, 2}}));
}

TEST(TensorTest, CloneIsDeepAndKeepsTheLod) {
  Tensor t = Tensor::Of<int64_t>({2}, {1, 2});
  t.lod = {{0, 2}};
  const absl::StatusOr<Tensor> copy = t.Clone(SystemAllocator());
  ASSERT_TRUE(copy.ok());
  t.mutable_data<int64_t>()[0] = 9;
  EXPECT_THAT(Values<int64_t>(*copy), ElementsAre(1, 2));
  EXPECT_EQ(copy->lod, t.lod);
}

// Logical [1,2,1,3] in memory as [1,1,3,2].
TEST(TensorTest, CloneOfChannelsLastIsPlain) {
  Tensor t = Tensor::Of<int32_t>({1, 2, 1, 3}, {1, 10, 2, 20, 3, 30});
  t.layout = Layout::kChannelsLast;
  const absl::StatusOr<Tensor> copy = t.Clone(SystemAllocator());
  ASSERT_TRUE(copy.ok());
  EXPECT_EQ(copy->layout, Layout::kPlain);
  EXPECT_THAT(Values<int32_t>(*copy), ElementsAre(1, 2, 3, 10, 20, 30));
}

TEST(TensorTest, WithoutMemoryThereIsNothingToClone) {
  const Tensor t = Tensor::Borrow(DType::kFloat32, {2}, nullptr);
  EXPECT_EQ(t.Clone(SystemAllocator()).status().message(),
            "a tensor of float32[2] has no memory to copy");
}

TEST(TensorTest, EmptyTensorsClone) {
  const Tensor t = Tensor::Of<float>({0, 3}, {});
  const absl::StatusOr<Tensor> copy = t.Clone(SystemAllocator());
  ASSERT_TRUE(copy.ok());
  EXPECT_EQ(copy->shape, (Shape{0, 3}));
}

}  // namespace
}  // namespace interp::tensor_test
