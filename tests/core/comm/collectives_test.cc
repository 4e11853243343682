// Collectives over ranks that are threads, against a plain model.
#include "core/comm/collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <complex>
#include <cstring>
#include <numeric>

#include "core/comm/rings.h"
#include "tests/testing/rank_team.h"
#include "tests/testing/sample.h"

namespace interp::collectives_test {
namespace {

using testing::OnAllRanks;

constexpr CommOptions kChecked{.timeout = std::chrono::seconds(60), .check = true};

// Small numbers, so that no sum of eight leaves the range of any dtype but of 8 bits.
template <typename T>
T ValueOf(int rank, int64_t i) {
  const int value = static_cast<int>((i * 7 + rank * 3) % 11) - 4;
  if constexpr (std::is_same_v<T, bool>) {
    return value > 0;
  } else if constexpr (std::is_unsigned_v<T>) {
    return static_cast<T>(value + 4);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(value);
  } else {
    return static_cast<T>(static_cast<float>(value) * 0.37F);
  }
}

template <typename T>
std::vector<T> Values(int rank, int64_t count) {
  std::vector<T> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(ValueOf<T>(rank, i));
  return values;
}

// As the documentation of ReduceParts says it, in the order of the ranks.
template <typename T>
T Model(ReduceKind kind, int size, int64_t i) {
  using C = std::conditional_t<sizeof(T) == 2 && !std::is_integral_v<T>, float, T>;
  C result = static_cast<C>(ValueOf<T>(0, i));
  for (int rank = 1; rank < size; ++rank) {
    const C value = static_cast<C>(ValueOf<T>(rank, i));
    if (kind == ReduceKind::kSum) {
      if constexpr (std::is_same_v<T, bool>) {
        result = result || value;
      } else {
        result = static_cast<C>(result + value);
      }
    }
    if (kind == ReduceKind::kProd) {
      if constexpr (std::is_same_v<T, bool>) {
        result = result && value;
      } else {
        result = static_cast<C>(result * value);
      }
    }
    if constexpr (!std::is_same_v<T, std::complex<float>>) {
      if (kind == ReduceKind::kMax) result = std::max(result, value);
      if (kind == ReduceKind::kMin) result = std::min(result, value);
    }
  }
  return static_cast<T>(result);
}

template <typename T>
bool SameBytes(const T* a, const T* b, int64_t count) {
  return count == 0 || std::memcmp(a, b, static_cast<size_t>(count) * sizeof(T)) == 0;
}

// `values` as an array: there is no std::vector<bool>::data.
template <typename T>
std::unique_ptr<T[]> ArrayOf(const std::vector<T>& values) {
  auto array = std::make_unique<T[]>(values.size() + 1);
  std::copy(values.begin(), values.end(), array.get());
  return array;
}

template <typename T>
absl::Status CheckReductions(Communicator& ring, int64_t count, bool in_place) {
  for (const auto kind :
       {ReduceKind::kSum, ReduceKind::kMax, ReduceKind::kMin, ReduceKind::kProd}) {
    if (!CheckReducible(DTypeOf<T>, kind).ok()) continue;
    const auto in = ArrayOf(Values<T>(ring.rank(), count));
    const auto out = std::make_unique<T[]>(count + 1);
    T* const to = in_place ? in.get() : out.get();
    std::vector<T> model;
    for (int64_t i = 0; i < count; ++i) model.push_back(Model<T>(kind, ring.size(), i));
    const auto expected = ArrayOf(model);
    INTERP_RETURN_IF_ERROR(ring.Run({.kind = CommKind::kAllReduce,
                                     .dtype = DTypeOf<T>,
                                     .reduce = kind,
                                     .count = count,
                                     .in = in.get(),
                                     .out = to}));
    if (!SameBytes(to, expected.get(), count)) {
      return absl::InternalError(absl::StrCat("all-reduce ", Name(kind), " of ", Name(DTypeOf<T>)));
    }
    const int root = static_cast<int>(count % ring.size());
    const auto again = ArrayOf(Values<T>(ring.rank(), count));
    INTERP_RETURN_IF_ERROR(ring.Run({.kind = CommKind::kReduce,
                                     .dtype = DTypeOf<T>,
                                     .reduce = kind,
                                     .root = root,
                                     .count = count,
                                     .in = again.get(),
                                     .out = out.get()}));
    if (ring.rank() == root && !SameBytes(out.get(), expected.get(), count)) {
      return absl::InternalError(absl::StrCat("reduce ", Name(kind), " of ", Name(DTypeOf<T>)));
    }
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status CheckMoves(Communicator& ring, int64_t count) {
  const int n = ring.size();
  const auto in = ArrayOf(Values<T>(ring.rank(), count * n));
  const auto out = std::make_unique<T[]>(count * n + 1);
  const auto wrong = [&](CommKind kind) {
    return absl::InternalError(absl::StrCat(Name(kind), " of ", count, " ", Name(DTypeOf<T>)));
  };
  const auto run = [&](CommKind kind, int root = 0) {
    return ring.Run({.kind = kind,
                     .dtype = DTypeOf<T>,
                     .root = root,
                     .count = count,
                     .in = in.get(),
                     .out = out.get()});
  };
  for (int root = 0; root < n; ++root) {
    INTERP_RETURN_IF_ERROR(run(CommKind::kBroadcast, root));
    for (int64_t i = 0; i < count; ++i) {
      if (!(out[i] == ValueOf<T>(root, i))) return wrong(CommKind::kBroadcast);
    }
  }
  for (int root = 0; root < n; ++root) {
    const auto rows = ArrayOf(Values<T>(ring.rank(), count * n));
    T* const to = root % 2 == 0 ? out.get() : rows.get();
    INTERP_RETURN_IF_ERROR(ring.Run({.kind = CommKind::kScatter,
                                     .dtype = DTypeOf<T>,
                                     .root = root,
                                     .count = count,
                                     .in = rows.get(),
                                     .out = to}));
    for (int64_t i = 0; i < count; ++i) {
      if (!(to[i] == ValueOf<T>(root, count * ring.rank() + i))) return wrong(CommKind::kScatter);
    }
  }
  INTERP_RETURN_IF_ERROR(run(CommKind::kAllGather));
  for (int64_t i = 0; i < count * n; ++i) {
    const int from = static_cast<int>(i / count);
    if (!(out[i] == ValueOf<T>(from, i % count))) return wrong(CommKind::kAllGather);
  }
  INTERP_RETURN_IF_ERROR(run(CommKind::kAllToAll));
  for (int64_t i = 0; i < count * n; ++i) {
    const int from = static_cast<int>(i / count);
    const int64_t at = count * ring.rank() + i % count;
    if (!(out[i] == ValueOf<T>(from, at))) return wrong(CommKind::kAllToAll);
  }
  if (!CheckReducible(DTypeOf<T>, ReduceKind::kSum).ok()) return absl::OkStatus();
  INTERP_RETURN_IF_ERROR(run(CommKind::kReduceScatter));
  for (int64_t i = 0; i < count; ++i) {
    if (!(out[i] == Model<T>(ReduceKind::kSum, n, count * ring.rank() + i))) {
      return wrong(CommKind::kReduceScatter);
    }
  }
  return ring.Run({.kind = CommKind::kBarrier});
}

template <typename T>
absl::Status CheckAll(Communicator& ring) {
  // Below, at and above what is sent in one round; parts that are empty and that are uneven.
  for (const int64_t count : {0, 1, 3, 1024, 5003}) {
    INTERP_RETURN_IF_ERROR(CheckReductions<T>(ring, count, count % 2 == 0));
    INTERP_RETURN_IF_ERROR(CheckMoves<T>(ring, count));
  }
  return absl::OkStatus();
}

class CollectivesTest : public ::testing::TestWithParam<int> {};

TEST_P(CollectivesTest, GiveTheModelsBitsForAllDTypesWhateverMessagesTake) {
  const ThreadRanksOptions options{.size = GetParam(),
                                   .longest_delay = std::chrono::microseconds(200),
                                   .seed = static_cast<uint64_t>(GetParam()),
                                   .max_bytes = 1000};
  const auto statuses = OnAllRanks(options, kChecked, [](const auto& rings, ThreadRanks&) {
    Communicator& ring = **rings->Find(0);
    INTERP_RETURN_IF_ERROR(CheckAll<float>(ring));
    // Of many ranks a sample has one type alone.
    if (ring.size() > testing::SampleOf(4, 8)) return absl::OkStatus();
    INTERP_RETURN_IF_ERROR(CheckAll<double>(ring));
    INTERP_RETURN_IF_ERROR(CheckAll<float16>(ring));
    INTERP_RETURN_IF_ERROR(CheckAll<bfloat16>(ring));
    INTERP_RETURN_IF_ERROR(CheckAll<int64_t>(ring));
    INTERP_RETURN_IF_ERROR(CheckAll<int32_t>(ring));
    INTERP_RETURN_IF_ERROR(CheckAll<int16_t>(ring));
    INTERP_RETURN_IF_ERROR(CheckAll<int8_t>(ring));
    INTERP_RETURN_IF_ERROR(CheckAll<uint8_t>(ring));
    INTERP_RETURN_IF_ERROR(CheckAll<bool>(ring));
    return CheckAll<std::complex<float>>(ring);
  });
  for (const absl::Status& status : statuses) EXPECT_EQ(status, absl::OkStatus());
}

INSTANTIATE_TEST_SUITE_P(Ranks, CollectivesTest, ::testing::Range(1, 9));

TEST(Collectives, AllGatherTakesPartsOfDifferentSizes) {
  const auto statuses = OnAllRanks({.size = 3}, kChecked, [](const auto& rings, ThreadRanks&) {
    Communicator& ring = **rings->Find(0);
    const std::vector<int32_t> in(ring.rank(), ring.rank());  // 0, 1 and 2 elements
    std::vector<int32_t> out(3);
    INTERP_RETURN_IF_ERROR(ring.Run({.kind = CommKind::kAllGather,
                                     .dtype = DType::kInt32,
                                     .counts = {0, 1, 2},
                                     .in = in.data(),
                                     .out = out.data()}));
    EXPECT_THAT(out, ::testing::ElementsAre(1, 2, 2));
    return absl::OkStatus();
  });
  EXPECT_THAT(statuses, ::testing::Each(absl::OkStatus()));
}

TEST(Collectives, OfSeveralRingsRunSideBySide) {
  // Every pair is a ring of its own, beside that of all, and all are busy at the same time.
  const ThreadRanksOptions options{.size = 4, .longest_delay = std::chrono::microseconds(300)};
  const auto statuses = OnAllRanks(options, kChecked, [](const auto& rings, ThreadRanks&) {
    const int me = rings->rank();
    const std::vector<int> neighbours = {me / 2 * 2, me / 2 * 2 + 1};
    const std::vector<int> opposite = {me % 2 + 2, me % 2};  // in another order
    INTERP_RETURN_IF_ERROR(rings->Add(7, neighbours));
    INTERP_RETURN_IF_ERROR(rings->Add(5, opposite));
    for (int round = 0; round < 20; ++round) {
      std::vector<std::shared_ptr<CommRequest>> requests;
      std::vector<int64_t> sums(3);
      const int64_t value = me + 1;
      for (const int ring : {0, 5, 7}) {
        INTERP_ASSIGN_OR_RETURN(Communicator* const communicator, rings->Find(ring));
        int64_t& sum = sums[requests.size()];
        INTERP_ASSIGN_OR_RETURN(auto request, communicator->Start({.kind = CommKind::kAllReduce,
                                                                   .dtype = DType::kInt64,
                                                                   .count = 1,
                                                                   .in = &value,
                                                                   .out = &sum}));
        requests.push_back(request);
      }
      for (const auto& request : requests) INTERP_RETURN_IF_ERROR(request->Wait());
      EXPECT_THAT(sums, ::testing::ElementsAre(10, me % 2 == 0 ? 4 : 6, me < 2 ? 3 : 7));
    }
    return absl::OkStatus();
  });
  EXPECT_THAT(statuses, ::testing::Each(absl::OkStatus()));
}

TEST(Collectives, MessagesMatchByTagAndOrder) {
  const ThreadRanksOptions options{
      .size = 2, .longest_delay = std::chrono::microseconds(500), .max_bytes = 8};
  const auto statuses = OnAllRanks(options, kChecked, [](const auto& rings, ThreadRanks&) {
    Communicator& ring = **rings->Find(0);
    const int other = 1 - ring.rank();
    std::vector<std::vector<int32_t>> out(6, std::vector<int32_t>(5, ring.rank()));
    std::vector<std::vector<int32_t>> in = out;
    std::vector<std::shared_ptr<CommRequest>> requests;
    const auto start = [&](CommKind kind, int tag, std::vector<int32_t>& data) {
      requests.push_back(*ring.Start({.kind = kind,
                                      .dtype = DType::kInt32,
                                      .root = other,
                                      .tag = tag,
                                      .count = std::ssize(data),
                                      .in = data.data(),
                                      .out = data.data()}));
    };
    for (int i = 0; i < 6; ++i) {
      std::iota(out[i].begin(), out[i].end(), 100 * i + 1000 * ring.rank());
      start(CommKind::kSend, i % 2, out[i]);
    }
    for (const int i : {1, 0, 3, 5, 2, 4}) start(CommKind::kReceive, i % 2, in[i]);
    for (const auto& request : requests) INTERP_RETURN_IF_ERROR(request->Wait());
    for (int i = 0; i < 6; ++i) EXPECT_EQ(in[i][4], 100 * i + 1000 * other + 4);
    return absl::OkStatus();
  });
  EXPECT_THAT(statuses, ::testing::Each(absl::OkStatus()));
}

TEST(Collectives, NaNWinsInMaxAndMin) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> a = {nan, 1};
  const std::vector<float> b = {1, nan};
  std::vector<float> out(2);
  for (const auto kind : {ReduceKind::kMax, ReduceKind::kMin}) {
    ReduceParts(DType::kFloat32, kind, {a.data(), b.data()}, 2, out.data());
    EXPECT_THAT(out, ::testing::Each(::testing::IsNan()));
  }
}

TEST(Collectives, RefuseWhatCannotBe) {
  const auto error = [](const CommCall& call) { return MakeSchedule(call, 0, 4).status(); };
  EXPECT_EQ(error({.kind = CommKind::kBroadcast, .root = 4}).message(),
            "rank 4 is not in the ring, which has 4 ranks");
  EXPECT_EQ(error({.kind = CommKind::kAllReduce, .count = -1}).message(),
            "a collective of -1 elements");
  EXPECT_EQ(
      error({.kind = CommKind::kAllReduce, .dtype = DType::kComplex64, .reduce = ReduceKind::kMax})
          .message(),
      "there is no max of complex64 over ranks");
  EXPECT_EQ(error({.kind = CommKind::kSend, .root = 0}).message(),
            "rank 0 of the ring is the other side of its own send");
  EXPECT_EQ(error({.kind = CommKind::kAllReduce, .count = int64_t{1} << 60}).code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace interp::collectives_test
