// Gradients of reductions, sums, clips and norms.
#include <string>
#include <vector>

#include "tests/cuda/row_run.h"

namespace interp::cuda_test {
namespace {

using CudaReduceGradient = KernelTest;

TEST_F(CudaReduceGradient, IsThatOfTheHost) {
  struct Case {
    std::vector<int64_t> x;
    std::vector<int32_t> dim;
    std::vector<int64_t> out;
  };
  const std::vector<Case> cases = {{{7}, {0}, {}},        {{5, 9}, {1}, {5}},
                                   {{5, 9}, {0}, {9}},    {{2, 3, 4, 5}, {1, 3}, {2, 4}},
                                   {{40, 70}, {0}, {70}}, {{0, 4}, {0}, {4}}};
  for (const std::string type : {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min"}) {
    for (const Case& one : cases) {
      SCOPED_TRACE(absl::StrCat(type, " of ", ToString(Shape(one.x))));
      const Tensor x = SomeNumbers(DType::kFloat32, one.x);
      const bool has_elements = NumelOf(one.x) > 0;
      const std::vector<Attr> attrs = {{"dim", one.dim}};
      std::vector<testing::OneOp::Input> inputs = {{"X", x}};
      if (has_elements) {
        testing::OneOp forward(type, attrs, inputs);
        ASSERT_TRUE(forward.Run().ok());
        inputs.push_back({"Out", forward.output(0)});
      } else {
        inputs.push_back({"Out", SomeNumbers(DType::kFloat32, one.out)});
      }
      inputs.push_back({"Out@GRAD", SomeNumbers(DType::kFloat32, one.out, 2)});
      ExpectRowGivesTheSameAnyhow(type + "_grad", attrs, inputs);
    }
  }
}

// Few different values, of which some are 0 and several the extremes.
TEST_F(CudaReduceGradient, SharesExtremesAndProductsAsTheHostDoes) {
  struct Case {
    std::vector<int64_t> x;
    std::vector<int32_t> dim;
    std::vector<int64_t> out;
  };
  for (const std::string type : {"reduce_amax", "reduce_amin", "reduce_prod"}) {
    for (const Case& one : std::vector<Case>{{{6}, {0}, {}},
                                             {{40, 5}, {1}, {40}},
                                             {{5, 130}, {0}, {130}},
                                             {{3, 4, 2, 5}, {1, 3}, {3, 2}}}) {
      SCOPED_TRACE(absl::StrCat(type, " of ", ToString(Shape(one.x))));
      std::vector<float> values = SomeValues<float>(static_cast<size_t>(NumelOf(one.x)));
      for (float& value : values) value = std::floor(value * 2) / 2;
      const std::vector<Attr> attrs = {{"dim", one.dim}};
      std::vector<testing::OneOp::Input> inputs = {{"X", Numbers(DType::kFloat32, one.x, values)}};
      testing::OneOp forward(type, attrs, inputs);
      ASSERT_TRUE(forward.Run().ok());
      inputs.push_back({"Out", forward.output(0)});
      inputs.push_back({"Out@GRAD", SomeNumbers(DType::kFloat32, one.out, 2)});
      ExpectRowGivesTheSameAnyhow(type + "_grad", attrs, inputs, 2e-5);
    }
  }
}

TEST_F(CudaReduceGradient, OfProductsKeepsTheirRange) {
  ExpectRowGivesTheSame("reduce_prod_grad", {{"dim", std::vector<int32_t>{0}}},
                        {{"X", Numbers(DType::kFloat32, {4}, {1e30f, 1e-30f, 1e20f, 1e-20f})},
                         {"Out", Numbers(DType::kFloat32, {}, {1})},
                         {"Out@GRAD", Numbers(DType::kFloat32, {}, {2})}});
}

TEST_F(CudaReduceGradient, OfAllElementsIsThatOfTheHost) {
  const Tensor x = SomeNumbers(DType::kFloat32, {9, 130});
  const Tensor grad = Numbers(DType::kFloat32, {}, {0.75f});
  ExpectRowGivesTheSame("mean_grad", {}, {{"X", x}, {"Out@GRAD", grad}});
  ExpectRowGivesTheSame("squared_l2_norm_grad", {}, {{"X", x}, {"Out@GRAD", grad}});
}

using CudaNorms = KernelTest;

TEST_F(CudaNorms, AreThoseOfTheHost) {
  for (const int64_t size : {1, 255, 3000, 70000}) {
    SCOPED_TRACE(size);
    const Tensor x = SomeNumbers(DType::kFloat32, {size});
    ExpectRowGivesTheSame("squared_l2_norm", {}, {{"X", x}});
    for (const float max_norm : {1.0f, 1e6f}) {
      ExpectRowGivesTheSameAnyhow("clip_by_norm", {{"max_norm", max_norm}}, {{"X", x}});
    }
  }
}

using CudaClip = KernelTest;

TEST_F(CudaClip, IsThatOfTheHost) {
  const std::vector<Attr> attrs = {{"min", -0.5f}, {"max", 1.0f}};
  for (const DType dtype : {DType::kFloat32, DType::kFloat16}) {
    const Tensor x = SomeNumbers(dtype, {5, 11});
    ExpectRowGivesTheSameAnyhow("clip", attrs, {{"X", x}});
    ExpectRowGivesTheSame("clip", attrs, {{"X", x}, {"Min", Numbers(dtype, {1}, {0.25f})}});
    ExpectRowGivesTheSame(
        "clip", attrs,
        {{"X", x}, {"Min", Numbers(dtype, {1}, {-0.25f})}, {"Max", Numbers(dtype, {1}, {0.25f})}});
  }
}

using CudaSum = KernelTest;

TEST_F(CudaSum, AddsTensorsAsTheHostDoes) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16,
                            DType::kInt32, DType::kInt64}) {
    for (const size_t count : {1, 2, 5}) {
      for (const int64_t size : {1, 37, 3000}) {
        SCOPED_TRACE(absl::StrCat(count, " of ", size, " ", Name(dtype)));
        std::vector<testing::OneOp::Input> inputs;
        for (size_t i = 0; i < count; ++i) {
          inputs.push_back({"X", SomeNumbers(dtype, {size}, static_cast<uint32_t>(i))});
        }
        ExpectRowGivesTheSameAnyhow("sum", {}, inputs);
      }
    }
  }
}

TEST_F(CudaSum, LeavesOutWhatIsAbsent) {
  ExpectRowGivesTheSame("sum", {},
                        {{"X", Numbers(DType::kFloat32, {0}, {})},
                         {"X", SomeNumbers(DType::kFloat32, {3, 4})},
                         {"X", SomeNumbers(DType::kFloat32, {3, 4}, 2)}});
}

TEST_F(CudaSum, TakesMoreTensorsThanALaunchDoes) {
  std::vector<testing::OneOp::Input> inputs;
  for (uint32_t i = 0; i < 150; ++i) {
    inputs.push_back({"X", SomeNumbers(DType::kFloat32, {9}, i)});
  }
  ExpectRowGivesTheSameAnyhow("sum", {}, inputs, 2e-5);
}

}  // namespace
}  // namespace interp::cuda_test
