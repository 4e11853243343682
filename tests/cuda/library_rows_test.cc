// Rows over cuBLASLt and cuDNN against the host's, in programs: what the golden cases leave out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/cuda/both_places.h"
#include "tests/cuda/one_op_program.h"
#include "tests/cuda/row_run.h"
#include "tests/testing/golden.h"

namespace interp::cuda_test {
namespace {

class CudaLibraryRows : public KernelTest {
 protected:
  // The GPU gives what the host gives, and computes the op itself or leaves it to the host.
  static void ExpectAgreement(const OneOpProgram& op, bool on_gpu, double tolerance = 1e-5) {
    const absl::StatusOr<OneOpResult> want = RunOn({PlaceKind::kCpu, 0}, op);
    const absl::StatusOr<OneOpResult> got = RunOn({PlaceKind::kCuda, 0}, op);
    ASSERT_TRUE(want.ok()) << want.status();
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(got->on_gpu, on_gpu);
    for (size_t i = 0; i < want->outputs.size(); ++i) {
      EXPECT_EQ(testing::Difference(got->outputs[i], want->outputs[i], tolerance, tolerance), "")
          << op.outputs[i];
    }
  }
};

struct MatmulCase {
  std::vector<int64_t> x, y, out;
};
const std::vector<MatmulCase>& MatmulCases() {
  static const auto& cases = *new std::vector<MatmulCase>{
      {{3, 4}, {4, 5}, {3, 5}},
      {{4}, {4}, {}},
      {{2, 3, 4}, {4}, {2, 3}},
      {{2, 3, 4}, {4, 5}, {2, 3, 5}},
      {{2, 1, 3, 4}, {1, 3, 4, 5}, {2, 3, 3, 5}},  // a loop and a batch
      {{2, 1, 2, 3, 4}, {1, 3, 1, 4, 5}, {2, 3, 2, 3, 5}},
      {{3, 4}, {2, 2, 4, 5}, {2, 2, 3, 5}},
      {{2, 0, 4}, {2, 4, 5}, {2, 0, 5}},
      {{2, 3, 0}, {2, 0, 5}, {2, 3, 5}},  // no terms
      {{0, 3, 4}, {1, 4, 5}, {0, 3, 5}},
  };
  return cases;
}

TEST_F(CudaLibraryRows, BroadcastBatchesAsTheHostDoes) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}) {
    for (const auto& [x, y, out] : MatmulCases()) {
      SCOPED_TRACE(absl::StrCat(Name(dtype), " ", ToString(Shape(x)), " ", ToString(Shape(y))));
      const double tolerance = SizeOf(dtype) == 2 ? 1e-2 : 1e-5;
      ExpectAgreement({"matmul_v2",
                       {{"X", SomeNumbers(dtype, x, 1)}, {"Y", SomeNumbers(dtype, y, 2)}},
                       {"Out"}},
                      /*on_gpu=*/true, tolerance);
      ExpectAgreement({"matmul_v2_grad",
                       {{"X", SomeNumbers(dtype, x, 1)},
                        {"Y", SomeNumbers(dtype, y, 2)},
                        {"Out@GRAD", SomeNumbers(dtype, out, 3)}},
                       {"X@GRAD", "Y@GRAD"}},
                      /*on_gpu=*/true, tolerance);
    }
  }
}

constexpr const char* kActivations[] = {
    "",        "relu",  "relu6", "leaky_relu", "hard_sigmoid", "hard_swish",
    "sigmoid", "swish", "tanh",  "mish",       "gelu"};

TEST_F(CudaLibraryRows, ApplyEveryActivationThatIsFused) {
  for (const std::string activation : kActivations) {
    SCOPED_TRACE(activation);
    const DType dtype = DType::kFloat32;
    ExpectAgreement({"fc",
                     {{"Input", SomeNumbers(dtype, {2, 3, 4}, 1)},
                      {"W", SomeNumbers(dtype, {12, 5}, 2)},
                      {"Bias", SomeNumbers(dtype, {5}, 3)}},
                     {"Out"},
                     {{"activation_type", activation}}},
                    /*on_gpu=*/true);
    ExpectAgreement({"fused_matmul",
                     {{"X", SomeNumbers(dtype, {2, 3, 4}, 1)},
                      {"Y", SomeNumbers(dtype, {2, 5, 4}, 2)},
                      {"Bias", SomeNumbers(dtype, {5}, 3)}},
                     {"Out"},
                     {{"trans_y", true}, {"matmul_alpha", 0.5F}, {"fuse_activation", activation}}},
                    /*on_gpu=*/true);
    ExpectAgreement({"fused_conv2d",
                     {{"Input", SomeNumbers(dtype, {2, 3, 5, 5}, 1)},
                      {"Filter", SomeNumbers(dtype, {4, 3, 3, 3}, 2)},
                      {"Bias", SomeNumbers(dtype, {4}, 3)},
                      {"ResidualData", SomeNumbers(dtype, {2, 4, 3, 3}, 4)}},
                     {"Output"},
                     {{"fuse_residual", true}, {"fuse_activation", activation}}},
                    /*on_gpu=*/true);
  }
}

