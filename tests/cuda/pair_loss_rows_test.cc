// Rows of losses of two tensors.
#include "tests/cuda/row_test.h"

namespace interp::cuda_test {
namespace {

template <typename T>
class PairLossRows : public RowTest {};
using LossElements = ::testing::Types<float, double>;
TYPED_TEST_SUITE(PairLossRows, LossElements);

// Values in (0, 1).
template <typename T>
Tensor Probabilities(int64_t rows, uint32_t seed) {
  std::vector<T> values = SomeValues<T>(static_cast<size_t>(rows), seed);
  for (T& value : values) value = T(0.5) + value * T(0.24);
  return Tensor::Of<T>(Shape({rows, 1}), values);
}

TYPED_TEST(PairLossRows, LogLossAndItsGradientGiveWhatTheHostGives) {
  const Tensor x = Probabilities<TypeParam>(900, 1);
  const Tensor labels = Probabilities<TypeParam>(900, 2);
  for (const float epsilon : {1e-4f, 0.1f}) {
    this->ExpectSameAsHost(
        {"log_loss", {{"epsilon", epsilon}}, {{"Predicted", x}, {"Labels", labels}}});
    this->ExpectSameAsHost({"log_loss_grad",
                            {{"epsilon", epsilon}},
                            {{"Predicted", x},
                             {"Labels", labels},
                             {"Loss@GRAD", SomeTensor<TypeParam>({900, 1}, 3)}}});
  }
}

TYPED_TEST(PairLossRows, HuberLossAndItsGradientGiveWhatTheHostGives) {
  const Tensor x = SomeTensor<TypeParam>({30, 31});
  const Tensor y = SomeTensor<TypeParam>({30, 31}, 2);
  for (const float delta : {0.3f, 1.0f}) {
    this->ExpectSameAsHost({"huber_loss", {{"delta", delta}}, {{"X", x}, {"Y", y}}});
    this->ExpectSameAsHost(
        {"huber_loss_grad", {{"delta", delta}}, {{"Residual", x}, {"Out@GRAD", y}}});
  }
}

TYPED_TEST(PairLossRows, SmoothL1LossAndItsGradientGiveWhatTheHostGives) {
  for (const int64_t width : {5, 1500}) {
    const Tensor x = SomeTensor<TypeParam>({7, width});
    const Tensor y = SomeTensor<TypeParam>({7, width}, 2);
    const Tensor grad = SomeTensor<TypeParam>({7, 1}, 3);
    const Tensor inside = SomeTensor<TypeParam>({7, width}, 4);
    const Tensor outside = SomeTensor<TypeParam>({7, width}, 5);
    const std::vector<Attr> attrs = {{"sigma", 1.5f}};
    this->ExpectSameAsHost({"smooth_l1_loss", attrs, {{"X", x}, {"Y", y}}});
    this->ExpectSameAsHost(
        {"smooth_l1_loss",
         attrs,
         {{"X", x}, {"Y", y}, {"InsideWeight", inside}, {"OutsideWeight", outside}}});
    this->ExpectSameAsHost({"smooth_l1_loss_grad", attrs, {{"Diff", x}, {"Out@GRAD", grad}}});
    this->ExpectSameAsHost(
        {"smooth_l1_loss_grad",
         attrs,
         {{"Diff", x}, {"InsideWeight", inside}, {"OutsideWeight", outside}, {"Out@GRAD", grad}}});
  }
}

}  // namespace
}  // namespace interp::cuda_test
