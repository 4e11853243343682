#include "core/io/multi_slot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/matchers.h"

namespace interp::multi_slot_test {
namespace {

using ::testing::ElementsAre;
using testing::FailsWith;
using testing::IsOk;

constexpr size_t kMaxBytes = 1 << 20;

std::vector<DataSlot> Slots() {
  return {{.name = "label", .is_float = true, .width = 1},
          {.name = "ids"},
          {.name = "dense", .is_float = true, .width = 2}};
}

absl::StatusOr<SlotTable> Parse(absl::string_view text, size_t max_bytes = kMaxBytes) {
  SlotTable table(Slots().size());
  INTERP_RETURN_IF_ERROR(ParseMultiSlot(text, Slots(), max_bytes, table));
  return table;
}

// What Paddle 2.6.2 reads with train_from_dataset.
TEST(MultiSlot, ReadsSlotsInTheirOrder) {
  const auto table = Parse("1 1.0 3 11 12 13 2 0.5 0.25\n\n 1\t0.0 1 99 2 1.5 2.5 \r\n");
  ASSERT_THAT(table, IsOk());
  EXPECT_EQ(NumSamples(*table), 2);
  EXPECT_THAT((*table)[0].floats, ElementsAre(1, 0));
  EXPECT_THAT((*table)[1].ids, ElementsAre(11, 12, 13, 99));
  EXPECT_THAT((*table)[1].begins, ElementsAre(0, 3, 4));
  EXPECT_THAT((*table)[2].floats, ElementsAre(0.5, 0.25, 1.5, 2.5));
}

TEST(MultiSlot, IdsHave64Bits) {
  const auto table = Parse("1 1 2 18446744073709551615 -7 2 0 0");
  ASSERT_THAT(table, IsOk());
  EXPECT_THAT((*table)[1].ids, ElementsAre(-1, -7));
}

TEST(MultiSlot, ErrorsNameLineAndSlot) {
  for (const auto& [line, problem] : std::vector<std::pair<std::string, std::string>>{
           {"1", "line 2: slot 'label': says 1 values, which the line does not have"},
           {"x 1", "line 2: slot 'label': 'x' is no number of values"},
           {"-1 1", "line 2: slot 'label': '-1' is no number of values"},
           {"2 1 1", "line 2: slot 'label': has 2 values, expected 1"},
           {"1 1 0 2 0 0", "line 2: slot 'ids': has no values; a sample without any needs one for"},
           {"1 1 1 1.5 2 0 0", "line 2: slot 'ids': '1.5' is no whole number of 64 bits"},
           {"1 1 9000000000 1", "line 2: slot 'ids': says 9000000000 values, which the line does"},
           {"1 1 1 5 2 0", "line 2: slot 'dense': the line ends, expected number"},
           {"1 1e999", "line 2: slot 'label': '1e999' is no finite number of 32 bits"},
           {"1 nan", "line 2: slot 'label': 'nan' is no finite number"},
           {"1 \x1b[31m", "line 2: slot 'label': '\\033[31m' is no number"},
           {"1 1 1 5 2 0 0 7", "line 2: '7' follows the last slot, 'dense'"}}) {
    EXPECT_THAT(Parse("1 1 1 1 2 0 0\n" + line),
                FailsWith(absl::StatusCode::kInvalidArgument, problem));
  }
}

TEST(MultiSlot, UnusedSlotsTakeNoMemory) {
  const std::vector<DataSlot> slots = {{.name = "user", .is_unused = true}, Slots()[0]};
  SlotTable table(slots.size());
  ASSERT_THAT(ParseMultiSlot("6 a b c d 1e999 f 1 0.5\n", slots, 2 * sizeof(int64_t) + 4, table),
              IsOk());
  EXPECT_THAT(table[0].ids, ::testing::IsEmpty());
  EXPECT_THAT(table[0].floats, ::testing::IsEmpty());
  EXPECT_THAT(table[1].floats, ElementsAre(0.5));
  EXPECT_EQ(NumSamples(table), 1);
  EXPECT_THAT(ParseMultiSlot("2 a", slots, kMaxBytes, table),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        "line 1: slot 'user': the line ends, expected value"));
}

TEST(MultiSlot, MemoryIsBounded) {
  EXPECT_THAT(Parse("1 1 4 1 2 3 4 2 0 0", 40),
              FailsWith(absl::StatusCode::kResourceExhausted, "line 1: the values take more than"));
}

}  // namespace
}  // namespace interp::multi_slot_test
