#include "core/resource/place_resources.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace interp {
namespace {

// What a library's dropout might keep on a device.
struct DropoutStates {
  explicit DropoutStates(int bytes) : memory(bytes) {}
  std::vector<char> memory;
};

struct Handle {
  int number = 0;
};

TEST(PlaceResources, AreMadeOnceByTypeAndName) {
  PlaceResources place;
  int made = 0;
  const auto make = [&] {
    ++made;
    return absl::StatusOr<std::unique_ptr<DropoutStates>>(std::make_unique<DropoutStates>(64));
  };
  const auto first = place.GetOrMake<DropoutStates>("", make);
  const auto again = place.GetOrMake<DropoutStates>("", make);
  const auto other = place.GetOrMake<DropoutStates>("of stream 2", make);
  ASSERT_TRUE(first.ok() && again.ok() && other.ok());
  EXPECT_EQ(*first, *again);
  EXPECT_NE(*first, *other);
  EXPECT_EQ(made, 2);
  const auto handle = place.GetOrMake<Handle>("", [] {
    return absl::StatusOr<std::unique_ptr<Handle>>(std::make_unique<Handle>(Handle{7}));
  });
  ASSERT_TRUE(handle.ok());
  EXPECT_EQ((*handle)->number, 7);
}

TEST(PlaceResources, AnErrorIsTriedAgain) {
  PlaceResources place;
  bool short_of_memory = true;
  const auto make = [&]() -> absl::StatusOr<std::unique_ptr<Handle>> {
    if (short_of_memory) return ResourceExhausted("no memory for handles");
    return std::make_unique<Handle>();
  };
  EXPECT_EQ(place.GetOrMake<Handle>("", make).status().message(), "no memory for handles");
  short_of_memory = false;
  EXPECT_TRUE(place.GetOrMake<Handle>("", make).ok());
}

TEST(PlaceResources, OneMayNeedAnother) {
  PlaceResources place;
  const auto make_states = [&]() -> absl::StatusOr<std::unique_ptr<DropoutStates>> {
    INTERP_ASSIGN_OR_RETURN(const Handle* handle, place.GetOrMake<Handle>("", [] {
      return absl::StatusOr<std::unique_ptr<Handle>>(std::make_unique<Handle>(Handle{3}));
    }));
    return std::make_unique<DropoutStates>(handle->number);
  };
  const auto states = place.GetOrMake<DropoutStates>("", make_states);
  ASSERT_TRUE(states.ok());
  EXPECT_EQ((*states)->memory.size(), 3u);
}

TEST(PlaceResources, ThreadsThatRaceGetTheSame) {
  PlaceResources place;
  std::atomic<int> made = 0;
  std::vector<Handle*> seen(4);
  std::vector<std::thread> threads;
  for (Handle*& handle : seen) {
    threads.emplace_back([&place, &made, &handle] {
      handle = *place.GetOrMake<Handle>("", [&made] {
        ++made;
        return absl::StatusOr<std::unique_ptr<Handle>>(std::make_unique<Handle>());
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 1);
  for (const Handle* handle : seen) EXPECT_EQ(handle, seen[0]);
}

}  // namespace
}  // namespace interp
