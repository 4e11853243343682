#include "kernels/cuda/layer_norm.h"

#include <vector>

#include "tests/cuda/kernel_test.h"

namespace interp::cuda_test {
namespace {

template <typename T>
class CudaLayerNorm : public KernelTest {};
TYPED_TEST_SUITE(CudaLayerNorm, Floats);

TYPED_TEST(CudaLayerNorm, GivesWhatTheHostGives) {
  for (const int64_t length : {1, 5, 64, 1500}) {
    for (const bool affine : {false, true}) {
      SCOPED_TRACE(absl::StrCat(length, " elements, scale and bias ", affine));
      const std::vector<int64_t> dims = {11, length};
      const auto x = SomeValues<TypeParam>(NumelOf(dims));
      const auto scale = SomeValues<float>(length, 2);
      const auto bias = SomeValues<float>(length, 3);
      const DeviceArray<TypeParam> in(x);
      const DeviceArray<float> scales(scale);
      const DeviceArray<float> biases(bias);
      const DeviceArray<TypeParam> out(x.size());
      const DeviceArray<float> means(11);
      const DeviceArray<float> variances(11);
      ASSERT_TRUE(cuda::LayerNorm(DTypeOf<TypeParam>,
                                  {.x = in.data(),
                                   .scale = affine ? scales.data() : nullptr,
                                   .bias = affine ? biases.data() : nullptr,
                                   .y = out.data(),
                                   .means = means.data(),
                                   .variances = variances.data(),
                                   .rows = 11,
                                   .length = length,
                                   .epsilon = 1e-5f},
                                  nullptr)
                      .ok());
      std::vector<testing::OneOp::Input> inputs = {{"X", TensorOf(dims, x)}};
      if (affine) {
        inputs.push_back({"Scale", TensorOf({length}, scale)});
        inputs.push_back({"Bias", TensorOf({length}, bias)});
      }
      ExpectClose(out.Read(), OnHost<TypeParam>("layer_norm", {}, inputs));
      ExpectClose(means.Read(), OnHost<float>("layer_norm", {}, inputs, 1));
      ExpectClose(variances.Read(), OnHost<float>("layer_norm", {}, inputs, 2));
    }
  }
}

}  // namespace
}  // namespace interp::cuda_test
