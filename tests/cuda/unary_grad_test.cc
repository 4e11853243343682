#include "kernels/cuda/unary_grad.h"

#include <string>
#include <vector>

#include "tests/cuda/row_run.h"

namespace interp::cuda_test {
namespace {

struct FunctionGradient {
  std::string type;
  bool of_out = false;  // the value is Out
  std::vector<Attr> attrs = {};
  // Where the values lie: from `least` to `least` + 2; below -2 from -2 to 2.
  float least = -3;
  bool of_bfloat16 = false;  // the host has it, too
};

// Long because every function is here.
const std::vector<FunctionGradient>& Gradients() {
  static const std::vector<FunctionGradient> kAll = {
      {"relu_grad", true, {}, -3, true},
      {"relu6_grad", true, {{"threshold", 1.5f}}, -3, true},
      {"leaky_relu_grad", false, {{"alpha", 0.1f}}, -3, true},
      {"brelu_grad", false, {{"t_min", -0.5f}, {"t_max", 1.0f}}},
      {"hard_sigmoid_grad", true, {{"slope", 0.3f}}, -3, true},
      {"hard_swish_grad", false, {}, -3, true},
      {"hard_shrink_grad", false},
      {"softshrink_grad", false, {{"lambda", 0.7f}}},
      {"thresholded_relu_grad", false},
      {"sigmoid_grad", true, {}, -3, true},
      {"logsigmoid_grad", false},
      {"tanh_grad", true, {}, -3, true},
      {"tanh_shrink_grad", false},
      {"stanh_grad", false},
      {"elu_grad", false, {{"alpha", 0.5f}}, -3, true},
      {"selu_grad", true},
      {"celu_grad", false, {{"alpha", 0.5f}}},
      {"swish_grad", false, {{"beta", 1.5f}}, -3, true},
      {"silu_grad", false, {}, -3, true},
      {"softplus_grad", false, {{"beta", 2.0f}, {"threshold", 3.0f}}},
      {"soft_relu_grad", true, {{"threshold", 1.0f}}},
      {"softsign_grad", false},
      {"mish_grad", false, {}, -3, true},
      {"gelu_grad", false, {{"approximate", false}}, -3, true},
      {"gelu_grad", false, {{"approximate", true}}, -3, true},
      {"sqrt_grad", true, {}, 0.1f},
      {"rsqrt_grad", true, {}, 0.1f},
      {"square_grad", false},
      {"reciprocal_grad", true},
      {"abs_grad", false},
      {"floor_grad", false},
      {"exp_grad", true},
      {"expm1_grad", true},
      {"log_grad", false, {}, 0.1f},
      {"log2_grad", false, {}, 0.1f},
      {"log10_grad", false, {}, 0.1f},
      {"log1p_grad", false, {}, -0.9f},
      {"erf_grad", false},
      {"logit_grad", false, {{"eps", 0.1f}}, -0.5f},
      {"sin_grad", false},
      {"cos_grad", false},
      {"tan_grad", false, {}, -1},
      {"asin_grad", false, {}, -1},
      {"acos_grad", false, {}, -1},
      {"atan_grad", false},
      {"sinh_grad", false},
      {"cosh_grad", false},
      {"asinh_grad", false},
      {"acosh_grad", false, {}, 1.1f},
      {"atanh_grad", false, {}, -0.99f},
      {"pow_grad", false, {{"factor", 2.5f}}, 0.1f},
      {"pow_grad", false, {{"factor", 0.0f}}},
      {"clip_grad", false, {{"min", -1.0f}, {"max", 0.5f}}},
  };
  return kAll;
}

void ExpectTheHostsGradient(const FunctionGradient& gradient, DType dtype, int64_t size) {
  SCOPED_TRACE(absl::StrCat(gradient.type, " of ", size, " ", Name(dtype)));
  const Tensor value =
      gradient.least < -2 ? SomeNumbers(dtype, {size}) : NumbersFrom(gradient.least, dtype, {size});
  ExpectRowGivesTheSameAnyhow(
      gradient.type, gradient.attrs,
      {{"X", value}, {"Out", value}, {"Out@GRAD", SomeNumbers(dtype, {size}, 2)}},
      dtype == DType::kFloat32 ? 2e-5 : 0);
}

using CudaUnaryGradient = KernelTest;

TEST_F(CudaUnaryGradient, IsThatOfTheHost) {
  for (const FunctionGradient& gradient : Gradients()) {
    ExpectTheHostsGradient(gradient, DType::kFloat32, 37);
    if (gradient.of_bfloat16) ExpectTheHostsGradient(gradient, DType::kBFloat16, 37);
  }
}

TEST_F(CudaUnaryGradient, HasAnySize) {
  for (const int64_t size : {0, 1, 4, 3000, 4099}) {
    ExpectTheHostsGradient(Gradients()[0], DType::kFloat32, size);
  }
}

TEST_F(CudaUnaryGradient, TakesNumbersFromTensors) {
  const Tensor x = SomeNumbers(DType::kFloat32, {100});
  const Tensor grad = SomeNumbers(DType::kFloat32, {100}, 2);
  ExpectRowGivesTheSame("clip_grad", {{"min", -1.0f}, {"max", 0.5f}},
                        {{"X", x},
                         {"Out@GRAD", grad},
                         {"Min", Numbers(DType::kFloat32, {1}, {-0.25f})},
                         {"Max", Numbers(DType::kFloat32, {1}, {1.25f})}});
  ExpectRowGivesTheSame(
      "pow_grad", {{"factor", 1.0f}},
      {{"X", x}, {"Out@GRAD", grad}, {"FactorTensor", Numbers(DType::kFloat32, {1}, {3.0f})}});
}

TEST_F(CudaUnaryGradient, OfFloat16IsThatOfFloat32Rounded) {
  const auto value = SomeValues<float16>(50);
  const auto grad = SomeValues<float16>(50, 2);
  const DeviceArray<float16> values(value);
  const DeviceArray<float16> grads(grad);
  const DeviceArray<float16> out(50);
  ASSERT_TRUE(cuda::UnaryGradient(DType::kFloat16,
                                  {.op = cuda::UnaryGradientOp::kTanh,
                                   .value = values.data(),
                                   .out_grad = grads.data(),
                                   .x_grad = out.data(),
                                   .size = 50},
                                  nullptr)
                  .ok());
  ExpectClose(out.Read(), OnHost<float16>("tanh_grad", {},
                                          {{"Out", TensorOf({50}, value)},
                                           {"Out@GRAD", TensorOf({50}, grad)}}));
}

}  // namespace
}  // namespace interp::cuda_test
