// Stores of kind dist_async: each key is kept by one rank. Ranks are threads here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>

#include "core/kvstore/kvstore.h"
#include "tests/testing/arrays.h"
#include "tests/testing/rank_stores.h"

namespace interp::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kKind[] = "dist_async";

// Every key is kept by another rank than the one before, and asked by all.
TEST(AsyncStore, EachRankSeesItsOwnPushesAndAfterABarrierAll) {
  WithStores({.size = 3}, kKind, [](ArrayRuntime& runtime, KVStore& store) {
    EXPECT_EQ(store.size(), 3);
    store.SetUpdater(AddTo);
    const auto own = static_cast<float>(store.rank() + 1);
    for (const char* const key : {"a", "b", "c", "d"}) {
      INTERP_RETURN_IF_ERROR(store.Init(key, ArrayOf(runtime, {2}, {own, 10 * own})));
      const Array out = *runtime.New({2}, DType::kFloat32);
      INTERP_RETURN_IF_ERROR(store.Pull(key, {out}));
      EXPECT_GE(FloatsOf(out)[0], 1);  // as rank 0 says, and what others may have pushed
      const Array pushed = ArrayOf(runtime, {2}, {own, 1});
      INTERP_RETURN_IF_ERROR(store.PushPull(key, {pushed, pushed}, {out}));
      EXPECT_GE(FloatsOf(out)[0], 1 + 2 * own);
      INTERP_RETURN_IF_ERROR(store.Barrier());
      INTERP_RETURN_IF_ERROR(store.Pull(key, {out}));
      EXPECT_THAT(FloatsOf(out), ElementsAre(13, 16));
      EXPECT_THAT(FloatsOf(pushed), ElementsAre(own, 1));
    }
    return absl::OkStatus();
  });
}

// What a rank pulls has all of its own pushes and, of each other rank, as many as before or more.
TEST(AsyncStore, HistoriesArePlausible) {
  static constexpr int kRanks = 3;
  static constexpr int kPushes = 40;
  static constexpr int kKeys = 4;
  const ThreadRanksOptions slow{
      .size = kRanks, .longest_delay = std::chrono::microseconds(200), .seed = 3};
  WithStores(slow, kKind, [](ArrayRuntime& runtime, KVStore& store) {
    store.SetUpdater(AddTo);
    for (int key = 0; key < kKeys; ++key) {
      INTERP_RETURN_IF_ERROR(store.Init(absl::StrCat(key), ArrayOf(runtime, {kRanks}, {0, 0, 0})));
    }
    std::vector<float> mine(kRanks, 0.0F);
    mine[store.rank()] = 1;
    std::vector<std::vector<Array>> pulled(kKeys);
    for (int i = 0; i < kPushes; ++i) {
      for (int key = 0; key < kKeys; ++key) {
        const Array out = *runtime.New({kRanks}, DType::kFloat32);
        INTERP_RETURN_IF_ERROR(store.PushPull(absl::StrCat(key), {ArrayOf(runtime, {kRanks}, mine)},
                                              {out}, (key * 3 + i) % kKeys));
        pulled[key].push_back(out);
      }
    }
    INTERP_RETURN_IF_ERROR(store.Barrier());
    for (int key = 0; key < kKeys; ++key) {
      std::vector<float> before(kRanks, 0.0F);
      for (int i = 0; i < kPushes; ++i) {
        const std::vector<float> now = FloatsOf(pulled[key][i]);
        EXPECT_EQ(now[store.rank()], i + 1);
        for (int rank = 0; rank < kRanks; ++rank) {
          EXPECT_GE(now[rank], before[rank]);
          EXPECT_LE(now[rank], kPushes);
        }
        before = now;
      }
      const Array last = *runtime.New({kRanks}, DType::kFloat32);
      INTERP_RETURN_IF_ERROR(store.Pull(absl::StrCat(key), {last}));
      EXPECT_THAT(FloatsOf(last), Each(kPushes));
    }
    return absl::OkStatus();
  });
}

TEST(AsyncStore, RowsGoToTheirServer) {
  WithStores({.size = 2}, kKind, [](ArrayRuntime& runtime, KVStore& store) {
    store.SetUpdater(AddRowsTo);
    for (const char* const key : {"a", "b"}) {
      INTERP_RETURN_IF_ERROR(store.Init(key, ArrayOf(runtime, {3, 2}, {0, 1, 2, 3, 4, 5})));
      const Array rows = *runtime.FromRows(Tensor::Of<float>({2, 2}, {10, 10, 20, 20}),
                                           {.rows = {2, 0}, .height = 3});
      const Array none =
          *runtime.FromRows(Tensor::Of<float>({0, 2}, {}), {.rows = {}, .height = 3});
      INTERP_RETURN_IF_ERROR(store.Push(key, {rows}));
      INTERP_RETURN_IF_ERROR(store.Push(key, {none}));
      INTERP_RETURN_IF_ERROR(store.Barrier());
      const Array out = *runtime.NewRows({3, 2}, DType::kFloat32);
      INTERP_RETURN_IF_ERROR(store.PullRows(key, {2, 1, 2}, out));
      INTERP_ASSIGN_OR_RETURN(const Array::Rows pulled, out.ReadRows());
      EXPECT_THAT(pulled.index.rows, ElementsAre(1, 2));
      EXPECT_THAT(Values<float>(pulled.values), ElementsAre(2, 3, 24, 25));
      INTERP_RETURN_IF_ERROR(store.PullRows(key, {}, out));
      INTERP_ASSIGN_OR_RETURN(const Array::Rows nothing, out.ReadRows());
      EXPECT_TRUE(nothing.index.rows.empty());
    }
    return absl::OkStatus();
  });
}

