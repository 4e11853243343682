// Stores of ranks that do not make the same calls: nothing is added up that does not belong
// together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "core/kvstore/kvstore.h"
#include "tests/testing/arrays.h"
#include "tests/testing/rank_stores.h"

namespace interp::kvstore_differing_ranks_test {
namespace {

using testing::ArrayOf;
using ::testing::Each;
using testing::FailsWith;
using ::testing::HasSubstr;
using testing::NewRuntime;
using testing::OnAllRanks;

const auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr CommOptions kUnchecked{.timeout = std::chrono::seconds(60)};
constexpr CommOptions kChecked{.timeout = std::chrono::seconds(60), .check = true};

// What a barrier behind `body` says on each of two ranks with keys a, b and c.
std::vector<std::string> BarriersAfter(const CommOptions& options,
                                       const std::function<void(ArrayRuntime&, KVStore&)>& body) {
  std::vector<std::string> barriers(2);
  const auto statuses = OnAllRanks(
      {.size = 2}, options,
      [&](const std::shared_ptr<Rings>& rings, ThreadRanks& /*ranks*/) -> absl::Status {
        const std::unique_ptr<ArrayRuntime> runtime = NewRuntime();
        INTERP_ASSIGN_OR_RETURN(const auto store, KVStore::Create(*runtime, "dist_sync", rings));
        for (const char* const key : {"a", "b", "c"}) {
          INTERP_RETURN_IF_ERROR(store->Init(key, ArrayOf(*runtime, {1}, {0})));
        }
        INTERP_RETURN_IF_ERROR(store->Barrier());
        body(*runtime, *store);
        barriers[rings->rank()] = store->Barrier().ToString();
        return absl::OkStatus();
      });
  EXPECT_THAT(statuses, Each(absl::OkStatus()));
  return barriers;
}

TEST(StoreOfDifferingRanks, KeysInAnotherOrderAreFoundByTheCheck) {
  const auto barriers = BarriersAfter(kChecked, [](ArrayRuntime& runtime, KVStore& store) {
    const Array one = ArrayOf(runtime, {1}, {1});
    const bool first = store.rank() == 0;
    store.Push(first ? "a" : "b", {one}).IgnoreError();
    store.Push(first ? "b" : "a", {one}).IgnoreError();
  });
  EXPECT_THAT(barriers[0], HasSubstr("ranks differ in what they do on the stores' ring: rank 0 is "
                                     "at number 5, all-reduce sum of 1 float32 (a), rank 1 at "
                                     "number 5, all-reduce sum of 1 float32 (b)"));
  EXPECT_THAT(barriers[1], HasSubstr("ranks differ"));
}

TEST(StoreOfDifferingRanks, OtherKeysWithinAMessageAreFoundByTheCheck) {
  const auto barriers = BarriersAfter(kChecked, [](ArrayRuntime& runtime, KVStore& store) {
    const Array one = ArrayOf(runtime, {1}, {1});
    store.PushPullAll({{"a", {one}}, {store.rank() == 0 ? "b" : "c", {one}}}).IgnoreError();
  });
  EXPECT_THAT(barriers, Each(HasSubstr("ranks differ")));
}

TEST(StoreOfDifferingRanks, OtherLongKeysAreFoundByTheCheck) {
  const auto barriers = BarriersAfter(kChecked, [](ArrayRuntime& runtime, KVStore& store) {
    const std::string key(100, 'k');
    store.Init(absl::StrCat(key, store.rank()), ArrayOf(runtime, {1}, {0})).IgnoreError();
  });
  EXPECT_THAT(barriers, Each(HasSubstr("ranks differ")));
}

TEST(StoreOfDifferingRanks, OtherThresholdsAreFoundByTheCheck) {
  const auto barriers = BarriersAfter(kChecked, [](ArrayRuntime& runtime, KVStore& store) {
    EXPECT_EQ(store.SetCompression({.threshold = store.rank() == 0 ? 0.5F : 1.0F}),
              absl::OkStatus());
    store.Push("a", {ArrayOf(runtime, {1}, {1})}).IgnoreError();
  });
  EXPECT_THAT(barriers[0], HasSubstr("(threshold 0.5, a), rank 1 at"));
}

// Without a check it would meet what the others push to the key that was refused.
TEST(StoreOfDifferingRanks, WhatFollowsARefusedPushMeetsNothing) {
  for (const bool together : {false, true}) {
    const auto barriers = BarriersAfter(kUnchecked, [&](ArrayRuntime& runtime, KVStore& store) {
      const Array one = ArrayOf(runtime, {1}, {1});
      const bool refused = store.rank() == 1;
      const Array pushed = refused ? ArrayOf(runtime, {2}, {1, 1}) : one;
      const absl::Status status =
          together ? store.PushPullAll({{"a", {pushed}}}) : store.Push("a", {pushed});
      if (refused) {
        EXPECT_THAT(status, FailsWith(kInvalid, "key 'a' is pushed"));
      }
      store.Push("b", {one}).IgnoreError();
    });
    EXPECT_THAT(barriers, Each(HasSubstr("key 'a' is pushed")));
  }
}

TEST(StoreOfDifferingRanks, WhatFollowsARefusedInitMeetsNothing) {
  const auto barriers = BarriersAfter(kUnchecked, [](ArrayRuntime& runtime, KVStore& store) {
    const Array one = ArrayOf(runtime, {1}, {1});
    store.Init(store.rank() == 0 ? "d" : "a", one).IgnoreError();
    store.Push("b", {one}).IgnoreError();
  });
  EXPECT_THAT(barriers, Each(HasSubstr("key 'a' is in the store already")));
}

}  // namespace
}  // namespace interp::kvstore_differing_ranks_test
