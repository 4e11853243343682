#include "interpreter/train/evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "tests/testing/matchers.h"
#include "tests/testing/probe_ops.h"
#include "tests/testing/test_program.h"

namespace interp::testing::evaluation_test {
namespace {

// Out has as many elements as the first of X says, each the second of X.
absl::Status InferSpread(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const auto values, InferContext::Integers(ctx.input(0)));
  ctx.SetShape(0, {values[0]});
  return absl::OkStatus();
}

absl::Status Spread(KernelContext& ctx) {
  Tensor& out = ctx.output(0);
  std::fill_n(out.mutable_data<int64_t>(), out.numel(), ctx.input(0).data<int64_t>()[1]);
  return absl::OkStatus();
}

const OpRegistry& Ops() {
  static const OpRegistry& ops = *new OpRegistry([] {
    OpRegistry made;
    for (const absl::string_view type : {"feed", "fetch"}) made.Add(*ProbeOps().Find(type));
    OpDef spread = {.type = "spread",
                    .inputs = {{"X", kValueInInfer}},
                    .outputs = {{"Out"}},
                    .infer = InferSpread};
    spread.kernels = {{DType::kInt64, Spread}};
    made.Add(spread);
    return made;
  }());
  return ops;
}

// The mean over batches of one row each.
Tensor MeanOver(const std::vector<int64_t>& rows) {
  CoreOptions options;
  options.ops = &Ops();
  const Program program =
      TestProgram(DType::kInt64).Feed("x", {-1, 2}).Call("spread", {"x"}, "y").Fetch("y").Build();
  const auto core = InterpreterCore::Create(program, {}, {}, nullptr, options);
  EXPECT_THAT(core, IsOk());
  const auto num_rows = static_cast<int64_t>(rows.size() / 2);
  auto data = FitDataset({{"x", Tensor::Of<int64_t>({num_rows, 2}, rows)}}, (*core)->plan().feeds);
  EXPECT_THAT(data, IsOk());
  const auto source = SourceOf(std::make_shared<const Dataset>(*std::move(data)));
  const auto result = Evaluate(**core, source, /*batch_size=*/1);
  EXPECT_THAT(result, IsOk());
  EXPECT_EQ(result->means.size(), 1);
  return result->means[0];
}

TEST(EvaluateTest, ElementsOfOneShapeHaveAMeanEach) {
  const Tensor mean = MeanOver({2, 4, 2, 8});
  EXPECT_EQ(mean.shape, Shape({2}));
  EXPECT_EQ(mean.data<double>()[0], 6);
  EXPECT_EQ(mean.data<double>()[1], 6);
}

TEST(EvaluateTest, AllElementsOfSeveralShapesHaveOneMean) {
  const Tensor mean = MeanOver({3, 4, 1, 8});
  EXPECT_EQ(mean.shape, Shape());
  EXPECT_EQ(mean.data<double>()[0], 5);
}

TEST(EvaluateTest, ABatchWithoutElementsCountsForNothing) {
  EXPECT_EQ(MeanOver({0, 9, 1, 8, 2, 5}).data<double>()[0], 6);
  EXPECT_EQ(MeanOver({0, 9, 0, 8}).numel(), 0);
}

}  // namespace
}  // namespace interp::testing::evaluation_test
