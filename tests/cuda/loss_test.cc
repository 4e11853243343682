// Losses, their gradients, those of softmax, and accuracy.
#include <limits>
#include <string>
#include <vector>

#include "kernels/cuda/cross_entropy.h"
#include "tests/cuda/row_run.h"

namespace interp::cuda_test {
namespace {

// What the host gives for output 0.
Tensor FirstOutput(const std::string& type, const std::vector<Attr>& attrs,
                   const std::vector<testing::OneOp::Input>& inputs) {
  testing::OneOp op(type, attrs, inputs);
  EXPECT_TRUE(op.Run().ok());
  return op.output(0);
}

using CudaSoftmaxGradient = KernelTest;

TEST_F(CudaSoftmaxGradient, IsThatOfTheHost) {
  struct Case {
    std::vector<int64_t> dims;
    int32_t axis;
  };
  for (const std::string type : {"softmax", "log_softmax"}) {
    for (const Case& one : std::vector<Case>{
             {{9, 5}, -1}, {{3, 1500}, 1}, {{4, 7, 5}, 1}, {{2, 300}, 0}, {{0, 4}, 1}}) {
      SCOPED_TRACE(absl::StrCat(type, " of ", ToString(Shape(one.dims)), ", axis ", one.axis));
      const std::vector<Attr> attrs = {{"axis", one.axis}};
      const Tensor out = FirstOutput(type, attrs, {{"X", SomeNumbers(DType::kFloat32, one.dims)}});
      ExpectRowGivesTheSameAnyhow(
          type + "_grad", attrs,
          {{"Out", out}, {"Out@GRAD", SomeNumbers(DType::kFloat32, one.dims, 2)}}, 2e-5);
    }
  }
}

// Positions below `length`, of which every fifth is `ignored`.
Tensor SomeLabels(DType dtype, const std::vector<int64_t>& dims, int64_t length, float ignored) {
  std::vector<float> labels(static_cast<size_t>(NumelOf(dims)));
  for (size_t i = 0; i < labels.size(); ++i) {
    labels[i] = i % 5 == 4 ? ignored : static_cast<float>(i * 7 % length);
  }
  return Numbers(dtype, dims, labels);
}

struct Lines {
  std::vector<int64_t> dims;
  std::vector<int64_t> label_dims;
  int32_t axis;
  int64_t length;
};

using CudaSoftmaxLoss = KernelTest;

TEST_F(CudaSoftmaxLoss, AndItsGradientAreThoseOfTheHost) {
  const std::vector<Lines> cases = {{{9, 5}, {9, 1}, -1, 5},
                                    {{3, 1500}, {3, 1}, 1, 1500},
                                    {{4, 7, 5}, {4, 1, 5}, 1, 7},
                                    {{2, 33}, {1, 33}, 0, 2},
                                    {{0, 4}, {0, 1}, 1, 4}};
  for (const Lines& one : cases) {
    for (const bool of_logits : {true, false}) {
      for (const bool soft : {true, false}) {
        SCOPED_TRACE(
            absl::StrCat(ToString(Shape(one.dims)), " logits ", of_logits, " soft ", soft));
        const std::vector<Attr> attrs = {{"axis", one.axis},
                                         {"soft_label", soft},
                                         {"use_softmax", of_logits},
                                         {"ignore_index", int32_t{-1}}};
        const Tensor logits = NumbersFrom(of_logits ? -1 : 0.1f, DType::kFloat32, one.dims);
        const Tensor labels = soft ? NumbersFrom(0, DType::kFloat32, one.dims, 2)
                                   : SomeLabels(DType::kInt64, one.label_dims, one.length, -1);
        ExpectRowGivesTheSameAnyhow("softmax_with_cross_entropy", attrs,
                                    {{"Logits", logits}, {"Label", labels}}, 2e-5);
        const Tensor softmax = FirstOutput("softmax_with_cross_entropy", attrs,
                                           {{"Logits", logits}, {"Label", labels}});
        ExpectRowGivesTheSameAnyhow(
            "softmax_with_cross_entropy_grad", attrs,
            {{"Softmax", softmax},
             {"Label", labels},
             {"Loss@GRAD", SomeNumbers(DType::kFloat32, one.label_dims, 3)}},
            2e-5);
      }
    }
  }
}

TEST_F(CudaSoftmaxLoss, OfFarLogitsIsThatOfTheHost) {
  ExpectRowGivesTheSame("softmax_with_cross_entropy", {},
                        {{"Logits", Numbers(DType::kFloat32, {2, 3}, {0, 500, -500, 1, 2, 3})},
                         {"Label", Numbers(DType::kInt32, {2, 1}, {2, 0})}},
                        {.tolerance = 2e-5});
}

TEST_F(CudaSoftmaxLoss, OfALabelThatIsNoneIsNan) {
  const DeviceArray<float> x(std::vector<float>{1, 2, 3, 4});
  const DeviceArray<int64_t> labels(std::vector<int64_t>{7, -3});
  const DeviceArray<float> loss(2);
  const DeviceArray<float> x_grad(4);
  const DeviceArray<float> loss_grad(std::vector<float>{1, 1});
  const cuda::Labels hard = {.data = labels.data(), .ignored = -100};
  ASSERT_TRUE(cuda::CrossEntropy({.shape = {2, 2, 1},
                                  .x = x.data(),
                                  .labels = hard,
                                  .of_logits = true,
                                  .loss = loss.data()},
                                 nullptr)
                  .ok());
  ASSERT_TRUE(cuda::CrossEntropyGradient({.shape = {2, 2, 1},
                                          .probability = x.data(),
                                          .labels = hard,
                                          .loss_grad = loss_grad.data(),
                                          .x_grad = x_grad.data()},
                                         nullptr)
                  .ok());
  for (const float value : loss.Read()) EXPECT_TRUE(std::isnan(value));
  for (const float value : x_grad.Read()) EXPECT_TRUE(std::isnan(value));
}

using CudaCrossEntropy = KernelTest;

TEST_F(CudaCrossEntropy, AndItsGradientAreThoseOfTheHost) {
  const std::vector<Lines> cases = {{{9, 5}, {9, 1}, -1, 5}, {{3, 1500}, {3, 1}, -1, 1500}};
  for (const Lines& one : cases) {
    const Tensor x = NumbersFrom(0.1f, DType::kFloat32, one.dims);
    const Tensor hard = SomeLabels(DType::kInt64, one.label_dims, one.length, -100);
    const Tensor soft = NumbersFrom(0, DType::kFloat32, one.dims, 2);
    const Tensor grad = SomeNumbers(DType::kFloat32, one.label_dims, 3);
    for (const bool is_soft : {true, false}) {
      const std::vector<Attr> attrs = {{"soft_label", is_soft}};
      const Tensor& labels = is_soft ? soft : hard;
      ExpectRowGivesTheSame("cross_entropy", attrs, {{"X", x}, {"Label", labels}},
                            {.tolerance = 2e-5});
      ExpectRowGivesTheSame("cross_entropy_grad", attrs,
                            {{"X", x}, {"Label", labels}, {"Y@GRAD", grad}}, {.tolerance = 2e-5});
    }
    ExpectRowGivesTheSame("cross_entropy2", {}, {{"X", x}, {"Label", hard}}, {.tolerance = 2e-5});
    std::vector<int64_t> with_zero = one.dims;
    with_zero.push_back(0);
    ExpectRowGivesTheSame("cross_entropy_grad2", {},
                          {{"MatchX", NumbersFrom(0.1f, DType::kFloat32, one.label_dims, 4)},
                           {"Label", hard},
                           {"Y@GRAD", grad},
                           {"XShape", Numbers(DType::kFloat32, with_zero, {})}},
                          {.tolerance = 2e-5});
  }
}

using CudaSigmoidLoss = KernelTest;

TEST_F(CudaSigmoidLoss, AndItsGradientAreThoseOfTheHost) {
  const std::vector<int64_t> dims = {7, 131};
  const Tensor x = SomeNumbers(DType::kFloat32, dims);
  std::vector<float> label(7 * 131);
  for (size_t i = 0; i < label.size(); ++i) label[i] = static_cast<float>(i % 3) - 1;
  const Tensor labels = Numbers(DType::kFloat32, dims, label);
  for (const bool normalize : {false, true}) {
    for (const bool weighs : {false, true}) {
      const std::vector<Attr> attrs = {{"normalize", normalize}, {"ignore_index", int32_t{-1}}};
      std::vector<testing::OneOp::Input> inputs = {{"X", x}, {"Label", labels}};
      if (weighs) inputs.push_back({"pos_weight", NumbersFrom(0.5f, DType::kFloat32, dims, 2)});
      ExpectRowGivesTheSame("sigmoid_cross_entropy_with_logits", attrs, inputs);
      inputs.push_back({"Out@GRAD", SomeNumbers(DType::kFloat32, dims, 3)});
      ExpectRowGivesTheSameAnyhow("sigmoid_cross_entropy_with_logits_grad", attrs, inputs);
    }
  }
}

using CudaAccuracy = KernelTest;

TEST_F(CudaAccuracy, IsThatOfTheHost) {
  for (const int64_t samples : {0, 1, 700}) {
    for (const DType dtype : {DType::kInt32, DType::kInt64}) {
      std::vector<float> indices(static_cast<size_t>(samples) * 3);
      std::vector<float> labels(static_cast<size_t>(samples));
      for (size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<float>(i * 5 % 11);
      for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<float>(i % 7);
      ExpectRowGivesTheSame("accuracy", {},
                            {{"Out", SomeNumbers(DType::kFloat32, {samples, 3})},
                             {"Indices", Numbers(dtype, {samples, 3}, indices)},
                             {"Label", Numbers(DType::kInt64, {samples, 1}, labels)}});
    }
  }
}

}  // namespace
}  // namespace interp::cuda_test
