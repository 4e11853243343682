// Stores on arrays. The library's optimizers on a store: tests/kernels.
#include "core/kvstore/kvstore.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/testing/arrays.h"
#include "tests/testing/history.h"
#include "tests/testing/rank_stores.h"
#include "tests/testing/sample.h"

namespace interp::kvstore_test {
namespace {

using testing::AddTo;
using testing::ArrayOf;
using testing::ArrayOps;
using ::testing::ElementsAre;
using testing::FailsWith;
using testing::FloatsOf;
using testing::Got;
using testing::IsOk;
using testing::MakeDevice;
using testing::MakeRuntime;
using testing::StoreCall;
using testing::WhyNotLinearizable;

constexpr Place kFirst{PlaceKind::kSim, 0};
constexpr Place kSecond{PlaceKind::kSim, 1};
const auto kInvalid = absl::StatusCode::kInvalidArgument;

// Every test of this suite runs with both kinds.
class Stores : public ::testing::TestWithParam<const char*> {
 protected:
  Stores() {
    runtime_ = MakeRuntime(
        {.engine = {.workers = 2, .devices = {MakeDevice({.index = 0}), MakeDevice({.index = 1})}},
         .ops = &ArrayOps::Registry()});
    store_ = *KVStore::Create(*runtime_, GetParam());
  }
  Array Of(const std::vector<float>& values, Place place = {}) {
    return ArrayOf(*runtime_, {static_cast<int64_t>(values.size())}, values, place);
  }
  std::vector<float> Pulled(absl::string_view key, int64_t count) {
    const Array out = *runtime_->New({count}, DType::kFloat32);
    EXPECT_THAT(store_->Pull(key, {out}), IsOk());
    return FloatsOf(out);
  }
  std::unique_ptr<ArrayRuntime> runtime_;
  std::unique_ptr<KVStore> store_;
};
INSTANTIATE_TEST_SUITE_P(KVStore, Stores, ::testing::Values("local", "device"));

TEST_P(Stores, PushesAreAddedUpAndReplaceWhatIsStored) {
  ASSERT_THAT(store_->Init("w", Of({10, 20})), IsOk());
  EXPECT_THAT(Pulled("w", 2), ElementsAre(10, 20));
  EXPECT_THAT(store_->Push("w", {Of({1, 2}, kFirst), Of({10, 20}, kSecond), Of({100, 200})}),
              IsOk());
  EXPECT_THAT(Pulled("w", 2), ElementsAre(111, 222));
  const Array out = *runtime_->New({2}, DType::kFloat32, kSecond);
  EXPECT_THAT(store_->PushPull("w", {Of({5, 6}, kFirst)}, {out}), IsOk());
  EXPECT_THAT(FloatsOf(out), ElementsAre(5, 6));
}

TEST_P(Stores, PushedAndPulledArraysAreNotAliased) {
  ASSERT_THAT(store_->Init("w", Of({0})), IsOk());
  for (const Place place : {Place{}, kFirst, kSecond}) {
    const Array pushed = Of({1}, place);
    EXPECT_THAT(store_->Push("w", {pushed}), IsOk());
    EXPECT_THAT(pushed.CopyFrom(Of({7})), IsOk());
    EXPECT_THAT(Pulled("w", 1), ElementsAre(1));
    const Array out = *runtime_->New({1}, DType::kFloat32, place);
    EXPECT_THAT(store_->Pull("w", {out}), IsOk());
    EXPECT_THAT(out.CopyFrom(Of({9})), IsOk());
    EXPECT_THAT(Pulled("w", 1), ElementsAre(1));
    EXPECT_THAT(FloatsOf(out), ElementsAre(9));
  }
}

TEST_P(Stores, UpdatersTakeTheSum) {
  store_->SetUpdater(AddTo);
  ASSERT_THAT(store_->Init("w", Of({1})), IsOk());
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(store_->Push("w", {Of({2}, kFirst), Of({3}, kSecond)}, -i), IsOk());
  }
  EXPECT_THAT(Pulled("w", 1), ElementsAre(16));
}

TEST_P(Stores, SumsHaveTheSameBitsWhereverTheyLie) {
  std::mt19937 random(1);
  std::vector<std::vector<float>> parts(7, std::vector<float>(100));
  for (auto& part : parts) {
    for (float& v : part) v = static_cast<float>(random()) * ((random() & 1) != 0 ? 1e-3F : -1.0F);
  }
  std::vector<Array> on_host;
  for (const auto& part : parts) on_host.push_back(Of(part));
  const std::vector<float> expected =
      FloatsOf(Got(Invoke(*runtime_, SumArraysDef(), {{"X", on_host}})));
  for (int round = 0; round < 4; ++round) {
    const std::string key = absl::StrCat("w", round);
    ASSERT_THAT(store_->Init(key, on_host[0]), IsOk());
    std::vector<Array> values;
    for (const auto& part : parts) {
      const Place places[] = {{}, kFirst, kSecond};
      values.push_back(Of(part, places[random() % 3]));
    }
    EXPECT_THAT(store_->Push(key, values), IsOk());
    EXPECT_EQ(Pulled(key, 100), expected);
  }
}

// The figures of MXNet 1.9.1's store of kind `device`.
TEST_P(Stores, CompressionFeedsBackWhatItLeaves) {
  ASSERT_THAT(store_->SetCompression({.threshold = 0.5F}), IsOk());
  ASSERT_THAT(store_->Init("g", Of({0, 0, 0, 0, 0})), IsOk());
  const std::vector<float> gradient = {0.3F, 0.6F, -0.2F, -0.7F, 1.4F};
  const std::vector<std::vector<float>> expected = {
      {0, 1, 0, -1, 1}, {1, 1, 0, -1, 1}, {0, 1, -1, -1, 1}};
  for (const std::vector<float>& sum : expected) {
    EXPECT_THAT(store_->Push("g", {Of(gradient, kFirst), Of(gradient, kSecond)}), IsOk());
    EXPECT_EQ(Pulled("g", 5), sum);
  }
  EXPECT_THAT(store_->SetCompression({.threshold = 0}), FailsWith(kInvalid, "above zero"));
}

TEST_P(Stores, RowsArePulledByNumber) {
  const Array table = ArrayOf(*runtime_, {4, 2}, {0, 1, 10, 11, 20, 21, 30, 31});
  ASSERT_THAT(store_->Init("t", table), IsOk());
  const Array out = *runtime_->NewRows({4, 2}, DType::kFloat32);
  ASSERT_THAT(store_->PullRows("t", {3, 1, 3}, out), IsOk());
  const absl::StatusOr<Array::Rows> rows = out.ReadRows();
  ASSERT_THAT(rows, IsOk());
  EXPECT_THAT(rows->index.rows, ElementsAre(1, 3));
  EXPECT_THAT(testing::Values<float>(rows->values), ElementsAre(10, 11, 30, 31));
  EXPECT_THAT(store_->PullRows("t", {4}, out), FailsWith(kInvalid, "row 4 is not among the 4"));
  EXPECT_THAT(store_->PullRows("t", {0}, table), FailsWith(kInvalid, "expected rows of"));
  EXPECT_THAT(store_->Push("t", {out}), FailsWith(kInvalid, "they need an updater"));
}

TEST_P(Stores, PushedRowsAreJoined) {
  ASSERT_THAT(store_->Init("t", ArrayOf(*runtime_, {4, 1}, {0, 0, 0, 0})), IsOk());
  Array seen;
  store_->SetUpdater([&](absl::string_view key, const Array& pushed, const Array& /*stored*/) {
    EXPECT_EQ(key, "t");
    seen = pushed;
    return absl::OkStatus();
  });
  const auto rows = [&](std::vector<int64_t> numbers, const std::vector<float>& values) {
    return *runtime_->FromRows(Tensor::Of<float>({static_cast<int64_t>(values.size()), 1}, values),
                               {.rows = std::move(numbers), .height = 4});
  };
  const absl::Status pushed = store_->Push("t", {rows({1, 3}, {5, 6}), rows({3}, {7})});
  if (store_->kind() == "device") {
    EXPECT_THAT(pushed, FailsWith(kInvalid, "and a store of kind local"));
    return;
  }
  ASSERT_THAT(pushed, IsOk());
  const absl::StatusOr<Array::Rows> read = seen.ReadRows();
  ASSERT_THAT(read, IsOk());
  EXPECT_THAT(read->index.rows, ElementsAre(1, 3, 3));
  EXPECT_THAT(testing::Values<float>(read->values), ElementsAre(5, 6, 7));
}

TEST_P(Stores, MistakesAreToldByTheCall) {
  ASSERT_THAT(store_->Init("w", Of({1, 2})), IsOk());
  EXPECT_THAT(store_->Init("w", Of({1})),
              FailsWith(absl::StatusCode::kAlreadyExists, "key 'w' is in the store already"));
  EXPECT_THAT(store_->Push("v", {Of({1})}),
              FailsWith(absl::StatusCode::kNotFound, "the store has no key 'v'"));
  EXPECT_THAT(store_->Push("w", {}), FailsWith(kInvalid, "nothing is pushed"));
  EXPECT_THAT(
      store_->Push("w", {Of({1})}),
      FailsWith(kInvalid, "key 'w' is pushed float32[1] on cpu, expected one like float32[2]"));
  EXPECT_THAT(store_->Pull("w", {Of({1})}), FailsWith(kInvalid, "is pulled into float32[1]"));
  EXPECT_THAT(store_->Init("x", Array()), FailsWith(kInvalid, "no array"));
}

TEST_P(Stores, ErrorsOfWhatIsPushedArriveAtThePull) {
  ASSERT_THAT(store_->Init("w", Of({1})), IsOk());
  const Array bad = Got(Invoke(*runtime_, "fail", {{"X", {Of({13})}}}));
  ASSERT_THAT(store_->Push("w", {bad}), IsOk());
  const Array out = *runtime_->New({1}, DType::kFloat32);
  ASSERT_THAT(store_->Pull("w", {out}), IsOk());
  EXPECT_THAT(out.Read(), FailsWith(absl::StatusCode::kDataLoss, "operation 'fail'"));
  ASSERT_THAT(store_->Push("w", {Of({3})}), IsOk());
  EXPECT_THAT(Pulled("w", 1), ElementsAre(3));
}

TEST_P(Stores, CompressionGoesOnAfterAnError) {
  ASSERT_THAT(store_->SetCompression({.threshold = 0.5F}), IsOk());
  ASSERT_THAT(store_->Init("w", Of({0})), IsOk());
  const Array bad = Got(Invoke(*runtime_, "fail", {{"X", {Of({13})}}}));
  ASSERT_THAT(store_->Push("w", {bad}), IsOk());
  (void)runtime_->WaitForAll();
  ASSERT_THAT(store_->Push("w", {Of({1})}), IsOk());
  EXPECT_THAT(Pulled("w", 1), ElementsAre(0.5F));
}

// Else it would be sent as nothing, and all that follows with it.
TEST_P(Stores, CompressionOfWhatIsNotFiniteFailsAndLeavesNothing) {
  ASSERT_THAT(store_->SetCompression({.threshold = 0.5F}), IsOk());
  ASSERT_THAT(store_->Init("w", Of({0, 0})), IsOk());
  for (const float value : {std::nanf(""), HUGE_VALF, -HUGE_VALF}) {
    ASSERT_THAT(store_->Push("w", {Of({0.4F, value})}), IsOk());
    const Array out = *runtime_->New({2}, DType::kFloat32);
    ASSERT_THAT(store_->Pull("w", {out}), IsOk());
    EXPECT_THAT(out.Read(), FailsWith(kInvalid, "element 1, which two bits do not tell"));
    ASSERT_THAT(store_->Push("w", {Of({0.3F, 1})}), IsOk());
    EXPECT_THAT(Pulled("w", 2), ElementsAre(0, 0.5F));
    ASSERT_THAT(store_->Push("w", {Of({-0.3F, -0.5F})}), IsOk());  // nothing is left
  }
}

// The pushes behind it are made before it fails.
TEST_P(Stores, CompressionGoesOnBehindAnErrorThatIsStillToCome) {
  ASSERT_THAT(store_->SetCompression({.threshold = 0.5F}), IsOk());
  for (const Place place : {Place{}, kFirst}) {
    const std::string key = absl::StrCat("w on ", Name(place));
    ASSERT_THAT(store_->Init(key, Of({0})), IsOk());
    ArrayOps::may_end_ = false;
    const Array held = Got(Invoke(*runtime_, "hold", {{"X", {Of({13})}}}));
    const Array bad = Got(Got(Invoke(*runtime_, "fail", {{"X", {held}}})).CopyTo(place));
    for (const Array& value : {Of({0.2F}, place), bad, Of({1}, place), Of({0.3F}, place)}) {
      EXPECT_THAT(store_->Push(key, {value}), IsOk());
    }
    ArrayOps::may_end_ = true;
    // It begins anew at zero: 1 is sent as 0.5, and what that leaves goes with 0.3.
    EXPECT_THAT(Pulled(key, 1), ElementsAre(0.5F));
    EXPECT_THAT(store_->Push(key, {Of({0.1F}, place)}), IsOk());
    EXPECT_THAT(Pulled(key, 1), ElementsAre(0));
  }
}

TEST_P(Stores, WhatUpdatersThrowIsAnErrorOfThePush) {
  ASSERT_THAT(store_->Init("w", Of({1})), IsOk());
  store_->SetUpdater([](absl::string_view, const Array&, const Array&) -> absl::Status {
    throw std::runtime_error("thrown");
  });
  EXPECT_THAT(store_->Push("w", {Of({2})}), FailsWith(absl::StatusCode::kInternal, "thrown"));
  store_->SetUpdater(
      [](absl::string_view, const Array&, const Array&) -> absl::Status { throw 3; });
  EXPECT_THAT(store_->Push("w", {Of({2})}),
              FailsWith(absl::StatusCode::kInternal, "no std::exception"));
  store_->SetUpdater(AddTo);
  EXPECT_THAT(store_->Push("w", {Of({2})}), IsOk());
  EXPECT_THAT(Pulled("w", 1), ElementsAre(3));
}

TEST_P(Stores, CallsWithinOperationsAreRefused) {
  ASSERT_THAT(store_->Init("w", Of({0})), IsOk());
  const Array value = Of({1});
  const engine::Variable done = runtime_->engine().NewVariable();
  absl::Status within;
  ASSERT_THAT(runtime_->engine().Push([&] { within = store_->Push("w", {value}); },
                                      {.writes = {&done, 1}}, {.name = "push"}),
              IsOk());
  ASSERT_THAT(runtime_->engine().WaitForVar(done), IsOk());
  EXPECT_THAT(within, FailsWith(absl::StatusCode::kFailedPrecondition, "within an operation"));
  ASSERT_THAT(runtime_->engine().DeleteVariable(done), IsOk());
}

// Pushes that add different bits, from several threads and several devices at once.
TEST_P(Stores, CallsOnOneKeyAreLinearizable) {
  store_->SetUpdater(AddTo);
  for (int round = 0; round < testing::SampleOf(3, 10); ++round) {
    const std::string key = absl::StrCat("k", round);
    const auto number = [&](int64_t value) { return Tensor::Of<int64_t>({1}, {value}); };
    ASSERT_THAT(store_->Init(key, *runtime_->FromTensor(number(0))), IsOk());
    constexpr int kThreads = 3;
    constexpr int kCalls = 20;
    std::atomic<int64_t> clock{0};
    std::vector<std::vector<StoreCall>> calls(kThreads);
    std::vector<std::vector<Array>> pulled(kThreads);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        std::mt19937 random(round * kThreads + t);
        for (int i = 0; i < kCalls; ++i) {
          const Place places[] = {{}, kFirst, kSecond};
          const Place place = places[random() % 3];
          StoreCall call{.pull = random() % 2 == 0, .bits = uint64_t{1} << (t * kCalls + i)};
          const Array array = call.pull ? *runtime_->New({1}, DType::kInt64, place)
                                        : *runtime_->FromTensor(number(call.bits), place);
          call.begin = clock++;
          EXPECT_THAT(call.pull ? store_->Pull(key, {array}) : store_->Push(key, {array}), IsOk());
          call.end = clock++;
          calls[t].push_back(call);
          if (call.pull) pulled[t].push_back(array);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    std::vector<StoreCall> all;
    for (int t = 0; t < kThreads; ++t) {
      auto array = pulled[t].begin();
      for (StoreCall call : calls[t]) {
        if (call.pull) {
          const absl::StatusOr<Tensor> value = (array++)->Read();
          ASSERT_THAT(value, IsOk());
          call.bits = static_cast<uint64_t>(value->data<int64_t>()[0]);
        }
        all.push_back(call);
      }
    }
    EXPECT_EQ(WhyNotLinearizable(all), "");
  }
}

TEST(StoreHistory, TheCheckerFindsWhatIsWrong) {
  const StoreCall push1{.bits = 1, .begin = 0, .end = 1};
  const StoreCall push2{.bits = 2, .begin = 2, .end = 3};
  const auto pull = [](uint64_t bits, int64_t begin) {
    return StoreCall{.pull = true, .bits = bits, .begin = begin, .end = begin + 1};
  };
  EXPECT_EQ(WhyNotLinearizable({push1, push2, pull(3, 4), pull(3, 6)}), "");
  EXPECT_THAT(WhyNotLinearizable({push1, push2, pull(1, 4)}), ::testing::HasSubstr("misses"));
  EXPECT_THAT(WhyNotLinearizable({pull(1, -3), push1}), ::testing::HasSubstr("sees the push 1"));
  const StoreCall wide1{.bits = 1, .begin = 0, .end = 9};
  const StoreCall wide2{.bits = 2, .begin = 0, .end = 9};
  EXPECT_EQ(WhyNotLinearizable({wide1, wide2, pull(2, 3), pull(3, 5)}), "");
  EXPECT_THAT(WhyNotLinearizable({wide1, wide2, pull(1, 3), pull(2, 5)}),
              ::testing::HasSubstr("two orders"));
  EXPECT_THAT(WhyNotLinearizable({wide1, wide2, pull(3, 3), pull(2, 5)}),
              ::testing::HasSubstr("saw less"));
  EXPECT_THAT(WhyNotLinearizable({{.bits = 1, .begin = 0, .end = 1},
                                  {.bits = 2, .begin = 2, .end = 9},
                                  {.pull = true, .bits = 2, .begin = -1, .end = 9}}),
              ::testing::HasSubstr("without 1"));
}

TEST(StoreKinds, UnknownOnesAreRefused) {
  auto runtime = MakeRuntime({});
  EXPECT_THAT(KVStore::Create(*runtime, "lokal"),
              FailsWith(kInvalid, "no kind of store is named 'lokal'; there are: local device"));
  EXPECT_THAT(KVStore::Create(*runtime, "dist_async"), FailsWith(kInvalid, "needs rings of ranks"));
}

// A push and a pull return, and other keys go on, while what is pushed is not there yet.
TEST(StoreCalls, ReturnAtOnce) {
  auto runtime = MakeRuntime({.engine = {.workers = 2}, .ops = &ArrayOps::Registry()});
  const auto store = *KVStore::Create(*runtime, "local");
  const Array one = ArrayOf(*runtime, {1}, {1});
  ASSERT_THAT(store->Init("a", one), IsOk());
  ASSERT_THAT(store->Init("b", one), IsOk());
  ArrayOps::may_end_ = false;
  const Array held = Got(Invoke(*runtime, "hold", {{"X", {ArrayOf(*runtime, {1}, {5})}}}));
  const Array a = *runtime->New({1}, DType::kFloat32);
  const Array b = *runtime->New({1}, DType::kFloat32);
  ASSERT_THAT(store->PushPull("a", {held}, {a}), IsOk());
  ASSERT_THAT(store->PushPull("b", {ArrayOf(*runtime, {1}, {6})}, {b}), IsOk());
  EXPECT_THAT(FloatsOf(b), ElementsAre(6));
  EXPECT_THAT(runtime->engine().WaitForVar(a.variable(), std::chrono::milliseconds(1)),
              FailsWith(absl::StatusCode::kDeadlineExceeded, ""));
  ArrayOps::may_end_ = true;
  EXPECT_THAT(FloatsOf(a), ElementsAre(5));
}

}  // namespace
}  // namespace interp::kvstore_test
