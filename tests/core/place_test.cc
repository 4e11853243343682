#include "core/place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/tensor.h"
#include "tests/testing/matchers.h"

namespace interp {
namespace {

using testing::FailsWith;
using testing::IsOk;

TEST(PlaceTest, NamesReadBack) {
  for (const Place place : {Place{}, Place{PlaceKind::kSim, 0}, Place{PlaceKind::kSim, 15},
                            Place{PlaceKind::kCuda, 0}, Place{PlaceKind::kCuda, 15}}) {
    const absl::StatusOr<Place> read = PlaceFromName(Name(place));
    ASSERT_THAT(read, IsOk());
    EXPECT_EQ(*read, place);
  }
  EXPECT_EQ(Name(Place{}), "cpu");
  EXPECT_EQ(Name(Place{PlaceKind::kSim, 3}), "sim:3");
}

TEST(PlaceTest, ADeviceWithoutNumberIsTheFirst) {
  const absl::StatusOr<Place> place = PlaceFromName("sim");
  ASSERT_THAT(place, IsOk());
  EXPECT_EQ(*place, (Place{PlaceKind::kSim, 0}));
  EXPECT_FALSE(place->on_host());
  EXPECT_EQ(*PlaceFromName("cuda"), (Place{PlaceKind::kCuda, 0}));
}

TEST(PlaceTest, OtherNamesAreAnErrorThatListsThePlaces) {
  for (const char* name : {"", "gpu", "cpu:0", "CPU", "sim:", "sim:16", "sim:-1", "sim:1x", "sim1",
                           "sim:99999999999999999999"}) {
    EXPECT_THAT(PlaceFromName(name), FailsWith(absl::StatusCode::kInvalidArgument,
                                               "cpu, sim:0 to sim:15 and cuda:0 to cuda:15"))
        << name;
  }
}

TEST(PlaceTest, ATensorLiesWhereItsBufferDoes) {
  Tensor tensor;
  EXPECT_TRUE(tensor.place().on_host());
  float value = 0;
  BufferRef buffer = BorrowBuffer(&value, sizeof(value), /*writable=*/true);
  buffer->place = {PlaceKind::kSim, 2};
  tensor.SetMemory(buffer, &value);
  EXPECT_EQ(Name(tensor.place()), "sim:2");
  tensor.DropMemory();
  EXPECT_TRUE(tensor.place().on_host());
}

}  // namespace
}  // namespace interp
