// Strided copies, gather, fills and casts.
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/cuda/convert.h"
#include "kernels/cuda/gather.h"
#include "kernels/cuda/strided_copy.h"
#include "tests/cuda/kernel_test.h"

namespace interp::cuda_test {
namespace {

using cuda::StridedCopy;

std::vector<int64_t> StridesOf(const std::vector<int64_t>& dims) {
  std::vector<int64_t> strides(dims.size());
  int64_t stride = 1;
  for (size_t d = dims.size(); d-- > 0; stride *= dims[d]) strides[d] = stride;
  return strides;
}

template <typename T>
std::vector<T> CountingUp(int64_t size) {
  std::vector<T> values(size);
  for (int64_t i = 0; i < size; ++i) values[i] = static_cast<T>(i % 251);
  return values;
}

// The host's transpose, element by element.
template <typename T>
std::vector<T> Transposed(const std::vector<T>& x, const std::vector<int64_t>& dims,
                          const std::vector<int64_t>& strides) {
  std::vector<T> out;
  for (int64_t i = 0; i < NumelOf(dims); ++i) {
    int64_t left = i;
    int64_t from = 0;
    for (size_t d = dims.size(); d-- > 0; left /= dims[d]) from += left % dims[d] * strides[d];
    out.push_back(x[from]);
  }
  return out;
}

template <typename T>
class CudaCopies : public KernelTest {};
using Elements = ::testing::Types<uint8_t, uint16_t, float, int64_t>;
TYPED_TEST_SUITE(CudaCopies, Elements);

TYPED_TEST(CudaCopies, Transpose) {
  const std::vector<std::pair<std::vector<int64_t>, std::vector<int>>> cases = {
      {{40, 70}, {1, 0}},
      {{3, 5}, {1, 0}},
      {{2, 33, 4, 5}, {0, 2, 1, 3}},
      {{2, 3, 40, 8}, {0, 2, 3, 1}},
      {{6, 1, 5}, {2, 1, 0}},
      {{3, 4, 5}, {0, 1, 2}},
      {{2, 3, 2, 3, 2}, {4, 2, 0, 3, 1}},
      {{0, 3}, {1, 0}},
  };
  for (const auto& [dims, order] : cases) {
    SCOPED_TRACE(ToString(Shape(dims)));
    const auto x = CountingUp<TypeParam>(NumelOf(dims));
    std::vector<int64_t> out_dims;
    std::vector<int64_t> strides;
    for (const int d : order) {
      out_dims.push_back(dims[d]);
      strides.push_back(StridesOf(dims)[d]);
    }
    const DeviceArray<TypeParam> in(x);
    const DeviceArray<TypeParam> out(x.size());
    ASSERT_TRUE(StridedCopy(sizeof(TypeParam), out_dims, {in.data(), strides},
                            {out.data(), StridesOf(out_dims)}, nullptr)
                    .ok());
    EXPECT_EQ(out.Read(), Transposed(x, out_dims, strides));
  }
}

TYPED_TEST(CudaCopies, SliceAndRepeat) {
  for (const size_t offset : {0, 1}) {
    const auto x = CountingUp<TypeParam>(6 * 16);
    const DeviceArray<TypeParam> in(x, offset);
    // Rows 4, 2, 0 of columns 3 to 10, twice.
    const std::vector<int64_t> dims = {2, 3, 8};
    const std::vector<int64_t> strides = {0, -32, 1};
    const DeviceArray<TypeParam> out(NumelOf(dims), offset);
    ASSERT_TRUE(StridedCopy(sizeof(TypeParam), dims, {in.data() + 4 * 16 + 3, strides},
                            {out.data(), StridesOf(dims)}, nullptr)
                    .ok());
    std::vector<TypeParam> want;
    for (int i = 0; i < 2; ++i) {
      for (const int row : {4, 2, 0}) {
        for (int column = 3; column < 11; ++column) want.push_back(x[row * 16 + column]);
      }
    }
    EXPECT_EQ(out.Read(), want);
  }
}

TYPED_TEST(CudaCopies, Concat) {
  const auto x = CountingUp<TypeParam>(3 * 4);
  const auto y = CountingUp<TypeParam>(3 * 5);
  const DeviceArray<TypeParam> first(x);
  const DeviceArray<TypeParam> second(y);
  const DeviceArray<TypeParam> out(3 * 9);
  const std::vector<int64_t> to = {9, 1};
  ASSERT_TRUE(
      StridedCopy(sizeof(TypeParam), {3, 4}, {first.data(), {4, 1}}, {out.data(), to}, nullptr)
          .ok());
  ASSERT_TRUE(
      StridedCopy(sizeof(TypeParam), {3, 5}, {second.data(), {5, 1}}, {out.data() + 4, to}, nullptr)
          .ok());
  std::vector<TypeParam> want;
  for (int row = 0; row < 3; ++row) {
    want.insert(want.end(), x.begin() + row * 4, x.begin() + row * 4 + 4);
    want.insert(want.end(), y.begin() + row * 5, y.begin() + row * 5 + 5);
  }
  EXPECT_EQ(out.Read(), want);
}

template <typename T>
class CudaGather : public KernelTest {};
using Indices = ::testing::Types<int32_t, int64_t>;
TYPED_TEST_SUITE(CudaGather, Indices);

TYPED_TEST(CudaGather, GivesWhatTheHostGives) {
  for (const int64_t width : {1, 3, 8, 2000}) {
    for (const size_t offset : {0, 1}) {
      SCOPED_TRACE(absl::StrCat("rows of ", width, " at ", offset));
      const std::vector<int64_t> dims = {2, 5, width};
      const std::vector<TypeParam> indices = {4, 0, 0, 3, 1, 2, 4};
      const auto x = SomeValues<float>(NumelOf(dims));
      const DeviceArray<float> in(x, offset);
      const DeviceArray<TypeParam> index(indices);
      const DeviceArray<float> out(2 * 7 * width, offset);
      ASSERT_TRUE(cuda::Gather({.x = in.data(),
                                .indices = index.data(),
                                .index_dtype = DTypeOf<TypeParam>,
                                .out = out.data(),
                                .outer = 2,
                                .rows = 5,
                                .row_bytes = width * 4,
                                .count = 7},
                               nullptr)
                      .ok());
      ExpectClose(out.Read(),
                  OnHost<float>("gather", {{"axis", int32_t{1}}},
                                {{"X", TensorOf(dims, x)},
                                 {"Index", Tensor::Of<TypeParam>(Shape({7}), indices)}}));
    }
  }
}

TYPED_TEST(CudaGather, GivesZerosForThePaddingAndSaysWhatIsOutOfRange) {
  const std::vector<TypeParam> indices = {1, 2, 9, 0};
  const DeviceArray<float> in({1, 2, 3, 4, 5, 6});
  const DeviceArray<TypeParam> index(indices);
  const DeviceArray<float> out(8);
  const DeviceArray<int> bad(std::vector<int>(1, 0));
  ASSERT_TRUE(cuda::Gather({.x = in.data(),
                            .indices = index.data(),
                            .index_dtype = DTypeOf<TypeParam>,
                            .out = out.data(),
                            .rows = 3,
                            .row_bytes = 8,
                            .count = 4,
                            .zero_index = 2,
                            .bad_position = bad.data()},
                           nullptr)
                  .ok());
  EXPECT_EQ(out.Read(), (std::vector<float>{3, 4, 0, 0, 0, 0, 1, 2}));
  EXPECT_EQ(bad.Read()[0], 3);
}

using CudaConvert = KernelTest;

TEST_F(CudaConvert, Fills) {
  for (const int64_t count : {0, 1, 1001}) {
    const DeviceArray<float> floats(count);
    const DeviceArray<uint16_t> halves(count);
    ASSERT_TRUE(cuda::Fill(4, 0x3f800000u, floats.data(), count, nullptr).ok());
    ASSERT_TRUE(cuda::Fill(2, 0x1234u, halves.data(), count, nullptr).ok());
    EXPECT_EQ(floats.Read(), std::vector<float>(count, 1.0f));
    EXPECT_EQ(halves.Read(), std::vector<uint16_t>(count, 0x1234u));
  }
  EXPECT_EQ(cuda::Fill(3, 0, nullptr, 1, nullptr).message(), "a fill of elements of 3 bytes");
}

// What a cast to T of `x` gives on the GPU and on the host, byte by byte.
template <typename From, typename To>
void ExpectSameCast(const std::vector<From>& x) {
  SCOPED_TRACE(absl::StrCat(Name(DTypeOf<From>), " to ", Name(DTypeOf<To>)));
  const DeviceArray<From> in(x);
  const DeviceArray<To> out(x.size());
  ASSERT_TRUE(
      cuda::Cast(DTypeOf<From>, DTypeOf<To>, in.data(), out.data(), x.size(), nullptr).ok());
  const std::vector<To> got = out.Read();
  testing::OneOp op("cast",
                    {{"in_dtype", static_cast<int32_t>(DTypeOf<From>)},
                     {"out_dtype", static_cast<int32_t>(DTypeOf<To>)}},
                    {{"X", Tensor::Of<From>(Shape({static_cast<int64_t>(x.size())}), x)}});
  ASSERT_TRUE(op.Run().ok());
  EXPECT_EQ(std::memcmp(got.data(), op.output(0).raw_data(), got.size() * sizeof(To)), 0);
}

template <typename From>
void ExpectSameCasts(const std::vector<From>& x) {
  ExpectSameCast<From, float>(x);
  ExpectSameCast<From, double>(x);
  ExpectSameCast<From, float16>(x);
  ExpectSameCast<From, bfloat16>(x);
  ExpectSameCast<From, int64_t>(x);
  ExpectSameCast<From, int32_t>(x);
  ExpectSameCast<From, int16_t>(x);
  ExpectSameCast<From, int8_t>(x);
  ExpectSameCast<From, uint8_t>(x);
}

TEST_F(CudaConvert, CastsToTheBitsOfTheHost) {
  const float infinity = std::numeric_limits<float>::infinity();
  ExpectSameCasts<float>({0.0f, -0.0f, 1.5f, -1.5f, 300.7f, -300.7f, 3e9f, 1e30f, infinity});
  ExpectSameCasts<double>({0.1, 1e300, -7.9, 65519.0});
  ExpectSameCasts<float16>({float16(0.1f), float16(-2.5f), float16(60000.0f)});
  ExpectSameCasts<bfloat16>({bfloat16(0.1f), bfloat16(-200.5f)});
  ExpectSameCasts<int64_t>({0, -1, int64_t{1} << 40, 255, 128});
  ExpectSameCasts<uint8_t>({0, 1, 200});
}

TEST_F(CudaConvert, CastsToAndFromBool) {
  const DeviceArray<float> floats({0.0f, -0.0f, 0.25f, std::numeric_limits<float>::quiet_NaN()});
  const DeviceArray<uint8_t> bools(4);
  ASSERT_TRUE(
      cuda::Cast(DType::kFloat32, DType::kBool, floats.data(), bools.data(), 4, nullptr).ok());
  EXPECT_EQ(bools.Read(), (std::vector<uint8_t>{0, 0, 1, 1}));
  ASSERT_TRUE(
      cuda::Cast(DType::kBool, DType::kFloat32, bools.data(), floats.data(), 4, nullptr).ok());
  EXPECT_EQ(floats.Read(), (std::vector<float>{0, 0, 1, 1}));
}

}  // namespace
}  // namespace interp::cuda_test
