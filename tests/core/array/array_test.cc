// Arrays on an engine, with ops made up for it. The library's kernels: tests/kernels.
#include "core/array/array.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "core/array/sum_arrays.h"
#include "tests/testing/arrays.h"
#include "tests/testing/sample.h"

namespace interp::array_test {
namespace {

using testing::ArrayOf;
using testing::ArrayOps;
using ::testing::ElementsAre;
using testing::Execution;
using testing::FailsWith;
using testing::FloatsOf;
using testing::Got;
using testing::IsOk;
using testing::MakeDevice;
using testing::MakeRuntime;

constexpr Place kFirst{PlaceKind::kSim, 0};
constexpr Place kSecond{PlaceKind::kSim, 1};
const auto kInvalid = absl::StatusCode::kInvalidArgument;

// Every test of this suite runs under each policy of the engine.
class Arrays : public ::testing::TestWithParam<engine::PolicyKind> {
 protected:
  std::unique_ptr<ArrayRuntime> runtime_ =
      MakeRuntime({.engine = {.policy = GetParam(), .workers = 2}, .ops = &ArrayOps::Registry()});
  Array Mix(const Array& x, const Array& y) {
    return Got(Invoke(*runtime_, "mix", {{"X", {x}}, {"Y", {y}}}));
  }
  Array Of(const std::vector<float>& values) {
    return ArrayOf(*runtime_, {static_cast<int64_t>(values.size())}, values);
  }
};
INSTANTIATE_TEST_SUITE_P(Array, Arrays,
                         ::testing::Values(engine::PolicyKind::kNaive, engine::PolicyKind::kPooled,
                                           engine::PolicyKind::kPerDevice));

TEST_P(Arrays, OpsGiveWhatTheirKernelsCompute) {
  const Array x = Of({4, 8});
  const Array y = Mix(x, x);
  EXPECT_THAT(FloatsOf(y), ElementsAre(4, 7));
  EXPECT_EQ(y.shape(), Shape({2}));
  EXPECT_EQ(y.dtype(), DType::kFloat32);
  EXPECT_THAT(FloatsOf(x), ElementsAre(4, 8));
  EXPECT_FALSE(Array());
}

TEST_P(Arrays, WhatDoesNotFitIsToldByTheCall) {
  const Array x = Of({1, 2});
  const auto mix = [&](const ArraySlots& inputs, const InvokeOptions& options = {}) {
    return Invoke(*runtime_, "mix", inputs, {}, options);
  };
  EXPECT_THAT(mix({{"X", {x}}, {"Y", {Of({1, 2, 3})}}}),
              FailsWith(kInvalid, "mix: X has shape [2], Y [3]"));
  EXPECT_THAT(mix({{"X", {x}}}), FailsWith(kInvalid, "mix: input 'Y' is missing"));
  EXPECT_THAT(mix({{"X", {x}}, {"Y", {Array()}}}), FailsWith(kInvalid, "input 'Y' is missing"));
  EXPECT_THAT(mix({{"X", {x}}, {"Y", {x}}}, {.outputs = {{"Uot", 1}}}),
              FailsWith(kInvalid, "has no output 'Uot'"));
  for (const int count : {-1, 0, 2}) {
    EXPECT_THAT(mix({{"X", {x}}, {"Y", {x}}}, {.outputs = {{"Out", count}}}),
                FailsWith(kInvalid, "expected once"));
  }
  EXPECT_THAT(mix({{"X", {x}}, {"Y", {x}}}, {.into = {{"Out", {x, Of({1, 2})}}}}),
              FailsWith(kInvalid, "expected once"));
  EXPECT_THAT(x.At(std::numeric_limits<int64_t>::max()), FailsWith(kInvalid, "row 9223"));
  EXPECT_THAT(mix({{"X", {x}}, {"Z", {x}}}), FailsWith(kInvalid, "has no input 'Z'"));
  EXPECT_THAT(mix({{"X", {x, x}}, {"Y", {x}}}), FailsWith(kInvalid, "takes one array, not 2"));
  EXPECT_THAT(
      mix({{"X", {x}}, {"Y", {x}}}, {.into = {{"Out", {Of({1})}}}}),
      FailsWith(kInvalid, "gives float32[2], to be written into an array float32[1] on cpu"));
  EXPECT_THAT(Invoke(*runtime_, "mux", {}),
              FailsWith(absl::StatusCode::kNotFound, "nearest: 'mix'"));
  const Array doubles = *runtime_->New({2}, DType::kFloat64);
  EXPECT_THAT(mix({{"X", {doubles}}, {"Y", {doubles}}}),
              FailsWith(absl::StatusCode::kUnimplemented, "has no kernel for float64"));
  EXPECT_THAT(mix({{"X", {x}}, {"Y", {doubles}}}), FailsWith(kInvalid, "its kernel takes float32"));
  EXPECT_THAT(runtime_->New({-1}, DType::kFloat32), FailsWith(kInvalid, "float32[-1]"));
  EXPECT_THAT(runtime_->New({1}, DType::kFloat32, kFirst), FailsWith(kInvalid, "not among"));
  auto other = MakeRuntime({.ops = &ArrayOps::Registry()});
  EXPECT_THAT(Invoke(*other, "mix", {{"X", {x}}, {"Y", {x}}}),
              FailsWith(kInvalid, "another runtime"));
}

TEST_P(Arrays, ErrorsOfKernelsArriveWhereAValueIsRead) {
  const Array bad = Got(Invoke(*runtime_, "fail", {{"X", {Of({13})}}}));
  const Array after = Mix(bad, bad);
  const Array good = Mix(Of({4}), Of({4}));
  const auto thirteen = FailsWith(absl::StatusCode::kDataLoss, "operation 'fail' (#");
  EXPECT_THAT(after.Read(), thirteen);
  EXPECT_THAT(bad.WaitToRead(), thirteen);
  EXPECT_THAT(bad.Read(), thirteen);
  EXPECT_THAT(FloatsOf(good), ElementsAre(4));
  // A part that is overwritten does not clear it, the whole does.
  EXPECT_THAT(bad.CopyFrom(good), IsOk());
  EXPECT_THAT(FloatsOf(bad), ElementsAre(4));
}

TEST_P(Arrays, WhatNothingHasWrittenCannotBeRead) {
  const Array x = *runtime_->New({2}, DType::kFloat32);
  EXPECT_THAT(x.Read(), FailsWith(absl::StatusCode::kNotFound, "nothing has written"));
  EXPECT_THAT(Mix(x, x).Read(), FailsWith(absl::StatusCode::kNotFound, "float32[2] on cpu"));
  EXPECT_THAT(x.CopyFrom(Of({1, 2})), IsOk());
  EXPECT_THAT(FloatsOf(x), ElementsAre(1, 2));
}

TEST_P(Arrays, ViewsShareMemory) {
  const Array x = ArrayOf(*runtime_, {3, 2}, {1, 2, 3, 4, 5, 6});
  const Array middle = *x.Slice(1, 2);
  EXPECT_EQ(middle.shape(), Shape({1, 2}));
  EXPECT_THAT(FloatsOf(middle), ElementsAre(3, 4));
  EXPECT_THAT(middle.CopyFrom(ArrayOf(*runtime_, {1, 2}, {8, 9})), IsOk());
  const Array last = *x.At(2);
  EXPECT_EQ(last.shape(), Shape({2}));
  EXPECT_THAT(
      Invoke(*runtime_, "mix", {{"X", {last}}, {"Y", {last}}}, {}, {.into = {{"Out", {last}}}}),
      IsOk());
  const Array flat = *x.Reshape({-1});
  EXPECT_THAT(FloatsOf(flat), ElementsAre(1, 2, 8, 9, 4.75, 5.5));
  EXPECT_TRUE(flat.SharesMemoryWith(middle));
  EXPECT_THAT(FloatsOf(*(*flat.Slice(2, 5)).Slice(1, 2)), ElementsAre(9));
  EXPECT_THAT(x.Slice(2, 4), FailsWith(kInvalid, "rows 2 to 4 of an array float32[3,2]"));
  EXPECT_THAT(x.Slice(2, 1), FailsWith(kInvalid, "rows 2 to 1"));
  EXPECT_THAT(x.Reshape({4, -1}), FailsWith(kInvalid, "cannot have the shape [4,-1]"));
  EXPECT_THAT(x.Reshape({-1, -1}), FailsWith(kInvalid, "cannot have the shape"));
}

TEST_P(Arrays, OutputsMayBeInputs) {
  const Array x = Of({4, 8});
  const Array y = Of({2, 4});
  const auto into = [&](const Array& a, const Array& b, const Array& out) {
    EXPECT_THAT(Invoke(*runtime_, "mix", {{"X", {a}}, {"Y", {b}}}, {}, {.into = {{"Out", {out}}}}),
                IsOk());
  };
  into(x, y, x);
  EXPECT_THAT(FloatsOf(x), ElementsAre(3, 5));
  into(x, y, y);  // no pair of the op
  EXPECT_THAT(FloatsOf(y), ElementsAre(2.75, 4.25));
  into(y, y, y);
  EXPECT_THAT(FloatsOf(y), ElementsAre(3.0625, 4.1875));
  // What was read stays.
  const absl::StatusOr<Tensor> before = x.Read();
  into(x, x, x);
  EXPECT_THAT(testing::Values<float>(*before), ElementsAre(3, 5));
  EXPECT_THAT(FloatsOf(x), ElementsAre(3.25, 4.75));
}

TEST_P(Arrays, CopiesAreNotSeenToShare) {
  const Array x = Of({1, 2});
  const Array copy = *x.CopyTo(Place{});
  const Array third = *copy.CopyTo(Place{});
  EXPECT_THAT((*x.At(0)).CopyFrom(ArrayOf(*runtime_, {}, {7})), IsOk());
  EXPECT_THAT(FloatsOf(copy), ElementsAre(1, 2));
  EXPECT_THAT(copy.CopyFrom(Of({5, 6})), IsOk());
  EXPECT_THAT(FloatsOf(x), ElementsAre(7, 2));
  EXPECT_THAT(FloatsOf(third), ElementsAre(1, 2));
  EXPECT_THAT(copy.CopyFrom(Of({5})), FailsWith(kInvalid, "cannot take the values of"));
  Tensor mine = Tensor::Of<float>({2}, {3, 4});
  EXPECT_THAT(copy.CopyFrom(mine), IsOk());
  mine.mutable_data<float>()[0] = -1;
  EXPECT_THAT(FloatsOf(copy), ElementsAre(3, 4));
}

TEST_P(Arrays, SumsOfNoArraysAreRefused) {
  EXPECT_THAT(Invoke(*runtime_, SumArraysDef(), {{"X", {Array(), Of({1})}}}),
              FailsWith(kInvalid, "none"));
}

TEST_P(Arrays, RandomOpsDrawByTheOrderOfCalls) {
  const auto draw = [&](uint64_t seed) {
    auto other = MakeRuntime(
        {.engine = {.policy = GetParam()}, .ops = &ArrayOps::Registry(), .random_seed = seed});
    std::vector<std::vector<float>> drawn;
    for (int i = 0; i < 2; ++i) {
      drawn.push_back(
          FloatsOf(Got(Invoke(*other, "random", {{"X", {ArrayOf(*other, {2}, {0, 0})}}}))));
    }
    return drawn;
  };
  const auto first = draw(1);
  EXPECT_EQ(first, draw(1));
  EXPECT_NE(first, draw(2));
  EXPECT_NE(first[0], first[1]);
}

TEST_P(Arrays, ShapesThatKernelsFindAreWaitedFor) {
  const Array found = Got(Invoke(*runtime_, "positive", {{"X", {Of({1, -2, 3})}}}));
  EXPECT_EQ(found.shape(), Shape({2}));
  EXPECT_THAT(FloatsOf(found), ElementsAre(1, 3));
  const Array none = Got(Invoke(*runtime_, "positive", {{"X", {Of({-1})}}}));
  EXPECT_EQ(none.shape(), Shape({0}));
  EXPECT_THAT(FloatsOf(none), ElementsAre());
}

TEST_P(Arrays, RowsAreReadAsRows) {
  const RowIndex index{.rows = {4, 1}, .height = 5};
  const Array rows = *runtime_->FromRows(Tensor::Of<float>({2, 2}, {1, 2, 3, 4}), index);
  EXPECT_EQ(rows.shape(), Shape({5, 2}));
  const absl::StatusOr<Array::Rows> read = rows.ReadRows();
  ASSERT_THAT(read, IsOk());
  EXPECT_THAT(read->index.rows, ElementsAre(4, 1));
  EXPECT_THAT(testing::Values<float>(read->values), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(rows.Read(), FailsWith(kInvalid, "of rows"));
  EXPECT_THAT(rows.Slice(0, 1), FailsWith(kInvalid, "rows with numbers"));
  EXPECT_THAT(Invoke(*runtime_, "hold", {{"X", {rows}}}), FailsWith(kInvalid, "array of rows"));
  EXPECT_THAT(runtime_->FromRows(Tensor::Of<float>({1, 1}, {1}), {.rows = {5}, .height = 5}),
              FailsWith(kInvalid, "row 5 is not among the 5"));
}

TEST_P(Arrays, SumsHaveOneOrder) {
  std::vector<Array> parts;
  std::vector<float> values;
  for (const float v : {1e8F, 1.0F, -1e8F, 0.5F, 3.0F}) {
    parts.push_back(Of(std::vector<float>(1000, v)));
  }
  const Array sum = Got(Invoke(*runtime_, SumArraysDef(), {{"X", parts}}));
  const float expected = ((1e8F + 1.0F) + -1e8F) + (0.5F + 3.0F);
  EXPECT_EQ(FloatsOf(sum), std::vector<float>(1000, expected));
  EXPECT_THAT(Invoke(*runtime_, SumArraysDef(), {{"X", {parts[0], Of({1})}}}),
              FailsWith(kInvalid, "the arrays differ"));
}

// Operations on arrays return while what they wait for runs.
TEST(ArrayCalls, ReturnAtOnce) {
  auto runtime = MakeRuntime({.ops = &ArrayOps::Registry()});
  ArrayOps::may_end_ = false;
  const Array x = ArrayOf(*runtime, {1}, {4});
  const Array held = Got(Invoke(*runtime, "hold", {{"X", {x}}}));
  const Array y = Got(Invoke(*runtime, "mix", {{"X", {held}}, {"Y", {x}}}));
  EXPECT_THAT(x.CopyFrom(y), IsOk());
  EXPECT_THAT(runtime->engine().WaitForVar(y.variable(), std::chrono::milliseconds(1)),
              FailsWith(absl::StatusCode::kDeadlineExceeded, ""));
  ArrayOps::may_end_ = true;
  EXPECT_THAT(FloatsOf(x), ElementsAre(4));
}

class ArraysOnDevices : public ::testing::TestWithParam<Execution> {
 protected:
  std::unique_ptr<ArrayRuntime> MakeTwo(uint64_t seed = 0) {
    const auto device = [&](int index) {
      return MakeDevice({.index = index,
                         .seed = seed,
                         .execution = GetParam(),
                         .max_kernel_delay_ns = 20'000,
                         .max_copy_delay_ns = 20'000});
    };
    return MakeRuntime({.engine = {.workers = 2, .devices = {device(0), device(1)}},
                        .ops = &ArrayOps::Registry()});
  }
};
INSTANTIATE_TEST_SUITE_P(Array, ArraysOnDevices,
                         ::testing::Values(Execution::kThreads, Execution::kInterleaved),
                         testing::NameOf);

TEST_P(ArraysOnDevices, OpsRunWhereTheirInputsLie) {
  auto runtime = MakeTwo();
  const Array x = ArrayOf(*runtime, {2}, {4, 8}, kFirst);
  const Array y = Got(Invoke(*runtime, "mix", {{"X", {x}}, {"Y", {x}}}));
  EXPECT_EQ(y.place(), kFirst);
  const Array z = *y.CopyTo(kSecond);
  EXPECT_THAT(FloatsOf(z), ElementsAre(4, 7));
  EXPECT_THAT(FloatsOf(*z.At(1)), ElementsAre(7));
  EXPECT_THAT(Invoke(*runtime, "mix", {{"X", {x}}, {"Y", {z}}}),
              FailsWith(kInvalid, "has inputs on sim:0 and sim:1"));
  EXPECT_THAT(Invoke(*runtime, "positive", {{"X", {x}}}), FailsWith(kInvalid, "on the host alone"));
  const Array bad = ArrayOf(*runtime, {1}, {13}, kSecond);
  EXPECT_THAT(Got(Invoke(*runtime, "fail", {{"X", {bad}}})).Read(),
              FailsWith(absl::StatusCode::kDataLoss, "thirteen"));
}

// The device that gets the values copies them, and the host takes no part.
TEST_P(ArraysOnDevices, CopiesBetweenDevicesAreOneOperation) {
  std::vector<std::shared_ptr<Device>> devices;
  for (const int index : {0, 1}) {
    devices.push_back(MakeDevice({.index = index, .execution = GetParam()}));
  }
  auto runtime =
      MakeRuntime({.engine = {.workers = 2, .devices = devices}, .ops = &ArrayOps::Registry()});
  const Array x = ArrayOf(*runtime, {2}, {4, 8}, kFirst);
  ASSERT_THAT(runtime->WaitForAll(), IsOk());
  for (const auto& device : devices) device->StartTrace();
  const Array y = *x.CopyTo(kSecond);
  ASSERT_THAT((*y.At(1)).CopyFrom(*x.At(0)), IsOk());
  ASSERT_THAT(runtime->WaitForAll(), IsOk());
  EXPECT_EQ(devices[0]->StopTrace().size(), 0);
  const std::vector<DeviceSpan> spans = devices[1]->StopTrace();
  ASSERT_EQ(spans.size(), 2);
  EXPECT_EQ(spans[0].kind, WorkKind::kPeerToPeer);
  EXPECT_EQ(spans[1].bytes, 4);
  EXPECT_THAT(FloatsOf(y), ElementsAre(4, 4));
}

// Devices copy no range into one that it overlaps.
TEST_P(ArraysOnDevices, ViewsThatOverlapAreCopied) {
  auto runtime = MakeTwo();
  for (const Place place : {Place{}, kFirst}) {
    const Array x = ArrayOf(*runtime, {5}, {1, 2, 3, 4, 5}, place);
    ASSERT_THAT((*x.Slice(0, 4)).CopyFrom(*x.Slice(1, 5)), IsOk());
    EXPECT_THAT(FloatsOf(x), ElementsAre(2, 3, 4, 5, 5));
    ASSERT_THAT((*x.Slice(2, 5)).CopyFrom(*x.Slice(0, 3)), IsOk());
    EXPECT_THAT(FloatsOf(x), ElementsAre(2, 3, 2, 3, 4));
    ASSERT_THAT((*x.Slice(0, 2)).CopyFrom(*x.Slice(3, 5)), IsOk());
    EXPECT_THAT(FloatsOf(x), ElementsAre(3, 4, 2, 3, 4));
  }
}

// Random operations of all kinds on arrays and views at three places give what one after the other
// would.
TEST_P(ArraysOnDevices, RandomOperationsEqualTheSequentialOnes) {
  constexpr int kArrays = 6;
  constexpr int kRows = 3;
  for (uint64_t seed = 0; seed < testing::SampleOf<uint64_t>(4, 12); ++seed) {
    auto runtime = MakeTwo(seed);
    std::mt19937_64 random(seed);
    std::vector<Array> arrays;
    std::vector<std::vector<float>> expected;
    for (int i = 0; i < kArrays; ++i) {
      expected.emplace_back(kRows * 2, static_cast<float>(i));
      const Place place = i % 3 == 0 ? Place{} : i % 3 == 1 ? kFirst : kSecond;
      arrays.push_back(ArrayOf(*runtime, {kRows, 2}, expected.back(), place));
    }
    std::vector<std::pair<Tensor, std::vector<float>>> reads;
    for (int step = 0; step < 300; ++step) {
      const size_t a = random() % kArrays;
      const size_t b = random() % kArrays;
      const bool same_place = arrays[a].place() == arrays[b].place();
      const int64_t from = static_cast<int64_t>(random() % kRows);
      const int64_t to = static_cast<int64_t>(random() % kRows);
      switch (random() % 5) {
        case 0:
          ASSERT_THAT(arrays[a].CopyFrom(arrays[b]), IsOk());
          expected[a] = expected[b];
          break;
        case 1:
          if (a == b) break;
          ASSERT_THAT((*arrays[a].At(to)).CopyFrom(*arrays[b].At(from)), IsOk());
          for (int k = 0; k < 2; ++k) expected[a][to * 2 + k] = expected[b][from * 2 + k];
          break;
        case 2:
          if (!same_place) break;
          ASSERT_THAT(Invoke(*runtime, "mix", {{"X", {arrays[a]}}, {"Y", {arrays[b]}}}, {},
                             {.into = {{"Out", {arrays[a]}}}}),
                      IsOk());
          for (int k = 0; k < kRows * 2; ++k) {
            expected[a][k] = expected[a][k] / 4 + expected[b][k] / 2 + 1;
          }
          break;
        case 3:
          if (!same_place) break;
          arrays[a] = Got(Invoke(*runtime, "mix", {{"X", {arrays[b]}}, {"Y", {arrays[a]}}}));
          for (int k = 0; k < kRows * 2; ++k) {
            expected[a][k] = expected[b][k] / 4 + expected[a][k] / 2 + 1;
          }
          break;
        default:
          if (step % 7 == 0) reads.emplace_back(*arrays[a].Read(), expected[a]);
      }
    }
    for (int i = 0; i < kArrays; ++i) EXPECT_EQ(FloatsOf(arrays[i]), expected[i]) << seed;
    for (const auto& [read, values] : reads) EXPECT_EQ(testing::Values<float>(read), values);
  }
}

}  // namespace
}  // namespace interp::array_test
