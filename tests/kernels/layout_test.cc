// Kernels that take channels-last images give what they give for plain ones, and no result depends
// on the number of threads: the golden cases of tests/goldens again, kernel by kernel.
#include <complex>
#include <string>
#include <vector>

#include "core/program_load.h"
#include "core/program_parse.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "passes/import/fused_products.h"
#include "passes/import/variable_attributes.h"
#include "tests/kernels/op_runs.h"
#include "tests/testing/golden_run.h"
#include "tests/testing/kernel_runner.h"

namespace interp {
namespace {

using testing::GoldenCase;
using ::testing::IsEmpty;
using testing::KernelRunOptions;

const Op* OnlyOp(const Program& program) {
  const Op* only = nullptr;
  for (const Op& op : program.blocks[0].ops) {
    if (op.type == "feed" || op.type == "fetch") continue;
    if (only != nullptr) return nullptr;
    only = &op;
  }
  return only;
}

// Empty when the kernel agrees with the golden results, else what is wrong. Cases that do not run
// under these options are left out and do not count in `cases`.
std::vector<std::string> Differences(const std::string& folder, const KernelRunOptions& options,
                                     int& cases) {
  const absl::StatusOr<GoldenCase> golden = testing::ReadGoldenCase(folder);
  if (!golden.ok()) return {golden.status().ToString()};
  absl::StatusOr<Program> program = LoadProgram(golden->program);
  if (program.ok()) program = SplitFusedProducts(*std::move(program));
  if (program.ok()) program = BindVariableAttributes(*std::move(program), {OpRegistry::Global()});
  if (!program.ok()) return {program.status().ToString()};
  const Op* op = OnlyOp(*program);
  if (op == nullptr || !testing::IsComparable(*golden)) return {};
  const auto results = testing::RunKernel(*program, *op, golden->feeds, options);
  if (absl::IsUnimplemented(results.status())) return {};
  if (!results.ok()) return {absl::StrCat(folder, ": ", results.status().ToString())};
  ++cases;
  std::vector<std::string> errors;
  for (const auto& [name, want] : golden->fetches) {
    for (const auto& [got_name, got] : *results) {
      if (got_name != name) continue;
      const std::string text = testing::Difference(got, want, golden->rtol, golden->atol);
      if (!text.empty()) errors.push_back(absl::StrCat(folder, ": '", name, "' ", text));
    }
  }
  return errors;
}

int ExpectAgreement(const KernelRunOptions& options) {
  int cases = 0;
  for (const std::string& set : testing::GoldenSets()) {
    for (const std::string& folder : testing::GoldenCaseFolders(set)) {
      EXPECT_THAT(Differences(folder, options, cases), IsEmpty());
    }
  }
  return cases;
}

TEST(LayoutTest, ChannelsLastImagesGiveTheSameResults) {
  EXPECT_GT(ExpectAgreement({.layout = Layout::kChannelsLast}), 0);
}

TEST(LayoutTest, ThreeThreadsGiveTheSameResults) {
  EXPECT_GT(ExpectAgreement({.num_threads = 3}), 0);
}

TEST(LayoutTest, WhatIsNotReadMayLieAnywhere) {
  EXPECT_GT(ExpectAgreement({.unread_elsewhere = true}), 0);
}

// Operands as images, one of them broadcast.
TEST(LayoutTest, GradientsOfImagesTakeOnlyTheShapeOfWhatTheyDoNotRead) {
  const absl::StatusOr<Program> program = ParseProgram(R"(block 0
  var x float32[2,3,2,2]
  var y float32[2,3,2,2]
  var few float32[3,1,1]
  var w float32[1]
  var g float32[2,3,2,2]
  var c complex64[2,3,2,2]
  var dx float32[2,3,2,2]
  var dy float32[2,3,2,2]
  var df float32[3,1,1]
  lerp_grad(X=x, Y=y, Weight=w, Out@GRAD=g) -> (X@GRAD=dx, Y@GRAD=dy)
  lerp_grad(X=few, Y=y, Weight=w, Out@GRAD=g) -> (X@GRAD=df, Y@GRAD=dy)
  complex_grad(X=x, Y=few, Out@GRAD=c) -> (X@GRAD=dx, Y@GRAD=df)
)");
  ASSERT_TRUE(program.ok()) << program.status();
  const Tensor image = testing::Numbers({2, 3, 2, 2}, 1);
  const Tensor gradient = testing::Numbers({2, 3, 2, 2}, 2);
  std::vector<std::complex<float>> complex;
  for (int64_t i = 0; i < image.numel(); ++i) {
    complex.emplace_back(image.data<float>()[i], gradient.data<float>()[i]);
  }
  const std::vector<NamedTensor> feeds = {
      {"x", image},
      {"y", image},
      {"few", testing::Numbers({3, 1, 1}, 3)},
      {"w", testing::Numbers({1}, 4)},
      {"g", gradient},
      {"c", Tensor::Of<std::complex<float>>(image.shape, complex)}};
  for (const Op& op : program->blocks[0].ops) {
    const auto want = testing::RunKernel(*program, op, feeds, {});
    const auto got = testing::RunKernel(*program, op, feeds, {.unread_elsewhere = true});
    ASSERT_TRUE(want.ok() && got.ok()) << want.status() << got.status();
    for (size_t i = 0; i < want->size(); ++i) {
      EXPECT_EQ(testing::Difference((*got)[i].second, (*want)[i].second, 0, 0), "")
          << op.type << " " << (*want)[i].first;
    }
  }
}

}  // namespace
}  // namespace interp
