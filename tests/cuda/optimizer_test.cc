// Steps of optimizers and of the scale of a loss.
#include "kernels/cuda/optimizer.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/loss_scaling.h"
#include "tests/cuda/many_updates.h"
#include "tests/cuda/row_run.h"

namespace interp::cuda_test {
namespace {

using Inputs = std::vector<testing::OneOp::Input>;

Tensor One(float value, DType dtype = DType::kFloat32) { return Numbers(dtype, {1}, {value}); }

// Param, Grad and LearningRate, and with `master` the exact values of a parameter of 16 bits.
Inputs StepInputs(DType dtype, int64_t size, bool master) {
  Inputs inputs = {{"Param", SomeNumbers(dtype, {size})},
                   {"Grad", SomeNumbers(dtype, {size}, 2)},
                   {"LearningRate", One(0.1f)}};
  if (master) inputs.push_back({"MasterParam", SomeNumbers(DType::kFloat32, {size})});
  return inputs;
}

void AddStates(Inputs& inputs, const std::vector<std::string>& names, int64_t size) {
  uint32_t seed = 10;
  for (const std::string& name : names) {
    static std::vector<std::unique_ptr<std::string>> kept;  // slots are views
    kept.push_back(std::make_unique<std::string>(name));
    inputs.push_back({*kept.back(), NumbersFrom(2, DType::kFloat32, {size}, ++seed)});
  }
}

// The outputs of inputs that are not there.
std::vector<absl::string_view> AbsentOutputs(const Inputs& inputs) {
  const auto has = [&inputs](absl::string_view slot) {
    return std::any_of(inputs.begin(), inputs.end(),
                       [slot](const auto& input) { return input.slot == slot; });
  };
  std::vector<absl::string_view> absent;
  if (!has("MasterParam")) absent.push_back("MasterParamOut");
  if (!has("MeanGrad")) absent.push_back("MeanGradOut");
  return absent;
}

void ExpectTheHostsStep(const std::string& type, const std::vector<Attr>& attrs,
                        const Inputs& inputs, double tolerance = 0) {
  ExpectRowGivesTheSameAnyhow(type, attrs, inputs, tolerance, AbsentOutputs(inputs));
}

struct Optimizer {
  std::string type;
  std::vector<Attr> attrs;
  std::vector<std::string> states;
};

const std::vector<Optimizer>& Optimizers() {
  static const std::vector<Optimizer> kAll = {
      {"sgd", {}, {}},
      {"momentum", {{"mu", 0.9f}}, {"Velocity"}},
      {"momentum",
       {{"mu", 0.9f},
        {"use_nesterov", true},
        {"regularization_method", "l2_decay"},
        {"regularization_coeff", 0.1f}},
       {"Velocity"}},
      {"adagrad", {{"epsilon", 1e-3f}}, {"Moment"}},
      {"decayed_adagrad", {{"decay", 0.7f}}, {"Moment"}},
      {"adadelta", {{"rho", 0.8f}, {"epsilon", 1e-3f}}, {"AvgSquaredGrad", "AvgSquaredUpdate"}},
      {"rmsprop", {{"decay", 0.8f}, {"momentum", 0.5f}}, {"MeanSquare", "Moment"}},
      {"rmsprop", {{"decay", 0.8f}}, {"MeanSquare", "Moment", "MeanGrad"}},
      {"rmsprop", {{"centered", true}, {"epsilon", 30.0f}}, {"MeanSquare", "Moment", "MeanGrad"}},
  };
  return kAll;
}

using CudaOptimizer = KernelTest;

TEST_F(CudaOptimizer, StepsAsThatOfTheHost) {
  for (const Optimizer& optimizer : Optimizers()) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
      for (const bool master : {false, true}) {
        if (master && dtype == DType::kFloat32) continue;
        for (const int64_t size : {0, 1, 2100}) {
          SCOPED_TRACE(absl::StrCat(optimizer.type, " of ", size, " ", Name(dtype), " ", master));
          Inputs inputs = StepInputs(dtype, size, master);
          AddStates(inputs, optimizer.states, size);
          ExpectTheHostsStep(optimizer.type, optimizer.attrs, inputs);
        }
      }
    }
  }
}

