// Programs of ProgramBuilder run: startup, then the main program on the parameters it made.
#include "tests/testing/built_nets.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "core/tensor.h"
#include "interpreter/interpreter_core.h"
#include "tests/testing/matchers.h"

namespace interp {
namespace {

using testing::Build;
using testing::BuiltNet;
using testing::BuiltNets;
using testing::IsOk;
using testing::LastResult;

constexpr int64_t kBatch = 3;

// Floats between 0 and 1, integers 0, 1, 2, 0, ...
Tensor FeedFor(const Var& var) {
  Tensor tensor;
  tensor.dtype = var.dtype;
  for (const int64_t dim : var.dims) tensor.shape.push_back(dim == -1 ? kBatch : dim);
  EXPECT_THAT(tensor.Allocate(SystemAllocator()), IsOk());
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    if (var.dtype == DType::kInt64) {
      tensor.mutable_data<int64_t>()[i] = i % 3;
    } else if (SizeOf(var.dtype) == 2) {
      tensor.mutable_data<bfloat16>()[i] = bfloat16(static_cast<float>(i * 7 % 11) / 11);
    } else {
      tensor.mutable_data<float>()[i] = static_cast<float>(i * 7 % 11) / 11;
    }
  }
  return tensor;
}

// The value of a variable of the main program, after the startup program when there is one.
absl::StatusOr<Tensor> RunFor(const std::string& fetch, const BuiltProgram& built,
                              const std::shared_ptr<Scope>& scope) {
  if (!built.startup.blocks.empty()) {
    INTERP_ASSIGN_OR_RETURN(auto startup, InterpreterCore::Create(built.startup, {}, {}, scope));
    INTERP_RETURN_IF_ERROR(startup->Run({}).status());
  }
  std::vector<std::string> feeds;
  std::vector<Tensor> tensors;
  for (const Var& var : built.main.blocks[0].vars) {
    if (!var.need_check_feed) continue;
    feeds.push_back(built.main.NameOf(var.id));
    tensors.push_back(FeedFor(var));
  }
  INTERP_ASSIGN_OR_RETURN(auto core, InterpreterCore::Create(built.main, feeds, {fetch}, scope));
  INTERP_ASSIGN_OR_RETURN(std::vector<Tensor> fetches, core->Run(tensors));
  return fetches[0];
}

class BuiltNetRunTest : public ::testing::TestWithParam<BuiltNet> {};

TEST_P(BuiltNetRunTest, GivesDeclaredShapesAndFiniteValues) {
  const absl::StatusOr<BuiltProgram> built = Build(GetParam().name);
  ASSERT_THAT(built, IsOk());
  const std::string name = LastResult(built->main);
  const absl::StatusOr<Tensor> result = RunFor(name, *built, std::make_shared<Scope>());
  ASSERT_THAT(result, IsOk());
  const Var& declared = built->main.blocks[0].vars[built->main.Find(name)];
  ASSERT_EQ(result->shape.rank(), std::ssize(declared.dims));
  for (int i = 0; i < result->shape.rank(); ++i) {
    EXPECT_EQ(result->shape[i], declared.dims[i] == -1 ? kBatch : declared.dims[i]);
  }
  for (int64_t i = 0; i < result->numel(); ++i) {
    EXPECT_TRUE(std::isfinite(result->data<float>()[i])) << name << " " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Nets, BuiltNetRunTest, ::testing::ValuesIn(BuiltNets()),
                         [](const auto& info) { return info.param.name; });

TEST(BuiltNetTest, ComputesWhatItSays) {
  ProgramBuilder net;
  const Value x = net.Data("x", {-1, 4});
  const Value y = net.Fc(x, 2,
                         {.weight = {.init = Initializer::Constant(2)},
                          .bias = ParamOptions{.init = Initializer::Constant(-1)},
                          .act = "relu"});
  const std::string name = net.NameOf(net.Mean(net.Square(y)));
  const absl::StatusOr<BuiltProgram> built = net.Finish();
  ASSERT_THAT(built, IsOk());
  const absl::StatusOr<Tensor> result = RunFor(name, *built, std::make_shared<Scope>());
  ASSERT_THAT(result, IsOk());
  double expected = 0;
  for (int row = 0; row < kBatch; ++row) {
    double sum = -1;
    for (int i = 4 * row; i < 4 * row + 4; ++i) sum += 2 * (i * 7 % 11) / 11.0;
    expected += std::max(sum, 0.0) * std::max(sum, 0.0) / kBatch;
  }
  EXPECT_NEAR(result->data<float>()[0], expected, 1e-5);
}

TEST(BuiltNetTest, NormsOfHalfPrecisionHaveParametersOfFloat32) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    for (const bool batch : {false, true}) {
      ProgramBuilder net;
      const Value x = net.Data("x", {-1, 4}, dtype);
      const Value normal = batch ? net.BatchNorm(x) : net.LayerNorm(x);
      EXPECT_EQ(net.Get(normal).dtype, dtype);
      const std::string name = net.NameOf(normal);
      const absl::StatusOr<BuiltProgram> built = net.Finish();
      ASSERT_THAT(built, IsOk());
      for (const Var& var : built->startup.blocks[0].vars) EXPECT_EQ(var.dtype, DType::kFloat32);
      if (dtype == DType::kFloat16) continue;  // there are no such kernels for CPUs
      const absl::StatusOr<Tensor> result = RunFor(name, *built, std::make_shared<Scope>());
      ASSERT_THAT(result, IsOk());
      EXPECT_EQ(result->dtype, dtype);
    }
  }
}

