// OpDef::flops and what an instruction reads and writes.
#include <gtest/gtest.h>

#include "interpreter/inspect/instruction_cost.h"
#include "tests/testing/matchers.h"
#include "tests/testing/test_program.h"

namespace interp::testing {
namespace {

using Dims = TestProgram::Dims;

Tensor Zeros(const Dims& dims) {
  const Shape shape(dims);
  return Tensor::Of<float>(shape, std::vector<float>(static_cast<size_t>(shape.numel())));
}

// The cost of the one op of type `type` in `builder`'s program, run on zeros.
InstructionCost CostOf(const std::string& type, const TestProgram& builder,
                       const std::vector<Dims>& feeds) {
  CoreOptions options{.scheduler = SchedulerKind::kTrace, .num_threads = 1};
  options.plan.optimize_layout = false;
  const auto core = InterpreterCore::Create(builder.Build(), {}, {}, nullptr, options);
  EXPECT_THAT(core, IsOk());
  if (!core.ok()) return {};
  std::vector<Tensor> tensors;
  for (const Dims& dims : feeds) tensors.push_back(Zeros(dims));
  EXPECT_THAT((*core)->Run(tensors), IsOk());
  const std::vector<InstructionCost> costs = CostsOfLastRun(**core);
  for (size_t i = 0; i < costs.size(); ++i) {
    if ((*core)->plan().instructions[i].op_type == type) return costs[i];
  }
  ADD_FAILURE() << "no instruction " << type;
  return {};
}

TestProgram Fed(const std::vector<std::pair<std::string, Dims>>& feeds) {
  TestProgram builder;
  for (const auto& [name, dims] : feeds) builder.Feed(name, dims);
  return builder;
}

TEST(FlopsTest, ConvolutionsCountTwoPerFilterElementAndOutput) {
  const Dims x = {2, 4, 8, 8};
  const Dims w = {6, 2, 3, 3};
  const InstructionCost cost = CostOf("conv2d",
                                      Fed({{"x", x}, {"w", w}})
                                          .AddOp("conv2d", {{"Input", {"x"}}, {"Filter", {"w"}}},
                                                 {{"Output", {"y"}}}, {{"groups", 2}})
                                          .Fetch("y"),
                                      {x, w});
  const int64_t outputs = 2 * 6 * 6 * 6;
  EXPECT_EQ(cost.flops, 2 * outputs * 2 * 3 * 3);
  EXPECT_EQ(cost.bytes, 4 * (2 * 4 * 8 * 8 + 6 * 2 * 3 * 3 + outputs));
}

TEST(FlopsTest, TransposedConvolutionsCountTheirInput) {
  const Dims x = {1, 4, 5, 5};
  const Dims w = {4, 3, 2, 2};
  const InstructionCost cost =
      CostOf("conv2d_transpose",
             Fed({{"x", x}, {"w", w}})
                 .AddOp("conv2d_transpose", {{"Input", {"x"}}, {"Filter", {"w"}}},
                        {{"Output", {"y"}}}, {{"strides", std::vector<int64_t>{2, 2}}})
                 .Fetch("y"),
             {x, w});
  EXPECT_EQ(cost.flops, 2 * (4 * 5 * 5) * (3 * 2 * 2));
}

TEST(FlopsTest, ProductsCountTwoPerInnerElement) {
  const Dims x = {7, 3, 5};
  const Dims y = {7, 5, 4};
  const std::vector<std::pair<std::string, Dims>> feeds = {{"x", x}, {"y", y}};
  for (const std::string type : {"matmul_v2", "bmm"}) {
    const InstructionCost cost = CostOf(
        type, Fed(feeds).AddOp(type, {{"X", {"x"}}, {"Y", {"y"}}}, {{"Out", {"z"}}}).Fetch("z"),
        {x, y});
    EXPECT_EQ(cost.flops, 2 * 7 * 3 * 4 * 5) << type;
    EXPECT_EQ(cost.bytes, 4 * 7 * (15 + 20 + 12)) << type;
  }
}

TEST(FlopsTest, ArithmeticCountsOnePerElement) {
  const Dims x = {3, 4};
  const Dims y = {4};
  const TestProgram builder =
      Fed({{"x", x}, {"y", y}})
          .AddOp("elementwise_add", {{"X", {"x"}}, {"Y", {"y"}}}, {{"Out", {"z"}}})
          .AddOp("relu", {{"X", {"z"}}}, {{"Out", {"r"}}})
          .AddOp("reshape2", {{"X", {"r"}}}, {{"Out", {"s"}}},
                 {{"shape", std::vector<int64_t>{12}}})
          .Fetch("s");
  EXPECT_EQ(CostOf("elementwise_add", builder, {x, y}).flops, 12);
  EXPECT_EQ(CostOf("elementwise_add", builder, {x, y}).bytes, 4 * (12 + 4 + 12));
  EXPECT_EQ(CostOf("relu", builder, {x, y}).flops, 0);
  EXPECT_EQ(CostOf("relu", builder, {x, y}).bytes, 4 * 24);
  EXPECT_EQ(CostOf("reshape2", builder, {x, y}).bytes, 0);
  EXPECT_EQ(CostOf("feed", builder, {x, y}).bytes, 0);
}

}  // namespace
}  // namespace interp::testing
