#include "kernels/cuda/softmax.h"

#include <string>
#include <vector>

#include "tests/cuda/kernel_test.h"

namespace interp::cuda_test {
namespace {

template <typename T>
class CudaSoftmax : public KernelTest {};
TYPED_TEST_SUITE(CudaSoftmax, Floats);

TYPED_TEST(CudaSoftmax, GivesWhatTheHostGives) {
  const std::vector<cuda::LineShape> shapes = {
      {1, 1, 1}, {9, 5, 1}, {3, 33, 1}, {2, 1500, 1}, {2, 7, 5}, {1, 3, 300}, {0, 4, 1}, {2, 0, 3},
  };
  for (const cuda::LineShape& shape : shapes) {
    for (const bool logarithm : {false, true}) {
      SCOPED_TRACE(absl::StrCat(shape.outer, "x", shape.length, "x", shape.inner, " ", logarithm));
      const std::vector<int64_t> dims = {shape.outer, shape.length, shape.inner};
      const auto x = SomeValues<TypeParam>(NumelOf(dims));
      const DeviceArray<TypeParam> in(x, /*offset=*/1);
      const DeviceArray<TypeParam> out(x.size());
      ASSERT_TRUE(
          cuda::Softmax(DTypeOf<TypeParam>, logarithm, in.data(), shape, out.data(), nullptr).ok());
      ExpectClose(out.Read(),
                  OnHost<TypeParam>(logarithm ? "log_softmax" : "softmax", {{"axis", int32_t{1}}},
                                    {{"X", TensorOf(dims, x)}}));
    }
  }
}

TYPED_TEST(CudaSoftmax, MayWriteOverItsInput) {
  const auto x = SomeValues<TypeParam>(60);
  const DeviceArray<TypeParam> both(x);
  ASSERT_TRUE(
      cuda::Softmax(DTypeOf<TypeParam>, false, both.data(), {6, 10, 1}, both.data(), nullptr).ok());
  ExpectClose(both.Read(),
              OnHost<TypeParam>("softmax", {{"axis", int32_t{1}}}, {{"X", TensorOf({6, 10}, x)}}));
}

}  // namespace
}  // namespace interp::cuda_test
