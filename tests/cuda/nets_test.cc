// Networks of tests/testing/built_nets.h on a GPU and on the host: what they give, and how they
// learn.
#include <string>
#include <utility>
#include <vector>

#include "core/io/param_decl.h"
#include "passes/train/minimize.h"
#include "tests/cuda/both_places.h"
#include "tests/cuda/kernel_test.h"
#include "tests/testing/built_nets.h"

namespace interp::cuda_test {
namespace {

using testing::IsOk;

constexpr int64_t kBatch = 2;

// Floats between 0 and 1, integers 0, 1, 2, 0, ...
std::vector<NamedTensor> FeedsOf(const Program& program) {
  std::vector<NamedTensor> feeds;
  for (const Var& var : program.blocks[0].vars) {
    if (!var.need_check_feed) continue;
    std::vector<int64_t> dims = var.dims;
    for (int64_t& dim : dims) dim = dim == -1 ? kBatch : dim;
    std::vector<float> values(static_cast<size_t>(NumelOf(dims)));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = var.dtype == DType::kInt64 ? i % 3 : static_cast<float>(i * 7 % 11) / 11;
    }
    Tensor tensor = Tensor::Of<float>(Shape(dims), values);
    if (var.dtype == DType::kInt64) {
      tensor = Tensor::Of<int64_t>(Shape(dims), std::vector<int64_t>(values.begin(), values.end()));
    }
    feeds.emplace_back(program.NameOf(var.id), std::move(tensor));
  }
  return feeds;
}

// What a startup program makes, on the host.
absl::StatusOr<std::vector<NamedTensor>> MakeParameters(const Program& startup) {
  const auto scope = std::make_shared<Scope>();
  CoreOptions options;
  options.random_seed = 3;
  INTERP_ASSIGN_OR_RETURN(const auto core,
                          InterpreterCore::Create(startup, {}, {}, scope, options));
  INTERP_RETURN_IF_ERROR(core->Run({}).status());
  std::vector<NamedTensor> names;
  for (const ParamDecl& param : ParamsOf(startup)) names.emplace_back(param.name, Tensor());
  return testing::ValuesInScope(names, *scope);
}

class CudaNetTest : public KernelTest, public ::testing::WithParamInterface<std::string> {};

TEST_P(CudaNetTest, GivesWhatTheHostGives) {
  const absl::StatusOr<BuiltProgram> built = testing::Build(GetParam(), {.is_test = true});
  ASSERT_THAT(built, IsOk());
  const absl::StatusOr<std::vector<NamedTensor>> parameters = MakeParameters(built->startup);
  ASSERT_THAT(parameters, IsOk());
  const auto differences = DifferencesOnGpu({.program = built->main,
                                             .parameters = *parameters,
                                             .feeds = FeedsOf(built->main),
                                             .fetches = {testing::LastResult(built->main)}});
  ASSERT_THAT(differences, IsOk());
  EXPECT_THAT(*differences, ::testing::IsEmpty());
}

std::vector<std::string> AllNets() {
  std::vector<std::string> names;
  for (const testing::BuiltNet& net : testing::BuiltNets()) names.push_back(net.name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Nets, CudaNetTest, ::testing::ValuesIn(AllNets()),
                         [](const auto& info) { return info.param; });

class CudaNetTraining : public KernelTest, public ::testing::WithParamInterface<std::string> {};

TEST_P(CudaNetTraining, LearnsInThreeStepsWhatTheHostLearns) {
  const absl::StatusOr<BuiltProgram> built = testing::Build(GetParam());
  ASSERT_THAT(built, IsOk());
  std::string loss = testing::LastResult(built->main);
  if (GetParam() == "mlp") loss = "mean_0.tmp_0";  // its accuracy comes after it
  const absl::StatusOr<OptimizerSpec> spec =
      ParseOptimizerSpec("momentum:learning_rate=0.05,momentum=0.9");
  ASSERT_THAT(spec, IsOk());
  const absl::StatusOr<TrainingPrograms> training =
      Minimize(built->main, built->startup, {.backward = {.loss = loss}, .optimizer = *spec},
               OpRegistry::Global());
  ASSERT_THAT(training, IsOk());
  const absl::StatusOr<std::vector<NamedTensor>> parameters = MakeParameters(training->startup);
  ASSERT_THAT(parameters, IsOk());
  const auto differences = DifferencesOnGpu({.program = training->main,
                                             .parameters = *parameters,
                                             .feeds = FeedsOf(built->main),
                                             .fetches = {loss},
                                             .steps = 3,
                                             .trains = true});
  ASSERT_THAT(differences, IsOk());
  EXPECT_THAT(*differences, ::testing::IsEmpty());
}
INSTANTIATE_TEST_SUITE_P(Nets, CudaNetTraining,
                         ::testing::Values("mlp", "lenet", "resnet", "lstm", "attention"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace interp::cuda_test
