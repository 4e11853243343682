// Stores of several ranks beside all else that uses their rings and their engine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <latch>

#include "core/kvstore/kvstore.h"
#include "tests/testing/arrays.h"
#include "tests/testing/engines.h"
#include "tests/testing/rank_stores.h"

namespace interp::kvstore_rings_test {
namespace {

using testing::AddTo;
using testing::ArrayOf;
using ::testing::Each;
using ::testing::ElementsAre;
using testing::FailsWith;
using testing::FloatsOf;
using testing::IsOk;
using testing::NewRuntime;
using testing::OnAllRanks;

constexpr CommOptions kPatient{.timeout = std::chrono::seconds(60)};

CommCall SumOf(std::array<float, 2>& values) {
  return {.kind = CommKind::kAllReduce,
          .dtype = DType::kFloat32,
          .count = std::ssize(values),
          .in = values.data(),
          .out = values.data(),
          .name = "program"};
}

std::unique_ptr<ArrayRuntime> NewNaiveRuntime() {
  return testing::MakeRuntime(
      {.engine = {.policy = engine::PolicyKind::kNaive}, .ops = &testing::ArrayOps::Registry()});
}

// Counts the operations by which a store speaks with ranks, as their functions return.
class RankOperations final : public engine::EngineObserver {
 public:
  explicit RankOperations(ArrayRuntime& runtime) : runtime_(runtime) {
    runtime_.engine().SetObserver(this);
  }
  ~RankOperations() override {
    (void)runtime_.WaitForAll();
    runtime_.engine().SetObserver(nullptr);
  }
  void OnOperation(const Operation& operation, int64_t /*start_ns*/, int64_t /*end_ns*/) override {
    const absl::string_view name = operation.name;
    if (name != "across ranks" && name != "ask a server") return;
    if (count_.fetch_add(1) == 0) first_.count_down();
  }
  int count() const { return count_; }
  void AwaitFirst() const { first_.wait(); }