// The host makes the filter, channels-last, as its convolution prefers that.
TEST_F(CudaLibraryRows, TakeFiltersOfTheHostInPlainLayout) {
  const DType dtype = DType::kFloat32;
  const Program program =
      testing::TestProgram()
          .Feed("x", {1, 3, 5, 5})
          .Feed("seed", {2, 2, 5, 5})
          .Feed("u", {3, 2, 3, 3})
          .AddOp("fused_conv2d", {{"Input", {"seed"}}, {"Filter", {"u"}}}, {{"Output", {"w"}}},
                 {{"fuse_activation", std::string("hard_swish")}, {"fuse_alpha", 0.25F}})
          .AddOp("conv2d", {{"Input", {"x"}}, {"Filter", {"w"}}}, {{"Output", {"y"}}})
          .Fetch("y")
          .Build();
  const ProgramRun run{.program = program,
                       .parameters = {},
                       .feeds = {{"x", SomeNumbers(dtype, {1, 3, 5, 5}, 1)},
                                 {"seed", SomeNumbers(dtype, {2, 2, 5, 5}, 2)},
                                 {"u", SomeNumbers(dtype, {3, 2, 3, 3}, 3)}},
                       .fetches = {"y"}};
  const auto differences = DifferencesOnGpu(run, 1e-5);
  ASSERT_TRUE(differences.ok()) << differences.status();
  EXPECT_THAT(*differences, ::testing::IsEmpty());
}

TEST_F(CudaLibraryRows, LeaveToTheHostWhatTheyDoNotCompute) {
  const DType dtype = DType::kFloat32;
  ExpectAgreement({"fc",
                   {{"Input", SomeNumbers(dtype, {3, 4}, 1)}, {"W", SomeNumbers(dtype, {4, 5}, 2)}},
                   {"Out"},
                   {{"activation_type", std::string("hard_swish")}, {"fuse_alpha", 0.25F}}},
                  /*on_gpu=*/false);
  ExpectAgreement({"conv2d",
                   {{"Input", SomeNumbers(dtype, {2, 5, 5, 3}, 1)},
                    {"Filter", SomeNumbers(dtype, {4, 3, 3, 3}, 2)}},
                   {"Output"},
                   {{"data_format", std::string("NHWC")}}},
                  /*on_gpu=*/false);
  ExpectAgreement({"conv2d",
                   {{"Input", SomeNumbers(DType::kFloat64, {2, 3, 5, 5}, 1)},
                    {"Filter", SomeNumbers(DType::kFloat64, {4, 3, 3, 3}, 2)}},
                   {"Output"}},
                  /*on_gpu=*/false);
  ExpectAgreement(
      {"conv2d_transpose",
       {{"Input", SomeNumbers(dtype, {1, 3, 4, 4}, 1)},
        {"Filter", SomeNumbers(dtype, {3, 2, 3, 3}, 2)}},
       {"Output"},
       {{"dilations", std::vector<int32_t>{2, 2}}, {"output_padding", std::vector<int32_t>{1, 1}}}},
      /*on_gpu=*/false);
}

TEST_F(CudaLibraryRows, TransposeConvolutionsWithABiasAndARaggedSize) {
  const DType dtype = DType::kFloat32;
  ExpectAgreement({"conv2d_transpose",
                   {{"Input", SomeNumbers(dtype, {2, 4, 3, 4}, 1)},
                    {"Filter", SomeNumbers(dtype, {4, 3, 3, 3}, 2)},
                    {"Bias", SomeNumbers(dtype, {6}, 3)}},
                   {"Output"},
                   {{"strides", std::vector<int32_t>{2, 3}},
                    {"paddings", std::vector<int32_t>{1, 0, 0, 1}},
                    {"output_padding", std::vector<int32_t>{1, 2}},
                    {"groups", int32_t{2}}}},
                  /*on_gpu=*/true);
}

TEST_F(CudaLibraryRows, TakeNoImagesAndNoRows) {
  const DType dtype = DType::kFloat32;
  ExpectAgreement({"conv2d",
                   {{"Input", SomeNumbers(dtype, {0, 3, 5, 5}, 1)},
                    {"Filter", SomeNumbers(dtype, {4, 3, 3, 3}, 2)},
                    {"Bias", SomeNumbers(dtype, {4}, 3)}},
                   {"Output"}},
                  /*on_gpu=*/true);
  ExpectAgreement({"conv2d_grad",
                   {{"Input", SomeNumbers(dtype, {0, 3, 5, 5}, 1)},
                    {"Filter", SomeNumbers(dtype, {4, 3, 3, 3}, 2)},
                    {"Bias", SomeNumbers(dtype, {4}, 3)},
                    {"Output@GRAD", SomeNumbers(dtype, {0, 4, 3, 3}, 4)}},
                   {"Input@GRAD", "Filter@GRAD", "Bias@GRAD"}},
                  /*on_gpu=*/true);
  ExpectAgreement({"addmm",
                   {{"Input", SomeNumbers(dtype, {5}, 1)},
                    {"X", SomeNumbers(dtype, {0, 4}, 2)},
                    {"Y", SomeNumbers(dtype, {4, 5}, 3)}},
                   {"Out"}},
                  /*on_gpu=*/true);
  ExpectAgreement({"addmm",
                   {{"Input", SomeNumbers(dtype, {3, 1}, 1)},
                    {"X", SomeNumbers(dtype, {3, 0}, 2)},
                    {"Y", SomeNumbers(dtype, {0, 5}, 3)}},
                   {"Out"},
                   {{"Beta", 0.5F}}},
                  /*on_gpu=*/true);
}

}  // namespace
}  // namespace interp::cuda_test
