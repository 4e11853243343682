// Broadcasting against a definition by index, for many pairs of shapes, layouts and thread counts.
#include "kernels/util/broadcast.h"

#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace interp::testing::broadcast_test {
namespace {

using ::testing::HasSubstr;

// Where the element with this logical index lies in memory.
int64_t OffsetOf(const Tensor& tensor, const std::vector<int64_t>& index) {
  const Strides strides = StridesOf(tensor);
  int64_t offset = 0;
  for (int i = 0; i < tensor.shape.rank(); ++i) offset += index[i] * strides[i];
  return offset;
}

// Calls visit(index) for every logical index of the shape.
template <typename Visit>
void ForEachIndex(const Shape& shape, const Visit& visit) {
  std::vector<int64_t> index(shape.rank(), 0);
  for (int64_t n = 0; n < shape.numel(); ++n) {
    visit(index);
    for (int d = shape.rank() - 1; d >= 0 && ++index[d] == shape[d]; --d) index[d] = 0;
  }
}

Tensor Counting(const Shape& shape, Layout layout, float first) {
  std::vector<float> values(shape.numel());
  for (size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<float>(i);
  Tensor tensor = Tensor::Of<float>(shape, values);
  tensor.layout = layout;
  return tensor;
}

// The element of the operand that meets `index` of an output of rank `out_rank`.
float ElementAt(const Tensor& operand, const std::vector<int64_t>& index, int axis) {
  const int room = static_cast<int>(index.size()) - operand.shape.rank();
  const int first = room == 0 || axis == kTrailingAxis ? room : axis;
  std::vector<int64_t> own;
  for (int i = 0; i < operand.shape.rank(); ++i) {
    own.push_back(operand.shape[i] == 1 ? 0 : index[first + i]);
  }
  return operand.data<float>()[OffsetOf(operand, own)];
}

struct Case {
  Shape x, y;
  int axis = kTrailingAxis;
};

class BroadcastTest : public ::testing::TestWithParam<Case> {};

// One operand of rank 4 or 5 in channels-last layout brings the other and the output to it.
void ExpectDifferenceByIndex(const Case& c, Layout layout, int num_threads) {
  const auto layout_of = [&](const Shape& shape, const Shape& out) {
    return shape.rank() == out.rank() ? layout : Layout::kPlain;
  };
  const absl::StatusOr<Shape> shape = BroadcastShapes(c.x, c.y, c.axis);
  ASSERT_TRUE(shape.ok()) << shape.status();
  const Tensor x = Counting(c.x, layout_of(c.x, *shape), 0);
  const Tensor y = Counting(c.y, layout_of(c.y, *shape), 0.25f);
  Tensor out = Counting(*shape, layout, 0);
  RunBroadcast(PlanBroadcast(x, y, out, c.axis), num_threads, x.data<float>(), y.data<float>(),
               out.mutable_data<float>(), [](float a, float b) { return a - b; });
  int wrong = 0;
  ForEachIndex(*shape, [&](const std::vector<int64_t>& index) {
    const float want = ElementAt(x, index, c.axis) - ElementAt(y, index, c.axis);
    wrong += out.data<float>()[OffsetOf(out, index)] != want;
  });
  EXPECT_EQ(wrong, 0) << Name(layout) << ", " << num_threads << " threads";
}

TEST_P(BroadcastTest, AgreesWithItsDefinition) {
  const Case& c = GetParam();
  const int rank = std::max(c.x.rank(), c.y.rank());
  for (const int num_threads : {1, 3}) {
    ExpectDifferenceByIndex(c, Layout::kPlain, num_threads);
    ExpectDifferenceByIndex({c.y, c.x, c.axis}, Layout::kPlain, num_threads);
    if (rank != 4 && rank != 5) continue;
    ExpectDifferenceByIndex(c, Layout::kChannelsLast, num_threads);
    ExpectDifferenceByIndex({c.y, c.x, c.axis}, Layout::kChannelsLast, num_threads);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, BroadcastTest,
    ::testing::Values(Case{{}, {}}, Case{{3}, {}}, Case{{2, 3}, {3}}, Case{{2, 3}, {2}, 0},
                      Case{{2, 1, 4}, {1, 3, 4}}, Case{{2, 3, 4}, {1, 1, 1}}, Case{{0, 3}, {3}},
                      Case{{2, 0, 3}, {1, 1, 3}}, Case{{2, 3, 4, 5}, {2, 3, 4, 5}},
                      Case{{2, 3, 4, 5}, {3}, 1}, Case{{2, 3, 4, 5}, {2, 3, 1, 1}},
                      Case{{2, 3, 4, 5}, {1, 3, 1, 1}}, Case{{2, 3, 4, 5}, {2, 1, 4, 5}},
                      Case{{2, 3, 4, 5}, {4, 5}}, Case{{2, 3, 4, 5}, {3, 4, 5}},
                      Case{{2, 3, 4, 5}, {3, 4}, 1}, Case{{2, 3, 4, 5}, {3, 1, 1}, 1},
                      Case{{2, 3, 4, 5}, {5}}, Case{{2, 3, 1, 5}, {2, 1, 4, 1}},
                      Case{{2, 3, 2, 2, 2}, {3}, 1}, Case{{2, 3, 2, 2, 2}, {2, 3, 1, 1, 1}},
                      // Several tasks, tiles and a period that divides neither.
                      Case{{3, 7, 60, 61}, {7}, 1}, Case{{3, 7, 60, 61}, {3, 7, 1, 1}},
                      Case{{3, 300, 9, 9}, {300}, 1}, Case{{70'001}, {1}},
                      // Rows that are laid out several at a time.
                      Case{{61, 127, 1}, {11}}, Case{{61, 127, 1}, {127, 16}},
                      Case{{1, 61, 127, 1}, {1, 61, 1, 17}}, Case{{2000, 1, 5}, {1, 3, 1}},
                      Case{{3, 1, 200, 1, 7}, {1, 9, 1, 5, 1}}));

TEST(BroadcastShapesTest, NamesTheDimensionsThatDoNotFit) {
  EXPECT_THAT(BroadcastShapes({2, 3}, {4}, kTrailingAxis).status().message(),
              HasSubstr("'X' [2,3] and 'Y' [4] do not broadcast at axis -1: 3 meets 4"));
}

TEST(BroadcastShapesTest, RefusesAnAxisOutOfRange) {
  EXPECT_FALSE(BroadcastShapes({2, 3, 4}, {3, 4}, 2).ok());
  EXPECT_FALSE(BroadcastShapes({2, 3, 4}, {3, 4}, -2).ok());
}

TEST(BroadcastShapesTest, RefusesAResultThatIsTooLarge) {
  const int64_t large = int64_t{1} << 40;
  EXPECT_FALSE(BroadcastShapes({large, 1}, {1, large}, kTrailingAxis).ok());
}

// A [C,H,W] operand has as many elements as a channels-last [1,C,H,W] output, in another order.
TEST(InOutputOrderTest, TellsOperandsThatMayNotBeOverwritten) {
  const Tensor x = Counting({3, 2, 2}, Layout::kPlain, 0);
  const Tensor y = Counting({1, 3, 2, 2}, Layout::kChannelsLast, 0);
  const BroadcastPlan plan = PlanBroadcast(x, y, y, kTrailingAxis);
  EXPECT_FALSE(InOutputOrder(plan, &Loop::x_step));
  EXPECT_TRUE(InOutputOrder(plan, &Loop::y_step));
}

// Rows do not depend on the layout of the loops around them: the common cases stay fast.
TEST(PlanBroadcastTest, FindsTheFormsOfVisionModels) {
  const Tensor plain = Counting({2, 8, 4, 4}, Layout::kPlain, 0);
  const Tensor last = Counting({2, 8, 4, 4}, Layout::kChannelsLast, 0);
  const Tensor bias = Counting({8}, Layout::kPlain, 0);
  const Tensor gate = Counting({2, 8, 1, 1}, Layout::kChannelsLast, 0);
  const BroadcastPlan same = PlanBroadcast(last, last, last, kTrailingAxis);
  EXPECT_EQ(same.form, RowForm::kBoth);
  EXPECT_EQ(same.row.size, 256);
  const BroadcastPlan plain_bias = PlanBroadcast(plain, bias, plain, 1);
  EXPECT_EQ(plain_bias.form, RowForm::kYOnce);
  EXPECT_EQ(plain_bias.row.size, 16);
  const BroadcastPlan last_bias = PlanBroadcast(last, bias, last, 1);
  EXPECT_EQ(last_bias.form, RowForm::kYRepeats);
  EXPECT_EQ(last_bias.row.size, 256);
  const BroadcastPlan last_gate = PlanBroadcast(last, gate, last, kTrailingAxis);
  EXPECT_EQ(last_gate.form, RowForm::kYRepeats);
  EXPECT_EQ(last_gate.row.size, 128);
}

}  // namespace
}  // namespace interp::testing::broadcast_test