 private:
  ArrayRuntime& runtime_;
  std::atomic<int> count_{0};
  std::latch first_{1};
};

// The thread that tells of a sum's end is the one that the ring needs.
TEST(StoreBesideRings, AnOperationBehindAPullMayUseARingUnderNaive) {
  const auto statuses = OnAllRanks(
      {.size = 2}, kPatient, [](const std::shared_ptr<Rings>& rings, ThreadRanks& /*ranks*/) {
        const std::unique_ptr<ArrayRuntime> runtime = NewNaiveRuntime();
        INTERP_ASSIGN_OR_RETURN(const auto store, KVStore::Create(*runtime, "dist_sync", rings));
        INTERP_RETURN_IF_ERROR(store->Init("w", ArrayOf(*runtime, {1}, {0})));
        const Array out = *runtime->New({1}, DType::kFloat32);
        INTERP_RETURN_IF_ERROR(store->PushPull("w", {ArrayOf(*runtime, {1}, {1})}, {out}));
        const engine::Variable read = out.variable();
        std::array<float, 2> sum = {1, 2};
        INTERP_RETURN_IF_ERROR(runtime->engine().Push(
            [&] { return rings->World().Run(SumOf(sum)); }, {.reads = {&read, 1}}));
        INTERP_RETURN_IF_ERROR(runtime->WaitForAll());
        EXPECT_THAT(sum, ElementsAre(2, 4));
        EXPECT_THAT(FloatsOf(out), ElementsAre(2));
        return absl::OkStatus();
      });
  EXPECT_THAT(statuses, Each(absl::OkStatus()));
}

TEST(StoreBesideRings, AnOperationBehindAPullMayWaitForAnotherUnderNaive) {
  const auto statuses = OnAllRanks(
      {.size = 2}, kPatient, [](const std::shared_ptr<Rings>& rings, ThreadRanks& /*ranks*/) {
        const std::unique_ptr<ArrayRuntime> runtime = NewNaiveRuntime();
        INTERP_ASSIGN_OR_RETURN(const auto store, KVStore::Create(*runtime, "dist_async", rings));
        store->SetUpdater(AddTo);
        for (const char* const key : {"v", "w"}) {
          INTERP_RETURN_IF_ERROR(store->Init(key, ArrayOf(*runtime, {1}, {3})));
        }
        const Array a = *runtime->New({1}, DType::kFloat32);
        const Array b = ArrayOf(*runtime, {1}, {0});  // read before it is pulled, too
        const engine::Variable read = a.variable();
        for (int i = 0; i < 20; ++i) {
          INTERP_RETURN_IF_ERROR(store->Pull("v", {a}));
          INTERP_RETURN_IF_ERROR(
              runtime->engine().Push([b] { return b.Read().status(); }, {.reads = {&read, 1}}));
          for (const char* const key : {"w", "v"}) INTERP_RETURN_IF_ERROR(store->Pull(key, {b}));
        }
        return runtime->WaitForAll();
      });
  EXPECT_THAT(statuses, Each(absl::OkStatus()));
}

// One rank starts the sum of the store first, the other one that of the ring.
TEST(StoreBesideRings, SumsOfStoresAndOfRingsAreNotMixed) {
  const auto statuses = OnAllRanks(
      {.size = 2}, kPatient, [](const std::shared_ptr<Rings>& rings, ThreadRanks& /*ranks*/) {
        const std::unique_ptr<ArrayRuntime> runtime = NewRuntime();
        INTERP_ASSIGN_OR_RETURN(const auto store, KVStore::Create(*runtime, "dist_sync", rings));
        INTERP_RETURN_IF_ERROR(store->Init("w", ArrayOf(*runtime, {2}, {0, 0})));
        INTERP_RETURN_IF_ERROR(runtime->WaitForAll());
        const RankOperations operations(*runtime);
        const bool late = rings->rank() == 1;
        testing::Gate gate;
        const Array gradient = ArrayOf(*runtime, {2}, {100, 100});
        const engine::Variable updated = gradient.variable();
        INTERP_RETURN_IF_ERROR(runtime->engine().Push(
            [&gate, late] {
              if (late) gate.Pass();
            },
            {.updates = {&updated, 1}}));
        const Array out = *runtime->New({2}, DType::kFloat32);
        INTERP_RETURN_IF_ERROR(store->PushPull("w", {gradient}, {out}));
        if (!late) operations.AwaitFirst();
        std::array<float, 2> sum = {1, 2};
        const absl::Status status = rings->World().Run(SumOf(sum));
        gate.Open();
        EXPECT_THAT(sum, ElementsAre(2, 4));
        EXPECT_THAT(FloatsOf(out), ElementsAre(200, 200));
        return status;
      });
  EXPECT_THAT(statuses, Each(absl::OkStatus()));
}

class StoreOfStoppedEngine : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(KVStore, StoreOfStoppedEngine,
                         ::testing::Values("dist_sync", "dist_async"));

TEST_P(StoreOfStoppedEngine, DoesWhatWasPushedBeforeItEnds) {
  const std::unique_ptr<ArrayRuntime> runtime = NewRuntime();
  std::unique_ptr<KVStore> store = *KVStore::Create(*runtime, GetParam(), Rings::Alone());
  store->SetUpdater(AddTo);
  ASSERT_THAT(store->Init("w", ArrayOf(*runtime, {1}, {1})), IsOk());
  ASSERT_THAT(runtime->WaitForAll(), IsOk());
  const RankOperations operations(*runtime);
  ASSERT_THAT(runtime->engine().Stop(), IsOk());
  const Array out = *runtime->New({1}, DType::kFloat32);
  ASSERT_THAT(store->PushPull("w", {ArrayOf(*runtime, {1}, {2})}, {out}), IsOk());
  EXPECT_EQ(operations.count(), 0);
  store.reset();
  ASSERT_THAT(runtime->WaitForAll(), IsOk());  // functions return behind what they complete
  EXPECT_EQ(operations.count(), absl::string_view(GetParam()) == "dist_sync" ? 1 : 2);
  EXPECT_THAT(FloatsOf(out), ElementsAre(3));
}

TEST_P(StoreOfStoppedEngine, LeavesItStoppedWhereNothingWaits) {
  const std::unique_ptr<ArrayRuntime> runtime = NewRuntime();
  std::unique_ptr<KVStore> store = *KVStore::Create(*runtime, GetParam(), Rings::Alone());
  ASSERT_THAT(store->Init("w", ArrayOf(*runtime, {1}, {1})), IsOk());
  ASSERT_THAT(runtime->engine().Stop(), IsOk());
  const engine::Variable held = runtime->engine().NewVariable();
  ASSERT_THAT(runtime->engine().Push([] {}, {.writes = {&held, 1}}), IsOk());
  store.reset();
  EXPECT_THAT(runtime->engine().WaitForVar(held),
              FailsWith(absl::StatusCode::kFailedPrecondition, "stopped"));
  runtime->engine().Start();
  EXPECT_THAT(runtime->engine().WaitForVar(held), IsOk());
}

}  // namespace
}  // namespace interp::kvstore_rings_test