TEST_F(CudaOptimizer, StepsByLarsAsTheHostDoes) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const bool master : {false, true}) {
      for (const float decay : {0.0f, 0.02f}) {
        if (master && dtype == DType::kFloat32) continue;
        SCOPED_TRACE(absl::StrCat(Name(dtype), " ", master, ", decay ", decay));
        Inputs inputs = StepInputs(dtype, 2100, master);
        AddStates(inputs, {"Velocity"}, 2100);
        ExpectTheHostsStep("lars_momentum",
                           {{"mu", 0.9f},
                            {"lars_coeff", 0.5f},
                            {"epsilon", 0.1f},
                            {"rescale_grad", -2.0f},
                            {"lars_weight_decay", std::vector<float>{decay}}},
                           inputs);
      }
    }
  }
}

TEST_F(CudaOptimizer, StepsByAdamaxAsTheHostDoes) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const bool master : {false, true}) {
      if (master && dtype == DType::kFloat32) continue;
      SCOPED_TRACE(absl::StrCat(Name(dtype), " ", master));
      Inputs inputs = StepInputs(dtype, 2100, master);
      AddStates(inputs, {"Moment", "InfNorm"}, 2100);
      inputs.push_back({"Beta1Pow", One(0.81f)});
      ExpectTheHostsStep("adamax", {{"beta1", 0.8f}, {"beta2", 0.6f}}, inputs);
    }
  }
}

TEST_F(CudaOptimizer, AdadeltaNeedsNoLearningRate) {
  Inputs inputs = StepInputs(DType::kFloat32, 9, /*master=*/false);
  inputs.pop_back();
  AddStates(inputs, {"AvgSquaredGrad", "AvgSquaredUpdate"}, 9);
  ExpectTheHostsStep("adadelta", {}, inputs);
}

Inputs AdamInputs(DType dtype, int64_t size, bool master) {
  Inputs inputs = StepInputs(dtype, size, master);
  inputs.push_back({"Moment1", SomeNumbers(DType::kFloat32, {size}, 3)});
  inputs.push_back({"Moment2", NumbersFrom(0.1f, DType::kFloat32, {size}, 4)});
  inputs.push_back({"Beta1Pow", One(0.81f)});
  inputs.push_back({"Beta2Pow", One(0.998f)});
  return inputs;
}

TEST_F(CudaOptimizer, StepsByAdamAsTheHostDoes) {
  for (const std::string type : {"adam", "adamw"}) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
      for (const bool keeps : {false, true}) {
        for (const int64_t size : {1, 2100}) {
          SCOPED_TRACE(absl::StrCat(type, " of ", size, " ", Name(dtype), " ", keeps));
          const bool master = dtype != DType::kFloat32;
          ExpectTheHostsStep(type, {{"use_global_beta_pow", keeps}, {"with_decay", true}},
                             AdamInputs(dtype, size, master));
        }
      }
    }
  }
}

TEST_F(CudaOptimizer, StepsByLambAsTheHostDoes) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const float decay : {0.0f, 0.1f}) {
      for (const float skip : {0.0f, 1.0f}) {
        for (const int64_t size : {1, 2100}) {
          SCOPED_TRACE(absl::StrCat(size, " ", Name(dtype), " decay ", decay, " skip ", skip));
          Inputs inputs = AdamInputs(dtype, size, dtype != DType::kFloat32);
          inputs.push_back({"SkipUpdate", One(skip, DType::kBool)});
          ExpectTheHostsStep("lamb", {{"weight_decay", decay}}, inputs,
                             dtype == DType::kFloat32 ? 2e-5 : 0);
        }
      }
    }
  }
}

// Whose squares a float32 does not hold.
TEST_F(CudaOptimizer, StepsByLambFromLargeParameters) {
  Inputs inputs = AdamInputs(DType::kFloat32, 3, /*master=*/false);
  inputs[0].tensor = Numbers(DType::kFloat32, {3}, {3e19f, -1e20f, 2});
  ExpectTheHostsStep("lamb", {{"weight_decay", 0.1f}}, inputs);
}

TEST_F(CudaOptimizer, TakesNumbersOfAdamFromTensors) {
  Inputs inputs = AdamInputs(DType::kFloat32, 40, false);
  inputs.push_back({"Beta1Tensor", One(0.5f)});
  inputs.push_back({"Beta2Tensor", One(0.75f)});
  inputs.push_back({"EpsilonTensor", One(0.25f)});
  ExpectTheHostsStep("adam", {}, inputs);
}

