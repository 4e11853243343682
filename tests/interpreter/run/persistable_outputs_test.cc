// What instructions leave in the root scope, which outlives their core.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/program_parse.h"
#include "interpreter/interpreter_core.h"
#include "tests/testing/matchers.h"
#include "tests/testing/probe_ops.h"

namespace interp::testing::persistable_outputs_test {
namespace {

using ::testing::ElementsAre;

// Runs the program once in a core that is gone afterwards; returns its variable "kept".
Tensor KeptBy(absl::string_view text, const Tensor& x) {
  const auto scope = std::make_shared<Scope>();
  const absl::StatusOr<Program> program = ParseProgram(text);
  EXPECT_THAT(program, IsOk());
  if (!program.ok()) return {};
  CoreOptions options;
  options.ops = &ProbeOps();
  auto core = InterpreterCore::Create(*program, {"x"}, {}, scope, options);
  EXPECT_THAT(core, IsOk());
  if (!core.ok()) return {};
  EXPECT_THAT((*core)->Run({x}), IsOk());
  core->reset();
  return scope->FindOrCreate("kept")->tensor;
}

TEST(PersistableOutputsTest, MemoryThatAKernelAllocatesOutlivesTheCore) {
  const Tensor kept = KeptBy(R"(block 0
  var x int64[2]
  var kept int64[-1] persistable
  dynamic(X=x) -> (Out=kept) {tag=1}
)",
                             VectorOf<int64_t>({1, 2}));
  ASSERT_TRUE(kept.has_memory());
  EXPECT_EQ(kept.buffer()->owner, &SystemAllocator());
}

TEST(PersistableOutputsTest, ElementsOfArraysAreCopied) {
  const std::vector<int64_t> values = {1, 2};
  Tensor x = Tensor::Borrow(DType::kInt64, {2}, values.data());
  x.lod = {{0, 1, 2}};
  const Tensor kept = KeptBy(R"(block 0
  var x int64[2]
  var kept int64[-1] persistable
  var array lod_tensor_array
  push(X=x) -> (ArrayOut=array) {tag=1}
  last(Array=array) -> (Out=kept) {tag=2}
)",
                             x);
  ASSERT_TRUE(kept.has_memory());
  EXPECT_EQ(kept.buffer()->owner, &SystemAllocator());
  EXPECT_NE(kept.raw_data(), x.raw_data());
  EXPECT_THAT(Values<int64_t>(kept), ElementsAre(1, 2));
  EXPECT_EQ(kept.lod, x.lod);
}

// There is memory for what is kept, but not for the other half.
TEST(PersistableOutputsTest, ValuesStayWhereThereIsNoMemoryForAllOutputs) {
  const auto scope = std::make_shared<Scope>();
  bool fails = false;
  CoreOptions options;
  options.ops = &ProbeOps();
  options.fail_allocation = [&fails](size_t /*bytes*/) { return fails; };
  auto core = InterpreterCore::Create(*ParseProgram(R"(block 0
  var x int64[-1]
  var kept int64[-1] persistable
  split2(X=x) -> (A=kept, B=b)
)"),
                                      {"x"}, {"b"}, scope, options);
  ASSERT_THAT(core, IsOk());
  ASSERT_THAT((*core)->Run({VectorOf<int64_t>({1, 2, 3, 4})}), IsOk());
  const Tensor& kept = scope->FindOrCreate("kept")->tensor;
  const std::vector<int64_t> values = Values<int64_t>(kept);
  const Shape shape = kept.shape;
  fails = true;
  for (const int64_t count : {8, 400}) {
    EXPECT_THAT((*core)->Run({VectorOf<int64_t>(std::vector<int64_t>(count))}),
                FailsWith(absl::StatusCode::kResourceExhausted, "split2"));
    ASSERT_TRUE(kept.has_memory());
    EXPECT_EQ(kept.shape, shape);
    EXPECT_EQ(Values<int64_t>(kept), values);
  }
  fails = false;
  ASSERT_THAT((*core)->Run({VectorOf<int64_t>(std::vector<int64_t>(8))}), IsOk());
  EXPECT_NE(kept.shape, shape);
}

// No pass says so, but plans can be made by hand.
TEST(PersistableOutputsTest, MemoryOfTheCallerIsNotTaken) {
  CompiledProgram compiled = *Compile(*ParseProgram(R"(block 0
  var x int64[2]
  var kept int64[2] persistable
  view(X=x) -> (Out=kept) {shape=[2]}
)"),
                                      {"x"}, {"kept"}, {}, {}, ProbeOps());
  for (Instruction& instruction : compiled.plans[0].instructions) {
    if (instruction.op_type == "view") instruction.share = {{0, 0}};
  }
  const auto scope = std::make_shared<Scope>();
  auto core = InterpreterCore::Create(std::move(compiled), scope, {});
  ASSERT_THAT(core, IsOk());
  const std::vector<int64_t> values = {1, 2};
  ASSERT_THAT((*core)->Run({Tensor::Borrow(DType::kInt64, {2}, values.data())}), IsOk());
  const Tensor& kept = scope->FindOrCreate("kept")->tensor;
  ASSERT_TRUE(kept.has_memory());
  EXPECT_NE(kept.raw_data(), values.data());
  EXPECT_EQ(kept.buffer()->owner, &SystemAllocator());
  EXPECT_THAT(Values<int64_t>(kept), ElementsAre(1, 2));
}

}  // namespace
}  // namespace interp::testing::persistable_outputs_test
