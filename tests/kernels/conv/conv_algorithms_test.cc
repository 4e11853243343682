// CoreOptions::algorithms, and what kernels say they computed with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "tests/kernels/op_runs.h"
#include "tests/kernels/whole_vectors.h"

namespace interp::testing {
namespace {

using ::testing::Contains;
using ::testing::Not;

constexpr const char* kProgram = R"(block 0
  var x float32[2,32,20,20]
  var w float32[32,32,3,3]
  var y float32[-1,32,20,20]
  var g float32[-1,32,20,20]
  var x@GRAD float32[2,32,20,20]
  var w@GRAD float32[32,32,3,3]
  conv2d(Input=x, Filter=w) -> (Output=y) {paddings=[1, 1], strides=[1, 1]}
  conv2d_grad(Input=x, Filter=w, Output@GRAD=g) -> (Input@GRAD=x@GRAD, Filter@GRAD=w@GRAD) {paddings=[1, 1], strides=[1, 1]}
)";

struct Ran {
  std::vector<Tensor> outputs;
  std::vector<std::string> algorithms;
};

Ran RunWith(Algorithms algorithms) {
  absl::StatusOr<Program> program = ParseProgram(kProgram);
  EXPECT_THAT(program, IsOk());
  CoreOptions options;
  options.algorithms = algorithms;
  auto core = InterpreterCore::Create(*std::move(program), {"x", "w", "g"},
                                      {"y", "x@GRAD", "w@GRAD"}, nullptr, options);
  EXPECT_THAT(core, IsOk());
  auto outputs = (*core)->Run(
      {Numbers({2, 32, 20, 20}, 1), Numbers({32, 32, 3, 3}, 2), Numbers({2, 32, 20, 20}, 3)});
  EXPECT_THAT(outputs, IsOk());
  return {*std::move(outputs), (*core)->algorithms()};
}

TEST(AlgorithmsTest, DirectOnesTransformNothing) {
  const Ran fast = RunWith(Algorithms::kFast);
  const Ran direct = RunWith(Algorithms::kDirect);
  EXPECT_THAT(direct.algorithms, Not(Contains(::testing::HasSubstr("winograd"))));
  if (!UsesWholeVectors()) {
    // Direct sums use wider vectors, which pays more.
    EXPECT_EQ(fast.algorithms, direct.algorithms);
    return;
  }
  EXPECT_THAT(fast.algorithms, Contains("winograd 4x4"));
  EXPECT_THAT(fast.algorithms, Contains("winograd 4x4, winograd 4x4"));
  for (size_t i = 0; i < fast.outputs.size(); ++i) {
    const Tensor& a = fast.outputs[i];
    const Tensor& b = direct.outputs[i];
    ASSERT_EQ(a.shape, b.shape);
    int64_t differ = 0;
    for (int64_t at = 0; at < a.numel(); ++at) {
      ASSERT_NEAR(a.data<float>()[at], b.data<float>()[at], 1e-3);
      differ += a.data<float>()[at] != b.data<float>()[at] ? 1 : 0;
    }
    EXPECT_GT(differ, 0) << "output " << i << " was computed in the same way";
  }
}

// Filters that never change: few pixels, few output channels. The batch of the second run takes the
// first convolution to another method.
constexpr const char* kConstantFilters = R"(block 0
  var x float32[-1,256,7,7]
  var w float32[512,256,1,1] param
  var v float32[3,512,3,3] param
  var y float32[-1,512,7,7]
  var z float32[-1,3,7,7]
  conv2d(Input=x, Filter=w) -> (Output=y) {}
  conv2d(Input=y, Filter=v) -> (Output=z) {paddings=[1, 1]}
)";

std::vector<Ran> RunConstantFilters(Algorithms algorithms) {
  absl::StatusOr<Program> program = ParseProgram(kConstantFilters);
  EXPECT_THAT(program, IsOk());
  auto scope = std::make_shared<Scope>();
  scope->FindOrCreate("w")->tensor = Numbers({512, 256, 1, 1}, 1);
  scope->FindOrCreate("v")->tensor = Numbers({3, 512, 3, 3}, 2);
  CoreOptions options;
  options.algorithms = algorithms;
  auto core = InterpreterCore::Create(*std::move(program), {"x"}, {"z"}, scope, options);
  EXPECT_THAT(core, IsOk());
  std::vector<Ran> ran;
  for (const int64_t batch : {1, 8, 1}) {
    auto outputs = (*core)->Run({Numbers({batch, 256, 7, 7}, 3)});
    EXPECT_THAT(outputs, IsOk());
    ran.push_back({*std::move(outputs), (*core)->algorithms()});
  }
  return ran;
}

TEST(AlgorithmsTest, ProductsAreForFewPixelsOrOutputs) {
  const std::vector<Ran> fast = RunConstantFilters(Algorithms::kFast);
  const std::vector<Ran> direct = RunConstantFilters(Algorithms::kDirect);
  for (size_t i = 0; i < fast.size(); ++i) {
    const bool few = kVectorBytes == 64 && i != 1;
    EXPECT_EQ(absl::c_count(fast[i].algorithms, "product"), few ? 1 : 0);
    EXPECT_EQ(absl::c_count(fast[i].algorithms, "product of taps"), kVectorBytes > 16 ? 1 : 0);
    EXPECT_THAT(direct[i].algorithms, Not(Contains(::testing::HasSubstr("product"))));
    const std::vector<float> a = Values<float>(fast[i].outputs[0]);
    const std::vector<float> b = Values<float>(direct[i].outputs[0]);
    ASSERT_EQ(a.size(), b.size());
    for (size_t at = 0; at < a.size(); ++at) ASSERT_NEAR(a[at], b[at], 2e-2) << i << ", " << at;
  }
}

TEST(AlgorithmsTest, AreKnownByName) {
  const absl::StatusOr<Algorithms> direct = AlgorithmsFromName("direct");
  ASSERT_THAT(direct, IsOk());
  EXPECT_EQ(*direct, Algorithms::kDirect);
  EXPECT_THAT(AlgorithmsFromName("best"), FailsWith(absl::StatusCode::kInvalidArgument, "best"));
}

}  // namespace
}  // namespace interp::testing
