// move_channels_last and move_channels_first turn images as transposes do, whatever their layout,
// and programs that turn images into rows and back give the same bits with them.
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/program_parse.h"
#include "interpreter/interpreter_core.h"
#include "tests/kernels/op_runs.h"
#include "tests/testing/matchers.h"

namespace interp::testing::move_channels_test {
namespace {

OpRun RunOf(const std::string& type, const Tensor& x, const std::string& attrs = "") {
  return {type, {{"X", x}}, {"Out"}, attrs};
}

TEST(MoveChannelsTest, TransposesPlainImages) {
  for (const Shape& shape : {Shape{2, 3, 4, 5}, Shape{1, 7, 2, 3, 4}, Shape{0, 3, 2, 2},
                             Shape{2, 1, 1, 6}, Shape{3, 0, 2, 2}}) {
    const bool flat = shape.rank() == 4;
    const Tensor x = Numbers(shape, 1);
    const Tensor last = OutputsOf(RunOf("move_channels_last", x))[0];
    const Tensor expected =
        OutputsOf(RunOf("transpose2", x, flat ? "axis=[0,2,3,1]" : "axis=[0,2,3,4,1]"))[0];
    EXPECT_EQ(last.shape, expected.shape);
    EXPECT_EQ(Values<float>(last), Values<float>(expected));
    const Tensor back = OutputsOf(RunOf("move_channels_first", last))[0];
    EXPECT_EQ(back.shape, shape);
    EXPECT_EQ(Values<float>(back), Values<float>(x));
  }
}

TEST(MoveChannelsTest, RefusesOtherRanks) {
  for (const char* type : {"move_channels_last", "move_channels_first"}) {
    EXPECT_THAT(RunOp(RunOf(type, Numbers({2, 3, 4}, 1))),
                FailsWith(absl::StatusCode::kInvalidArgument,
                          "'X' is float32[2,3,4], expected rank 4 or 5"));
  }
}

// Convolutions on both sides of a sum over rows, with a skip connection of rows.
std::string AttentionText(bool reshapes) {
  const std::string flatten =
      reshapes ? "reshape2(X=a) -> (Out=b, XShape=s1) {shape=[0,16,-1]}"
               : "flatten_contiguous_range(X=a) -> (Out=b, XShape=s1) {start_axis=2, stop_axis=3}";
  return absl::StrCat(R"(block 0
  var x float32[-1,3,8,6]
  var w float32[16,3,3,3] param
  var v float32[16,16,1,1] param
  var m float32[16,16] param
  var a float32[-1,16,8,6]
  var b float32[-1,16,48]
  var c float32[-1,48,16]
  var d float32[-1,48,16]
  var e float32[-1,48,16]
  var f float32[-1,16,48]
  var g float32[-1,16,8,6]
  var h float32[-1,16,8,6]
  var y float32[-1,8,6,16]
  conv2d(Input=x, Filter=w) -> (Output=a) {paddings=[1,1]}
  )",
                      flatten, R"(
  transpose2(X=b) -> (Out=c, XShape=s2) {axis=[0,2,1]}
  matmul_v2(X=c, Y=m) -> (Out=d)
  elementwise_add(X=d, Y=c) -> (Out=e)
  transpose2(X=e) -> (Out=f, XShape=s3) {axis=[0,2,1]}
  reshape2(X=f) -> (Out=g, XShape=s4) {shape=[-1,16,8,6]}
  conv2d(Input=g, Filter=v) -> (Output=h)
  transpose2(X=h) -> (Out=y, XShape=s5) {axis=[0,2,3,1]}
)");
}

struct Ran {
  std::vector<float> values;
  std::vector<std::string> ops;
};

Ran RunAttention(const std::string& text, int64_t batch, const CoreOptions& options) {
  auto scope = std::make_shared<Scope>();
  scope->FindOrCreate("w")->tensor = Numbers({16, 3, 3, 3}, 2);
  scope->FindOrCreate("v")->tensor = Numbers({16, 16, 1, 1}, 3);
  scope->FindOrCreate("m")->tensor = Numbers({16, 16}, 4);
  Ran ran;
  const absl::StatusOr<Program> program = ParseProgram(text);
  EXPECT_THAT(program, IsOk());
  const auto core = InterpreterCore::Create(*program, {"x"}, {"e", "y"}, scope, options);
  EXPECT_THAT(core, IsOk());
  if (!core.ok()) return ran;
  for (const Instruction& instruction : (*core)->plan().instructions) {
    ran.ops.emplace_back(instruction.op_type);
  }
  for (int run = 0; run < 3; ++run) {
    const auto results = (*core)->Run({Numbers({batch, 3, 8, 6}, 1)});
    EXPECT_THAT(results, IsOk());
    if (!results.ok()) return ran;
    ran.values = Values<float>((*results)[0]);
    const std::vector<float> more = Values<float>((*results)[1]);
    ran.values.insert(ran.values.end(), more.begin(), more.end());
  }
  return ran;
}

int64_t CountOf(const Ran& ran, absl::string_view type) {
  return std::count(ran.ops.begin(), ran.ops.end(), type);
}

TEST(MoveChannelsTest, ProgramsGiveTheSameBits) {
  for (const bool reshapes : {false, true}) {
    for (const int64_t batch : {1, 3, 0}) {
      SCOPED_TRACE(absl::StrCat(reshapes, " ", batch));
      CoreOptions plain;
      plain.passes.disable = {"move_channels"};
      const Ran expected = RunAttention(AttentionText(reshapes), batch, plain);
      EXPECT_EQ(CountOf(expected, "transpose2"), 3);
      for (const SchedulerKind kind : {SchedulerKind::kTrace, SchedulerKind::kAsync}) {
        CoreOptions options;
        options.scheduler = kind;
        options.num_workers = kind == SchedulerKind::kAsync ? 3 : 1;
        const Ran ran = RunAttention(AttentionText(reshapes), batch, options);
        EXPECT_EQ(ran.values, expected.values);
        EXPECT_EQ(CountOf(ran, "transpose2"), 0);
        EXPECT_EQ(CountOf(ran, "move_channels_last"), 2);
        EXPECT_EQ(CountOf(ran, "move_channels_first"), 1);
        EXPECT_EQ(CountOf(ran, "transfer_layout"), 1);  // of the fed image
      }
    }
  }
}

TEST(MoveChannelsTest, DevicesGiveTheSameBits) {
  CoreOptions options;
  options.plan.place = Place{PlaceKind::kSim, 0};
  CoreOptions plain = options;
  plain.passes.disable = {"move_channels"};
  const Ran ran = RunAttention(AttentionText(false), 2, options);
  EXPECT_EQ(CountOf(ran, "move_channels_first"), 1);
  EXPECT_EQ(ran.values, RunAttention(AttentionText(false), 2, plain).values);
}

// Without channels-last images they move elements, and nothing is shared.
TEST(MoveChannelsTest, PlainPlansGiveTheSameBits) {
  CoreOptions options;
  options.plan.optimize_layout = false;
  CoreOptions plain = options;
  plain.passes.disable = {"move_channels"};
  const Ran ran = RunAttention(AttentionText(false), 2, options);
  EXPECT_EQ(CountOf(ran, "transfer_layout"), 0);
  EXPECT_EQ(ran.values, RunAttention(AttentionText(false), 2, plain).values);
}

}  // namespace
}  // namespace interp::testing::move_channels_test