TEST(AsyncStore, CodesGoToTheServerAndWhatTheyLeaveStays) {
  WithStores({.size = 2}, kKind, [](ArrayRuntime& runtime, KVStore& store) {
    store.SetUpdater(AddTo);
    INTERP_RETURN_IF_ERROR(store.SetCompression({.threshold = 0.5F}));
    for (const char* const key : {"a", "b"}) {
      INTERP_RETURN_IF_ERROR(store.Init(key, ArrayOf(runtime, {5}, {0, 0, 0, 0, 0})));
      const Array gradient = ArrayOf(runtime, {5}, {.3F, .6F, -.2F, -.7F, 1.4F});
      const Array out = *runtime.New({5}, DType::kFloat32);
      INTERP_RETURN_IF_ERROR(store.Push(key, {gradient}));
      INTERP_RETURN_IF_ERROR(store.Barrier());
      INTERP_RETURN_IF_ERROR(store.Pull(key, {out}));
      EXPECT_THAT(FloatsOf(out), ElementsAre(0, 1, 0, -1, 1));
      INTERP_RETURN_IF_ERROR(store.Barrier());
      INTERP_RETURN_IF_ERROR(store.Push(key, {gradient}));
      INTERP_RETURN_IF_ERROR(store.Barrier());
      INTERP_RETURN_IF_ERROR(store.Pull(key, {out}));
      EXPECT_THAT(FloatsOf(out), ElementsAre(1, 2, 0, -2, 2));
    }
    return absl::OkStatus();
  });
}

// Key "a" fails in a kernel, "b" where the updater is called; "" is a key like others.
TEST(AsyncStore, FailuresOfUpdatesAreToldToAllAndSpoilTheirKey) {
  WithStores({.size = 2}, kKind, [](ArrayRuntime& runtime, KVStore& store) -> absl::Status {
    store.SetUpdater([](absl::string_view key, const Array& pushed, const Array& stored) {
      if (key == "b") return absl::DataLossError("refused");
      return Invoke(stored.runtime(), "fail", {{"X", {pushed}}}, {}, {.into = {{"Out", {stored}}}})
          .status();
    });
    for (const char* const key : {"a", "b", "", "d"}) {
      INTERP_RETURN_IF_ERROR(store.Init(key, ArrayOf(runtime, {1}, {0})));
    }
    if (store.rank() == 1) {
      INTERP_RETURN_IF_ERROR(store.Push("a", {ArrayOf(runtime, {1}, {13})}));
      INTERP_RETURN_IF_ERROR(store.Push("b", {ArrayOf(runtime, {1}, {1})}));
    }
    INTERP_RETURN_IF_ERROR(store.Push("", {ArrayOf(runtime, {1}, {5})}));
    static_cast<void>(store.Barrier());
    EXPECT_THAT(store.Barrier(), FailsWith(absl::StatusCode::kDataLoss, ""));
    const Array out = *runtime.New({1}, DType::kFloat32);
    INTERP_RETURN_IF_ERROR(store.Pull("a", {out}));
    EXPECT_THAT(out.Read(), FailsWith(absl::StatusCode::kDataLoss, "thirteen"));
    INTERP_RETURN_IF_ERROR(store.Pull("b", {out}));
    EXPECT_THAT(out.Read(), FailsWith(absl::StatusCode::kDataLoss, "refused"));
    INTERP_RETURN_IF_ERROR(store.Pull("", {out}));
    EXPECT_THAT(FloatsOf(out), ElementsAre(5));
    return absl::OkStatus();
  });
}

// A push that one rank has left out holds up nobody, nor what comes later.
TEST(AsyncStore, AGradientThatFailedIsLeftOut) {
  WithStores({.size = 2}, kKind, [](ArrayRuntime& runtime, KVStore& store) {
    store.SetUpdater(AddTo);
    INTERP_RETURN_IF_ERROR(store.Init("a", ArrayOf(runtime, {1}, {0})));
    const float own = store.rank() == 1 ? 13.0F : 1.0F;
    const Array gradient = Got(Invoke(runtime, "fail", {{"X", {ArrayOf(runtime, {1}, {own})}}}));
    INTERP_RETURN_IF_ERROR(store.Push("a", {gradient}));
    INTERP_RETURN_IF_ERROR(store.Push("a", {ArrayOf(runtime, {1}, {2})}));
    const absl::Status status = store.Barrier();
    EXPECT_EQ(status.ok(), store.rank() == 0) << status;
    const Array out = *runtime.New({1}, DType::kFloat32);
    INTERP_RETURN_IF_ERROR(store.Pull("a", {out}));
    EXPECT_THAT(FloatsOf(out), ElementsAre(5));
    return absl::OkStatus();
  });
}