// The labels are 0, 1, 2; all logits of a row are equal.
TEST(BuiltNetTest, IgnoredLabelsDoNotCount) {
  for (const int ignored : {2, 7, -1}) {
    ProgramBuilder net;
    const Value x = net.Data("x", {-1, 4});
    const Value label = net.Data("label", {-1, 1}, DType::kInt64);
    const Value loss = net.CrossEntropy(net.Scale(x, 0), label, {.ignore_index = ignored});
    const std::string name = net.NameOf(loss);
    const absl::StatusOr<BuiltProgram> built = net.Finish();
    ASSERT_THAT(built, IsOk());
    const absl::StatusOr<Tensor> result = RunFor(name, *built, std::make_shared<Scope>());
    ASSERT_THAT(result, IsOk());
    EXPECT_NEAR(result->data<float>()[0], std::log(4.0), 1e-6) << ignored;
  }
}

TEST(BuiltNetTest, TheLossWhereAllLabelsAreIgnoredIsZero) {
  ProgramBuilder net;
  const Value x = net.Data("x", {1, 4});
  const Value label = net.Data("label", {1, 1}, DType::kInt64);
  const std::string name = net.NameOf(net.CrossEntropy(x, label, {.ignore_index = 0}));
  const absl::StatusOr<BuiltProgram> built = net.Finish();
  ASSERT_THAT(built, IsOk());
  const absl::StatusOr<Tensor> result = RunFor(name, *built, std::make_shared<Scope>());
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->data<float>()[0], 0);
}

TEST(BuiltNetTest, TheProgramForEvaluationUsesTheParametersOfTraining) {
  const absl::StatusOr<BuiltProgram> train = Build("mlp");
  absl::StatusOr<BuiltProgram> evaluate = Build("mlp", {.is_test = true});
  ASSERT_THAT(train, IsOk());
  ASSERT_THAT(evaluate, IsOk());
  evaluate->startup = {};
  const auto scope = std::make_shared<Scope>();
  const std::string loss = "mean_0.tmp_0";
  ASSERT_THAT(RunFor(loss, *train, scope), IsOk());
  const absl::StatusOr<Tensor> result = RunFor(loss, *evaluate, scope);
  ASSERT_THAT(result, IsOk());
  EXPECT_GT(result->data<float>()[0], 0);
}

}  // namespace
}  // namespace interp
