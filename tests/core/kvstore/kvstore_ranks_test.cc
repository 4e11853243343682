// Stores of several ranks, which are threads here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include "core/kvstore/kvstore.h"
#include "tests/testing/arrays.h"
#include "tests/testing/rank_stores.h"
#include "tests/testing/rank_team.h"

namespace interp {
namespace {

using testing::AddRowsTo;
using testing::AddTo;
using testing::ArrayOf;
using ::testing::Each;
using ::testing::ElementsAre;
using testing::FailsWith;
using testing::FloatsOf;
using testing::IsOk;
using testing::NewRuntime;
using testing::OnAllRanks;
using testing::WithStores;

const auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr CommOptions kChecked{.timeout = std::chrono::seconds(60), .check = true};
constexpr char kKind[] = "dist_sync";

TEST(StoreOfRanks, BeginsAsRank0SaysAndAddsUpWhatAllPush) {
  WithStores({.size = 3}, kKind, [](ArrayRuntime& runtime, KVStore& store) {
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
  WithStores(slow, kKind, [](ArrayRuntime& runtime, KVStore& store) {
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

// Keys of several shapes, dtypes and sizes, one of them twice, and rows between them.
std::vector<KeyedPush> ManyPushes(ArrayRuntime& runtime, const std::vector<Array>& outs, int rank) {
  const auto own = static_cast<float>(rank + 1);
  std::vector<float> large(600'000, own / 3);
  return {{"a", {ArrayOf(runtime, {2}, {own, 0.1F}), ArrayOf(runtime, {2}, {1, 0.3F})}, {outs[0]}},
          {"b", {ArrayOf(runtime, {1, 3}, {own, 2, 3})}, {outs[1]}},
          {"a", {ArrayOf(runtime, {2}, {own / 7, 1})}, {outs[0]}},
          {"large", {ArrayOf(runtime, {600'000}, large)}, {outs[2]}},
          {"larger", {ArrayOf(runtime, {600'000}, large)}, {outs[3]}},
          {"b", {ArrayOf(runtime, {1, 3}, {0.1F, own, 0})}, {outs[1]}}};
}

std::vector<float> AllOf(const std::vector<Array>& outs) {
  std::vector<float> all;
  for (const Array& out : outs) {
    const std::vector<float> values = FloatsOf(out);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

TEST(StoreOfRanks, KeysPushedTogetherTravelTogetherToTheSameBits) {
  const auto statuses = OnAllRanks(
      {.size = 3, .longest_delay = std::chrono::microseconds(200), .seed = 9}, kChecked,
      [&](const std::shared_ptr<Rings>& rings, ThreadRanks& /*ranks*/) -> absl::Status {
        const std::unique_ptr<ArrayRuntime> runtime = NewRuntime();
        std::vector<float> expected;
        for (const bool together : {false, true}) {
          INTERP_ASSIGN_OR_RETURN(const auto store, KVStore::Create(*runtime, kKind, rings));
          std::vector<Array> outs;
          const std::vector<std::pair<std::string, Shape>> keys = {
              {"a", {2}}, {"b", {1, 3}}, {"large", {600'000}}, {"larger", {600'000}}};
          for (const auto& [key, shape] : keys) {
            const std::vector<float> zeros(shape.numel(), 0);
            INTERP_RETURN_IF_ERROR(store->Init(key, ArrayOf(*runtime, shape, zeros)));
            outs.push_back(*runtime->New(shape, DType::kFloat32));
          }
          store->SetUpdater(AddTo);
          INTERP_RETURN_IF_ERROR(store->Barrier());
          rings->StartTrace();
          const auto pushes = ManyPushes(*runtime, outs, rings->rank());
          if (together) {
            INTERP_RETURN_IF_ERROR(store->PushPullAll(pushes));
          } else {
            for (const KeyedPush& push : pushes) {
              INTERP_RETURN_IF_ERROR(store->PushPull(push.key, push.values, push.outs));
            }
          }
          const std::vector<float> all = AllOf(outs);
          // a and b; a and large, which are 2.3 MiB; larger and b.
          EXPECT_EQ(rings->StopTrace().size(), together ? 3 : 6);
          if (together) {
            EXPECT_EQ(all, expected);
          }
          expected = all;
        }
        return absl::OkStatus();
      });
  EXPECT_THAT(statuses, Each(absl::OkStatus()));
}

TEST(StoreOfRanks, NothingIsPushedWhereOneOfManyDoesNotFit) {
  const std::unique_ptr<ArrayRuntime> owned = NewRuntime();
  ArrayRuntime& runtime = *owned;
  const auto store = *KVStore::Create(runtime, kKind, Rings::Alone());
  ASSERT_THAT(store->Init("a", ArrayOf(runtime, {1}, {5})), IsOk());
  const Array one = ArrayOf(runtime, {1}, {1});
  EXPECT_THAT(store->PushPullAll({{"a", {one}}, {"a", {ArrayOf(runtime, {2}, {1, 2})}}}),
              FailsWith(kInvalid, "key 'a' is pushed"));
  EXPECT_THAT(store->PushPullAll({{"a", {one}}, {"none", {one}}}),
              FailsWith(absl::StatusCode::kNotFound, "no key 'none'"));
  ASSERT_THAT(store->Init("r", ArrayOf(runtime, {2, 1}, {0, 0})), IsOk());
  const Array rows = *runtime.FromRows(Tensor::Of<float>({1, 1}, {3}), {.rows = {1}, .height = 2});
  EXPECT_THAT(store->PushPullAll({{"a", {one}}, {"r", {rows}}}),
              FailsWith(kInvalid, "rows are pushed to key 'r' on cpu; they need an updater"));
  ASSERT_THAT(store->SetCompression({}), IsOk());
  ASSERT_THAT(store->Init("d", *runtime.New({1}, DType::kFloat64)), IsOk());
  EXPECT_THAT(store->PushPullAll({{"a", {one}}, {"d", {*runtime.New({1}, DType::kFloat64)}}}),
              FailsWith(absl::StatusCode::kUnimplemented, "not float64 as of key 'd'"));
  const Array out = *runtime.New({1}, DType::kFloat32);
  ASSERT_THAT(store->Pull("a", {out}), IsOk());
  EXPECT_THAT(FloatsOf(out), ElementsAre(5));
}

// What the others push to the other keys finds its like here.
TEST(StoreOfRanks, AnUpdaterThatThrowsOnOneRankLeavesTheOtherKeysAlone) {
  WithStores({.size = 2}, kKind, [](ArrayRuntime& runtime, KVStore& store) {
    const bool throws = store.rank() == 1;
    store.SetUpdater([throws](absl::string_view key, const Array& pushed, const Array& stored) {
      if (throws && key == "a") throw std::runtime_error("thrown");
      return AddTo(key, pushed, stored);
    });
    const Array one = ArrayOf(runtime, {1}, {1});
    for (const char* const key : {"a", "b", "c"}) {
      INTERP_RETURN_IF_ERROR(store.Init(key, ArrayOf(runtime, {1}, {0})));
    }
    const Array b = *runtime.New({1}, DType::kFloat32);
    const Array c = *runtime.New({1}, DType::kFloat32);
    // Two messages, as a key is in each once.
    const absl::Status status =
        store.PushPullAll({{"a", {one}}, {"b", {one}, {b}}, {"a", {one}}, {"c", {one}, {c}}});
    EXPECT_EQ(status, throws ? absl::InternalError("thrown") : absl::OkStatus());
    EXPECT_THAT(FloatsOf(b), ElementsAre(2));
    EXPECT_THAT(FloatsOf(c), ElementsAre(2));
    return store.PushPull("b", {one}, {b});
  });
}

TEST(StoreOfRanks, MoreKeysThanAMessageHoldsTakeAnother) {
  constexpr int kKeys = 49;
  const auto statuses = OnAllRanks(
      {.size = 2}, kChecked, [&](const std::shared_ptr<Rings>& rings, ThreadRanks& /*ranks*/) {
        const std::unique_ptr<ArrayRuntime> runtime = NewRuntime();
        INTERP_ASSIGN_OR_RETURN(const auto store, KVStore::Create(*runtime, kKind, rings));
        const auto own = static_cast<float>(rings->rank() + 1);
        std::vector<KeyedPush> pushes;
        for (int key = 0; key < kKeys; ++key) {
          const std::string name = absl::StrCat(key);
          INTERP_RETURN_IF_ERROR(store->Init(name, ArrayOf(*runtime, {1}, {0})));
          pushes.push_back({name,
                            {ArrayOf(*runtime, {1}, {own * static_cast<float>(key)})},
                            {*runtime->New({1}, DType::kFloat32)}});
        }
        INTERP_RETURN_IF_ERROR(store->Barrier());
        rings->StartTrace();
        INTERP_RETURN_IF_ERROR(store->PushPullAll(pushes));
        for (int key = 0; key < kKeys; ++key) {
          EXPECT_THAT(FloatsOf(pushes[key].outs[0]), ElementsAre(3 * static_cast<float>(key)));
        }
        EXPECT_EQ(rings->StopTrace().size(), 2);
        return absl::OkStatus();
      });
  EXPECT_THAT(statuses, Each(absl::OkStatus()));
}

// The first store's sum is ready last on one of the ranks.
TEST(StoreOfRanks, SumsOfTwoStoresAreNotMixed) {
  const auto statuses = OnAllRanks(
      {.size = 2}, kChecked, [&](const std::shared_ptr<Rings>& rings, ThreadRanks& /*ranks*/) {
        const std::unique_ptr<ArrayRuntime> runtime = NewRuntime();
        INTERP_ASSIGN_OR_RETURN(const auto first, KVStore::Create(*runtime, kKind, rings));
        INTERP_ASSIGN_OR_RETURN(const auto second, KVStore::Create(*runtime, kKind, rings));
        for (KVStore* const store : {first.get(), second.get()}) {
          INTERP_RETURN_IF_ERROR(store->Init("w", ArrayOf(*runtime, {1}, {0})));
        }
        const Array slow = *runtime->New({1}, DType::kFloat32);
        const engine::Variable written = slow.variable();
        const int rank = rings->rank();
        INTERP_RETURN_IF_ERROR(runtime->engine().Push(
            [slow, rank](const engine::RunContext& context) -> absl::Status {
              if (rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
              INTERP_ASSIGN_OR_RETURN(Tensor value, ArrayAccess::Writable(slow, true, context));
              value.mutable_data<float>()[0] = 1;
              return absl::OkStatus();
            },
            {.writes = {&written, 1}}));
        const Array one = *runtime->New({1}, DType::kFloat32);
        const Array ten = *runtime->New({1}, DType::kFloat32);
        INTERP_RETURN_IF_ERROR(first->PushPull("w", {slow}, {one}));
        INTERP_RETURN_IF_ERROR(second->PushPull("w", {ArrayOf(*runtime, {1}, {10})}, {ten}));
        EXPECT_THAT(FloatsOf(one), ElementsAre(2));
        EXPECT_THAT(FloatsOf(ten), ElementsAre(20));
        return absl::OkStatus();
      });
  EXPECT_THAT(statuses, Each(absl::OkStatus()));
}

TEST(StoreOfRanks, BarrierWaitsForAll) {
  std::atomic<int> here{0};
  WithStores({.size = 4}, kKind, [&](ArrayRuntime& /*runtime*/, KVStore& store) {
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
  WithStores({.size = 2}, kKind, [](ArrayRuntime& runtime, KVStore& store) {
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
  const Array rows = *runtime->FromRows(Tensor::Of<float>({1}, {1}), {.rows = {0}, .height = 1});
  EXPECT_THAT(store->Push("w", {rows}), FailsWith(kInvalid, "they need an updater"));
}

// Of different lengths; none on one of the ranks.
TEST(StoreOfRanks, RowsOfAllRanksAreJoinedInTheirOrder) {
  WithStores({.size = 3}, kKind, [](ArrayRuntime& runtime, KVStore& store) {
    store.SetUpdater(AddRowsTo);
    INTERP_RETURN_IF_ERROR(store.Init("t", ArrayOf(runtime, {3, 2}, {0, 1, 2, 3, 4, 5})));
    const auto count = static_cast<int64_t>(store.rank());
    const std::vector<int64_t> numbers(static_cast<size_t>(count), count);
    const std::vector<float> values(static_cast<size_t>(2 * count), 10);
    const Array rows =
        *runtime.FromRows(Tensor::Of<float>({count, 2}, values), {.rows = numbers, .height = 3});
    const Array out = *runtime.New({3, 2}, DType::kFloat32);
    INTERP_RETURN_IF_ERROR(store.PushPull("t", {rows}, {out}));
    EXPECT_THAT(FloatsOf(out), ElementsAre(0, 1, 12, 13, 24, 25));
    return absl::OkStatus();
  });
}

TEST(StoreOfRanks, CodesOfAllRanksAreAddedUp) {
  WithStores({.size = 2}, kKind, [](ArrayRuntime& runtime, KVStore& store) {
    INTERP_RETURN_IF_ERROR(store.SetCompression({.threshold = 0.5F}));
    INTERP_RETURN_IF_ERROR(store.Init("g", ArrayOf(runtime, {5}, {0, 0, 0, 0, 0})));
    const Array gradient = ArrayOf(runtime, {5}, {.3F, .6F, -.2F, -.7F, 1.4F});
    const Array out = *runtime.New({5}, DType::kFloat32);
    const std::vector<std::vector<float>> expected = {
        {0, 1, 0, -1, 1}, {1, 1, 0, -1, 1}, {0, 1, -1, -1, 1}};
    for (const std::vector<float>& sum : expected) {
      INTERP_RETURN_IF_ERROR(store.PushPull("g", {gradient}, {out}));
      EXPECT_EQ(FloatsOf(out), sum);
    }
    return absl::OkStatus();
  });
}

// Two devices of each rank; keys lie on devices, what crosses ranks on the host.
TEST(StoreOfRanks, DevicesOfAllRanksAreAddedUp) {
  const auto statuses = OnAllRanks(
      {.size = 2}, kChecked, [&](const std::shared_ptr<Rings>& rings, ThreadRanks& /*ranks*/) {
        const std::unique_ptr<ArrayRuntime> runtime =
            testing::MakeRuntime({.engine = {.devices = {testing::MakeDevice({.index = 0}),
                                                         testing::MakeDevice({.index = 1})}},
                                  .ops = &testing::ArrayOps::Registry()});
        INTERP_ASSIGN_OR_RETURN(const auto store,
                                KVStore::Create(*runtime, "dist_device_sync", rings));
        const std::vector<Place> places = runtime->engine().policy().places;
        const auto own = static_cast<float>(store->rank() + 1);
        INTERP_RETURN_IF_ERROR(store->Init("w", ArrayOf(*runtime, {2}, {own, own})));
        INTERP_ASSIGN_OR_RETURN(const Array stored, store->Stored("w"));
        EXPECT_FALSE(stored.place().on_host());
        std::vector<Array> gradients;
        std::vector<Array> outs;
        for (const Place place : places) {
          if (place.on_host()) continue;
          gradients.push_back(ArrayOf(*runtime, {2}, {own, 10 * own}, place));
          outs.push_back(*runtime->New({2}, DType::kFloat32, place));
        }
        INTERP_RETURN_IF_ERROR(store->Pull("w", outs));
        EXPECT_THAT(FloatsOf(outs[0]), ElementsAre(1, 1));
        INTERP_RETURN_IF_ERROR(store->PushPull("w", gradients, outs));
        for (const Array& out : outs) EXPECT_THAT(FloatsOf(out), ElementsAre(6, 60));
        return absl::OkStatus();
      });
  EXPECT_THAT(statuses, Each(absl::OkStatus()));
}

}  // namespace
}  // namespace interp