TEST(AsyncStore, DeathOfARankArrivesWhereItIsPulled) {
  std::latch begun(3);
  std::latch dead(3);
  const auto statuses =
      OnAllRanks({.size = 3}, {}, [&](const std::shared_ptr<Rings>& rings, ThreadRanks& ranks) {
        const std::unique_ptr<ArrayRuntime> runtime = NewRuntime();
        INTERP_ASSIGN_OR_RETURN(const auto store, KVStore::Create(*runtime, kKind, rings));
        store->SetUpdater(AddTo);
        const Array value = ArrayOf(*runtime, {2}, {1, 2});
        absl::Status started = store->Init("a", value);
        started.Update(store->Init("b", value));
        begun.arrive_and_wait();
        if (rings->rank() == 1) ranks.Kill(1);
        dead.arrive_and_wait();
        INTERP_RETURN_IF_ERROR(started);
        if (rings->rank() == 1) return absl::OkStatus();
        const Array out = *runtime->New({2}, DType::kFloat32);
        INTERP_RETURN_IF_ERROR(store->PushPull("b", {value}, {out}));
        EXPECT_THAT(out.Read(), FailsWith(absl::StatusCode::kUnavailable, "rank 1"));
        EXPECT_FALSE(store->Barrier().ok());
        return absl::OkStatus();
      });
  EXPECT_THAT(statuses, Each(absl::OkStatus()));
}

TEST(AsyncStore, OneRankIsAStoreToo) {
  const std::unique_ptr<ArrayRuntime> runtime = NewRuntime();
  const auto store = *KVStore::Create(*runtime, kKind, Rings::Alone());
  const Array value = ArrayOf(*runtime, {1}, {1});
  ASSERT_THAT(store->Init("w", value), IsOk());
  EXPECT_THAT(store->Push("w", {value}),
              FailsWith(absl::StatusCode::kFailedPrecondition, "there is no updater"));
  EXPECT_THAT(store->Stored("w"), FailsWith(absl::StatusCode::kUnimplemented, "Pull it"));
  store->SetUpdater(AddTo);
  const Array out = *runtime->New({1}, DType::kFloat32);
  ASSERT_THAT(store->PushPull("w", {value}, {out}), IsOk());
  EXPECT_THAT(FloatsOf(out), ElementsAre(2));
  const Array failed = Got(Invoke(*runtime, "fail", {{"X", {ArrayOf(*runtime, {1}, {13})}}}));
  ASSERT_THAT(store->Push("w", {failed}), IsOk());
  EXPECT_THAT(std::string(store->Barrier().message()), HasSubstr("thirteen"));
}

// More of them than there are tags of messages.
TEST(AsyncStore, ManyMayFollowEachOther) {
  const auto statuses = OnAllRanks(
      {.size = 2}, {.timeout = std::chrono::seconds(60)},
      [](const std::shared_ptr<Rings>& rings, ThreadRanks&) {
        const std::unique_ptr<ArrayRuntime> runtime = NewRuntime();
        for (int i = 0; i < 310; ++i) {
          INTERP_ASSIGN_OR_RETURN(const auto store, KVStore::Create(*runtime, kKind, rings));
          if (i % 100 > 0) continue;
          store->SetUpdater(AddTo);
          INTERP_RETURN_IF_ERROR(store->Init("w", ArrayOf(*runtime, {1}, {1})));
          const Array out = *runtime->New({1}, DType::kFloat32);
          INTERP_RETURN_IF_ERROR(store->PushPull("w", {ArrayOf(*runtime, {1}, {1})}, {out}));
          INTERP_RETURN_IF_ERROR(store->Barrier());
          INTERP_RETURN_IF_ERROR(store->Pull("w", {out}));
          EXPECT_THAT(FloatsOf(out), ElementsAre(3));
        }
        return absl::OkStatus();
      });
  EXPECT_THAT(statuses, ::testing::Each(absl::OkStatus()));
}

// Two stores over the same ranks have messages of their own.
TEST(AsyncStore, StoresAreApart) {
  WithStores(
      {.size = 2}, kKind,
      [](ArrayRuntime& runtime, KVStore& store) {
        store.SetUpdater(AddTo);
        INTERP_RETURN_IF_ERROR(store.Init("w", ArrayOf(runtime, {1}, {0})));
        INTERP_RETURN_IF_ERROR(store.Push("w", {ArrayOf(runtime, {1}, {1})}));
        return store.Barrier();
      },
      /*times=*/2);
}

}  // namespace
}  // namespace interp::testing
