// Stores of several ranks, which are threads here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "core/array/sum_arrays.h"
#include "core/kvstore/kvstore.h"
#include "tests/testing/arrays.h"
#include "tests/testing/rank_team.h"

namespace interp {
namespace {

using testing::ArrayOf;
using testing::ArrayOps;
using ::testing::Each;
using ::testing::ElementsAre;
using testing::FailsWith;
using testing::FloatsOf;
using testing::IsOk;
using testing::MakeRuntime;
using testing::OnAllRanks;

const auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr CommOptions kChecked{.timeout = std::chrono::seconds(60), .check = true};

// stored += pushed.
absl::Status AddTo(absl::string_view /*key*/, const Array& pushed, const Array& stored) {
  return Invoke(stored.runtime(), SumArraysDef(), {{"X", {stored, pushed}}}, {},
                {.into = {{"Out", {stored}}}})
      .status();
}

std::unique_ptr<ArrayRuntime> NewRuntime() {
  return MakeRuntime({.engine = {.workers = 2}, .ops = &ArrayOps::Registry()});
}

// `body` on each rank, with a store of its own runtime.
void WithStores(const ThreadRanksOptions& options,
                const std::function<absl::Status(ArrayRuntime&, KVStore&)>& body) {
  const auto statuses = OnAllRanks(
      options, kChecked, [&](const std::shared_ptr<Rings>& rings, ThreadRanks& /*ranks*/) {
        const std::unique_ptr<ArrayRuntime> runtime = NewRuntime();
        INTERP_ASSIGN_OR_RETURN(const auto store, KVStore::Create(*runtime, "dist_sync", rings));
        return body(*runtime, *store);
      });
  EXPECT_THAT(statuses, Each(absl::OkStatus()));
}

TEST(StoreOfRanks, BeginsAsRank0SaysAndAddsUpWhatAllPush) {
  WithStores({.size = 3}, [](ArrayRuntime& runtime, KVStore& store) {
    EXPECT_EQ(store.size(), 3);
    const auto own = static_cast<float>(store.rank() + 1);
    INTERP_RETURN_IF_ERROR(store.Init("w", ArrayOf(runtime, {2}, {own, 10 * own})));
    const Array out = *runtime.New({2}, DType::kFloat32);
    INTERP_RETURN_IF_ERROR(store.Pull("w", {out}));
    EXPECT_THAT(FloatsOf(out), ElementsAre(1, 10));
    const Array pushed = ArrayOf(runtime, {2}, {own, 1});
    INTERP_RETURN_IF_ERROR(store.PushPull("w", {pushed, pushed}, {out}));
    EXPECT_THAT(FloatsOf(out), ElementsAre(12, 6));
    EXPECT_THAT(FloatsOf(pushed), ElementsAre(own, 1));
    store.SetUpdater(AddTo);
    INTERP_RETURN_IF_ERROR(store.PushPull("w", {pushed}, {out}));
    EXPECT_THAT(FloatsOf(out), ElementsAre(18, 9));
    return absl::OkStatus();
  });
}

// Each rank wants another key first, and what it pushes is there at another time.
TEST(StoreOfRanks, PrioritiesAndDelaysDoNotChangeWhatMeetsWhat) {
  constexpr int kKeys = 8;
  const ThreadRanksOptions slow{
      .size = 4, .longest_delay = std::chrono::microseconds(300), .seed = 5};
  WithStores(slow, [](ArrayRuntime& runtime, KVStore& store) {
    std::vector<Array> outs;
    for (int key = 0; key < kKeys; ++key) {
      INTERP_RETURN_IF_ERROR(store.Init(absl::StrCat(key), ArrayOf(runtime, {3}, {0, 0, 0})));
      outs.push_back(*runtime.New({3}, DType::kFloat32));
    }
    for (int round = 0; round < 3; ++round) {
      for (int key = 0; key < kKeys; ++key) {
        const auto value = static_cast<float>(100 * round + key);
        const int priority = (key * 7 + store.rank() * 5) % kKeys;
        const std::vector<float> values(3, value * static_cast<float>(1 + store.rank()));
        INTERP_RETURN_IF_ERROR(store.PushPull(absl::StrCat(key), {ArrayOf(runtime, {3}, values)},
                                              {outs[key]}, priority));
      }
    }
    for (int key = 0; key < kKeys; ++key) {
      EXPECT_THAT(FloatsOf(outs[key]), Each(10 * static_cast<float>(200 + key)));
    }
    return absl::OkStatus();
  });
}

TEST(StoreOfRanks, BarrierWaitsForAll) {
  std::atomic<int> here{0};
  WithStores({.size = 4}, [&](ArrayRuntime& /*runtime*/, KVStore& store) {
    ++here;
    INTERP_RETURN_IF_ERROR(store.Barrier());
    EXPECT_EQ(here.load(), 4);
    return absl::OkStatus();
  });
}

TEST(StoreOfRanks, DeathOfARankArrivesWhereItIsPulled) {
  const auto statuses = OnAllRanks(
      {.size = 3}, kChecked, [&](const std::shared_ptr<Rings>& rings, ThreadRanks& ranks) {
        const std::unique_ptr<ArrayRuntime> runtime = NewRuntime();
        INTERP_ASSIGN_OR_RETURN(const auto store, KVStore::Create(*runtime, "dist_sync", rings));
        const Array value = ArrayOf(*runtime, {2}, {1, 2});
        INTERP_RETURN_IF_ERROR(store->Init("w", value));
        INTERP_RETURN_IF_ERROR(store->Barrier());
        if (rings->rank() == 1) {
          ranks.Kill(1);
          return absl::OkStatus();
        }
        const Array out = *runtime->New({2}, DType::kFloat32);
        INTERP_RETURN_IF_ERROR(store->PushPull("w", {value}, {out}));
        EXPECT_THAT(out.Read(), FailsWith(absl::StatusCode::kUnavailable, "rank 1 has died"));
        EXPECT_THAT(store->Barrier(), FailsWith(absl::StatusCode::kUnavailable, "rank 1 has died"));
        return absl::OkStatus();
      });
  EXPECT_THAT(statuses, Each(absl::OkStatus()));
}

// Another rank has a sum more than this one from now on.
TEST(StoreOfRanks, WhatFailedBeforeAPushFailsAllThatComeLater) {
  const std::unique_ptr<ArrayRuntime> runtime = NewRuntime();
  const auto store = *KVStore::Create(*runtime, "dist_sync", Rings::Alone());
  const Array value = ArrayOf(*runtime, {1}, {13});
  ASSERT_THAT(store->Init("a", value), IsOk());
  ASSERT_THAT(store->Init("b", value), IsOk());
  const Array failed = testing::Got(Invoke(*runtime, "fail", {{"X", {value}}}));
  ASSERT_THAT(store->Push("a", {failed}), IsOk());
  const Array out = *runtime->New({1}, DType::kFloat32);
  ASSERT_THAT(store->PushPull("b", {value}, {out}), IsOk());
  const absl::Status error = out.Read().status();
  EXPECT_FALSE(error.ok());
  EXPECT_THAT(std::string(error.message()), ::testing::HasSubstr("fail"));
  EXPECT_FALSE(store->Barrier().ok());
}

TEST(StoreOfRanks, WhatFailedOnOneRankFailsOnTheOthersAtOnce) {
  WithStores({.size = 2}, [](ArrayRuntime& runtime, KVStore& store) {
    const Array value = ArrayOf(runtime, {1}, {store.rank() == 1 ? 13.0F : 1.0F});
    INTERP_RETURN_IF_ERROR(store.Init("a", ArrayOf(runtime, {1}, {0})));
    const Array gradient = testing::Got(Invoke(runtime, "fail", {{"X", {value}}}));
    const Array out = *runtime.New({1}, DType::kFloat32);
    INTERP_RETURN_IF_ERROR(store.PushPull("a", {gradient}, {out}));
    EXPECT_THAT(out.Read(), FailsWith(absl::StatusCode::kDataLoss, "thirteen"));
    return absl::OkStatus();
  });
}

TEST(StoreOfRanks, RefusesWhatItCannotDo) {
  const std::unique_ptr<ArrayRuntime> runtime = NewRuntime();
  EXPECT_THAT(KVStore::Create(*runtime, "dist_sync"),
              FailsWith(kInvalid, "'dist_sync' needs rings of ranks"));
  EXPECT_THAT(KVStore::Create(*runtime, "local", Rings::Alone()),
              FailsWith(kInvalid, "'local' is one process's"));
  const auto store = *KVStore::Create(*runtime, "dist_sync", Rings::Alone());
  const Array value = ArrayOf(*runtime, {1}, {1});
  ASSERT_THAT(store->Init("w", value), IsOk());
  ASSERT_THAT(store->SetCompression({}), IsOk());
  EXPECT_THAT(store->Push("w", {value}),
              FailsWith(absl::StatusCode::kUnimplemented, "pushed with compression"));
}

}  // namespace
}  // namespace interp