TEST_F(CudaOptimizer, SkipsAStep) {
  for (const float skip : {0.0f, 1.0f}) {
    Inputs inputs = AdamInputs(DType::kFloat32, 3000, false);
    inputs.push_back({"SkipUpdate", One(skip, DType::kBool)});
    ExpectTheHostsStep("adam", {}, inputs);
  }
}

// In one call and one by one.
TEST_F(CudaOptimizer, StepsManyParametersAsOneByOne) {
  const ManyUpdates together(/*count=*/70);
  const ManyUpdates alone(/*count=*/70);
  ASSERT_TRUE(together.Run(together.tasks()).ok());
  for (const cuda::UpdateTask& task : alone.tasks()) ASSERT_TRUE(alone.Run({task}).ok());
  for (size_t i = 0; i < alone.arrays().size(); ++i) {
    ASSERT_EQ(together.arrays()[i]->Read(), alone.arrays()[i]->Read()) << i;
  }
}

using CudaLossScale = KernelTest;

TEST_F(CudaLossScale, UnscalesAsTheHostDoes) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const float odd : {0.5f, kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
      std::vector<float> values = SomeValues<float>(3001);
      values[1700] = odd;
      ExpectRowGivesTheSameAnyhow("check_finite_and_unscale", {},
                                  {{"X", Numbers(dtype, {3001}, values)}, {"Scale", One(8)}});
    }
  }
}

TEST_F(CudaLossScale, SpoilsWhatComesAfterAnInfinity) {
  const DeviceArray<float> scale(std::vector<float>{2});
  const DeviceArray<float> a(std::vector<float>{2, 4});
  const DeviceArray<float> b(std::vector<float>{6, std::numeric_limits<float>::infinity()});
  const DeviceArray<float> c(std::vector<float>{8});
  const DeviceArray<int> work(1);
  const DeviceArray<uint8_t> found(1);
  std::vector<cuda::ArrayUpdate> arrays;
  for (int i = 0; i < 100; ++i) {
    arrays.push_back({.in = nullptr, .out = nullptr, .size = 0});  // b and c are in another launch
  }
  arrays[0] = {.in = a.data(), .out = a.data(), .size = 2};
  arrays[97] = {.in = b.data(), .out = b.data(), .size = 2};
  arrays[99] = {.in = c.data(), .out = c.data(), .size = 1};
  ASSERT_TRUE(cuda::CheckFiniteAndUnscale(DType::kFloat32, arrays, {scale.data()}, work.data(),
                                          reinterpret_cast<bool*>(found.data()), nullptr)
                  .ok());
  EXPECT_EQ(a.Read(), (std::vector<float>{1, 2}));
  EXPECT_EQ(b.Read()[0], 0);
  EXPECT_TRUE(std::isnan(b.Read()[1]));
  EXPECT_EQ(c.Read(), (std::vector<float>{0}));
  EXPECT_EQ(found.Read()[0], 1);
}

TEST_F(CudaLossScale, GrowsAndShrinksAsThatOfTheHost) {
  const std::vector<Attr> attrs = {{"incr_every_n_steps", int32_t{3}},
                                   {"decr_every_n_nan_or_inf", int32_t{2}},
                                   {"incr_ratio", 2.0f},
                                   {"decr_ratio", 0.5f}};
  for (const float found : {0.0f, 1.0f}) {
    for (const float good : {1.0f, 2.0f}) {
      for (const float stop : {-1.0f, 0.0f, 1.0f}) {
        Inputs inputs = {{"X", SomeNumbers(DType::kFloat16, {333})},
                         {"FoundInfinite", One(found, DType::kBool)},
                         {"PrevLossScaling", One(1024)},
                         {"InGoodSteps", One(good, DType::kInt32)},
                         {"InBadSteps", One(1, DType::kInt32)}};
        if (stop >= 0) inputs.push_back({"StopUpdate", One(stop, DType::kBool)});
        ExpectRowGivesTheSameAnyhow("update_loss_scaling", attrs, inputs);
      }
    }
  }
}

}  // namespace
}  // namespace interp::cuda_test
