// The library's optimizers as updaters of a store.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/kvstore/kvstore.h"
#include "tests/testing/arrays.h"

namespace interp {
namespace {

using testing::ArrayOf;
using ::testing::ElementsAre;
using testing::FailsWith;
using testing::FloatsOf;
using testing::IsOk;

constexpr Place kSim{PlaceKind::kSim, 0};

class StoreOptimizers : public ::testing::TestWithParam<const char*> {
 protected:
  std::shared_ptr<Device> device_ = testing::MakeDevice({});
  std::unique_ptr<ArrayRuntime> runtime_ =
      testing::MakeRuntime({.engine = {.workers = 2, .devices = {device_}}});
  std::unique_ptr<KVStore> store_ = *KVStore::Create(*runtime_, GetParam());

  // What is stored of {1, 2} after two pushes of {1, -2} from each of two places.
  std::vector<float> Trained(const StoreOptimizerOptions& options) {
    EXPECT_THAT(store_->SetOptimizer(options), IsOk());
    EXPECT_THAT(store_->Init("w", ArrayOf(*runtime_, {2}, {1, 2})), IsOk());
    const Array out = *runtime_->New({2}, DType::kFloat32);
    for (int i = 0; i < 2; ++i) {
      const Array gradient = ArrayOf(*runtime_, {2}, {1, -2});
      const Array on_device = ArrayOf(*runtime_, {2}, {1, -2}, kSim);
      EXPECT_THAT(store_->PushPull("w", {gradient, on_device}, {out}), IsOk());
    }
    return FloatsOf(out);
  }
};
INSTANTIATE_TEST_SUITE_P(KVStore, StoreOptimizers, ::testing::Values("local", "device"));

TEST_P(StoreOptimizers, GradientsAreSummedAndRescaled) {
  EXPECT_THAT(Trained({.learning_rate = 0.25, .rescale = 0.5}), ElementsAre(0.5, 3));
}

TEST_P(StoreOptimizers, StateIsKeptByKey) {
  // v = mu v + g; w -= rate v, with g = {2, -4}.
  EXPECT_THAT(Trained({.type = "momentum", .learning_rate = 0.25, .attrs = {{"mu", 0.5F}}}),
              ElementsAre(-0.25, 4.5));
}

TEST_P(StoreOptimizers, StatesOfOneElementBeginAsTold) {
  const std::vector<float> w = Trained(
      {.type = "adam", .learning_rate = 0.1, .scalars = {{"Beta1Pow", 0.9}, {"Beta2Pow", 0.999}}});
  // The same gradient each time: each step is the learning rate.
  EXPECT_NEAR(w[0], 0.8, 1e-5);
  EXPECT_NEAR(w[1], 2.2, 1e-5);
}

TEST_P(StoreOptimizers, WhatIsNoOptimizerIsRefused) {
  EXPECT_THAT(store_->SetOptimizer({.type = "relu"}),
              FailsWith(absl::StatusCode::kInvalidArgument, "'relu' is no optimizer"));
  EXPECT_THAT(store_->SetOptimizer({.type = "sdg"}),
              FailsWith(absl::StatusCode::kNotFound, "nearest: 'sgd'"));
}

TEST(StoreRows, UpdateSomeRowsOfATable) {
  auto runtime = testing::MakeRuntime({});
  const auto store = *KVStore::Create(*runtime, "local");
  ASSERT_THAT(store->SetOptimizer({.learning_rate = 0.5}), IsOk());
  ASSERT_THAT(store->Init("t", ArrayOf(*runtime, {3, 1}, {1, 2, 3})), IsOk());
  const Array rows =
      *runtime->FromRows(Tensor::Of<float>({2, 1}, {2, 4}), {.rows = {2, 0}, .height = 3});
  ASSERT_THAT(store->Push("t", {rows, rows}), IsOk());
  const Array out = *runtime->New({3, 1}, DType::kFloat32);
  ASSERT_THAT(store->Pull("t", {out}), IsOk());
  EXPECT_THAT(FloatsOf(out), ElementsAre(-3, 2, 1));
}

TEST(StoreRows, AreRescaled) {
  auto runtime = testing::MakeRuntime({});
  const auto store = *KVStore::Create(*runtime, "local");
  ASSERT_THAT(store->SetOptimizer({.learning_rate = 1, .rescale = 0.5}), IsOk());
  ASSERT_THAT(store->Init("t", ArrayOf(*runtime, {2, 1}, {1, 2})), IsOk());
  const Array rows = *runtime->FromRows(Tensor::Of<float>({1, 1}, {4}), {.rows = {1}, .height = 2});
  ASSERT_THAT(store->Push("t", {rows}), IsOk());
  const Array out = *runtime->New({2, 1}, DType::kFloat32);
  ASSERT_THAT(store->Pull("t", {out}), IsOk());
  EXPECT_THAT(FloatsOf(out), ElementsAre(1, 0));
}

}  // namespace
}  // namespace interp
