// What happens between ranks when something is wrong: nothing hangs, and the error says who.
#include "core/comm/rings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>

#include "core/tensor.h"
#include "tests/testing/rank_team.h"

namespace interp {
namespace {

using ::testing::HasSubstr;
using testing::OnAllRanks;

CommCall AllReduceOf(std::vector<float>& values, std::string name = "") {
  return {.kind = CommKind::kAllReduce,
          .dtype = DType::kFloat32,
          .count = std::ssize(values),
          .in = values.data(),
          .out = values.data(),
          .name = std::move(name)};
}

TEST(Rings, AloneAreAllRingsAndCollectivesCopies) {
  const std::shared_ptr<Rings> rings = Rings::Alone();
  EXPECT_EQ(rings->size(), 1);
  std::vector<float> values = {1, 2};
  ASSERT_EQ((*rings->Find(17))->Run(AllReduceOf(values)), absl::OkStatus());
  EXPECT_THAT(values, ::testing::ElementsAre(1, 2));
}

TEST(Rings, AreAddedOnceWithOneGroup) {
  const auto statuses = OnAllRanks({.size = 3}, {}, [](const auto& rings, ThreadRanks&) {
    if (rings->rank() == 2) {
      EXPECT_EQ(rings->Add(4, {0, 1}).message(), "rank 2 is not in ring 4");
      return absl::OkStatus();
    }
    EXPECT_EQ(rings->Find(4).status().code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(rings->Add(4, {0, 1}), absl::OkStatus());
    EXPECT_EQ(rings->Add(4, {0, 1}), absl::OkStatus());
    EXPECT_EQ(rings->Add(4, {1, 0}).message(), "ring 4 is there already, with other ranks");
    EXPECT_EQ(rings->Add(5, {1, 0, 1}).message(), "a rank is twice in ring 5");
    EXPECT_EQ(rings->Add(5, {1, 0, 3}).message(), "ring 5 has ranks that are not from 0 to 2");
    return (*rings->Find(4))->Run({.kind = CommKind::kBarrier});
  });
  EXPECT_THAT(statuses, ::testing::Each(absl::OkStatus()));
}

TEST(Rings, Ring0OfAPartIsNotTheWorld) {
  const auto statuses =
      OnAllRanks({.size = 4}, {.check = true}, [](const auto& rings, ThreadRanks&) {
        EXPECT_EQ(*rings->Find(0), &rings->World());
        const int first = rings->rank() / 2 * 2;
        INTERP_RETURN_IF_ERROR(rings->Add(0, {first, first + 1}));
        std::vector<float> part = {static_cast<float>(rings->rank())};
        INTERP_RETURN_IF_ERROR((*rings->Find(0))->Run(AllReduceOf(part)));
        EXPECT_THAT(part, ::testing::ElementsAre(static_cast<float>(2 * first + 1)));
        std::vector<float> all = {1};
        INTERP_RETURN_IF_ERROR(rings->World().Run(AllReduceOf(all)));
        EXPECT_THAT(all, ::testing::ElementsAre(4));
        EXPECT_EQ((*rings->Find(0))->Describe({.kind = CommKind::kBarrier}, 3),
                  "barrier on the program's own ring 0, number 3");
        return absl::OkStatus();
      });
  EXPECT_THAT(statuses, ::testing::Each(absl::OkStatus()));
}

TEST(Rings, Ring0OfAllRanksIsTheWorldUnlessTheirOrderDiffers) {
  const auto statuses = OnAllRanks({.size = 2}, {}, [](const auto& rings, ThreadRanks&) {
    INTERP_RETURN_IF_ERROR(rings->Add(0, {0, 1}));
    EXPECT_EQ(*rings->Find(0), &rings->World());
    EXPECT_FALSE(rings->Add(0, {1, 0}).ok());
    INTERP_RETURN_IF_ERROR(rings->Add(1, {1, 0}));
    EXPECT_EQ((*rings->Find(1))->rank(), 1 - rings->rank());
    return absl::OkStatus();
  });
  EXPECT_THAT(statuses, ::testing::Each(absl::OkStatus()));
}

TEST(Rings, RanksHaveTheNamesTheySay) {
  const auto statuses = OnAllRanks({.size = 3}, {}, [](const auto& rings, ThreadRanks&) {
    const std::string own = "host:" + std::to_string(9 - rings->rank());
    const auto ranks = rings->RanksNamed(own, {"host:7", own});
    INTERP_RETURN_IF_ERROR(ranks.status());
    EXPECT_THAT(*ranks, ::testing::ElementsAre(2, rings->rank()));
    EXPECT_EQ(rings->RanksNamed(own, {"host:6"}).status().message(), "no rank is called 'host:6'");
    return absl::OkStatus();
  });
  EXPECT_THAT(statuses, ::testing::Each(absl::OkStatus()));
}

TEST(Rings, NamesThatDoNotTellRanksApartAreRefused) {
  const auto named = [](const std::string& name) {
    return OnAllRanks({.size = 2}, {}, [&](const auto& rings, ThreadRanks&) {
      return rings->RanksNamed(name, {name}).status();
    });
  };
  EXPECT_THAT(std::string(named("a:1")[1].message()),
              HasSubstr("ranks 0 and 1 are both called 'a:1'"));
  EXPECT_THAT(std::string(named(std::string(300, 'x'))[0].message()),
              HasSubstr("rank 0 has a name of 256 bytes or more"));
}

TEST(Rings, TagsThatAreGivenBackAreDealtAgain) {
  const std::shared_ptr<Rings> rings = Rings::Alone();
  const int first = *rings->TakeTags(3);
  const int second = *rings->TakeTags(3);
  EXPECT_LT(second, first);
  rings->GiveTags(first);
  // Those below it are in use.
  const int third = *rings->TakeTags(3);
  EXPECT_LT(third, second);
  rings->GiveTags(third);
  EXPECT_EQ(*rings->TakeTags(3), third);
  rings->GiveTags(third);
  rings->GiveTags(second);
  EXPECT_EQ(*rings->TakeTags(3), first);
  EXPECT_EQ(rings->TakeTags(2000).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(Rings, CheckedRanksThatSwapTwoCollectivesOfOneSizeBothFail) {
  const auto statuses =
      OnAllRanks({.size = 2}, {.check = true}, [](const auto& rings, ThreadRanks&) {
        Communicator& ring = **rings->Find(0);
        std::vector<float> a(4, 1.0F);
        std::vector<int32_t> b(4, 1);
        CommCall first = AllReduceOf(a, "gradient of a");
        CommCall second = {.kind = CommKind::kAllReduce,
                           .dtype = DType::kInt32,
                           .count = 4,
                           .in = b.data(),
                           .out = b.data(),
                           .name = "count of b"};
        if (ring.rank() == 1) std::swap(first, second);
        INTERP_RETURN_IF_ERROR(ring.Run(first));
        return ring.Run(second);
      });
  EXPECT_EQ(statuses[0].message(),
            "gradient of a on ring 0, number 1: ranks differ in what they do on ring 0: rank 0 is "
            "at number 1, all-reduce sum of 4 float32 (gradient of a), rank 1 at number 1, "
            "all-reduce sum of 4 int32 (count of b)");
  EXPECT_THAT(std::string(statuses[1].message()), HasSubstr("rank 1 is at number 1, all-reduce"));
}

TEST(Rings, RankThatDoesNotComeIsNamedWhenTheTimeIsOver) {
  const auto statuses = OnAllRanks({.size = 3}, {.timeout = std::chrono::milliseconds(50)},
                                   [](const auto& rings, ThreadRanks&) {
                                     if (rings->rank() == 1) return absl::OkStatus();
                                     std::vector<float> values(2);
                                     Communicator& ring = **rings->Find(0);
                                     return ring.Run(AllReduceOf(values, "c_allreduce_sum"));
                                   });
  EXPECT_EQ(statuses[0].message(),
            "c_allreduce_sum on ring 0, number 1: rank 0 has waited 50 ms for rank 1");
  EXPECT_EQ(statuses[2].code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(Rings, TheLongestTimeIsNotOverAtOnce) {
  const auto statuses = OnAllRanks(
      {.size = 2, .longest_delay = std::chrono::microseconds(300), .seed = 1},
      {.timeout = std::chrono::milliseconds::max()}, [](const auto& rings, ThreadRanks&) {
        EXPECT_GT(std::chrono::steady_clock::now() + rings->timeout(),
                  std::chrono::steady_clock::now());
        std::vector<float> values(2);
        Communicator& ring = **rings->Find(0);
        for (int i = 0; i < 20; ++i) INTERP_RETURN_IF_ERROR(ring.Run(AllReduceOf(values)));
        return absl::OkStatus();
      });
  EXPECT_THAT(statuses, ::testing::Each(absl::OkStatus()));
}

TEST(Rings, FailureEndsWhatIsUnderWayAndWhatComesLater) {
  const auto statuses = OnAllRanks({.size = 2}, {.timeout = std::chrono::milliseconds(50)},
                                   [](const auto& rings, ThreadRanks&) {
                                     if (rings->rank() == 1) return absl::OkStatus();
                                     Communicator& ring = **rings->Find(0);
                                     std::vector<float> a(2);
                                     std::vector<float> b(2);
                                     const auto first = ring.Start(AllReduceOf(a));
                                     const auto second = ring.Start(AllReduceOf(b));
                                     const absl::Status error = (*first)->Wait();
                                     EXPECT_FALSE(error.ok());
                                     EXPECT_EQ((*second)->Wait(), error);
                                     EXPECT_EQ(ring.Run(AllReduceOf(b)), error);
                                     return absl::OkStatus();
                                   });
  EXPECT_THAT(statuses, ::testing::Each(absl::OkStatus()));
}

// Rank 0 of two, whose messages never arrive.
class SilentTransport final : public Transport {
 public:
  explicit SilentTransport(std::vector<Message>& started) : started_(started) {}
  int rank() const override { return 0; }
  int size() const override { return 2; }
  int max_tag() const override { return 1 << 20; }
  size_t max_bytes() const override { return 1 << 20; }
  absl::StatusOr<Id> Start(const Message& message) override {
    started_.push_back(message);
    return started_.size();
  }
  absl::StatusOr<bool> Finished(Id /*id*/) override { return false; }

 private:
  std::vector<Message>& started_;
};

// A message may come in when the call has failed and returned.
TEST(Rings, WhatFailedLeavesTheMemoryOfItsMessages) {
  std::vector<Message> started;
  CommCall call{.kind = CommKind::kReceive, .dtype = DType::kFloat32, .root = 1, .count = 4};
  const auto run = [&](const std::vector<BufferRef>& memory) {
    started.clear();
    const std::shared_ptr<Rings> rings =
        *Rings::Join([&] { return std::make_unique<SilentTransport>(started); },
                     {.timeout = std::chrono::milliseconds(1)});
    const absl::Status status =
        memory.empty() ? rings->World().Run(call) : rings->World().Run(call, memory);
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  };
  std::vector<float> anywhere(4, 1);
  call.out = anywhere.data();
  run({});
  ASSERT_EQ(started.size(), 1);
  std::memset(started[0].data, 7, started[0].bytes);
  EXPECT_THAT(anywhere, ::testing::Each(1));

  Tensor values = Tensor::Of<float>({4}, {1, 2, 3, 4});
  call.out = values.mutable_raw_data();
  const BufferRef memory = values.buffer();
  const int refs = memory->refs;
  run({memory});
  ASSERT_EQ(started.size(), 1);
  EXPECT_EQ(started[0].data, values.raw_data());
  EXPECT_EQ(memory->refs, refs + 1);
}

// A rank that has failed elsewhere has missed what the others wait for.
TEST(Rings, RankThatFailsEndsTheOthersAtOnce) {
  const auto statuses = OnAllRanks({.size = 3}, {}, [](const auto& rings, ThreadRanks&) {
    std::vector<float> values(2);
    Communicator& ring = **rings->Find(0);
    INTERP_RETURN_IF_ERROR(ring.Run(AllReduceOf(values)));
    if (rings->rank() == 1) rings->Fail(absl::ResourceExhaustedError("no memory left"));
    return ring.Run(AllReduceOf(values));
  });
  for (const absl::Status& status : statuses) {
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(status.message()), HasSubstr("no memory left"));
  }
}

TEST(Rings, CallThatCannotStartEndsTheOthers) {
  const auto statuses = OnAllRanks({.size = 2}, {}, [](const auto& rings, ThreadRanks&) {
    std::vector<float> values(2);
    Communicator& ring = **rings->Find(0);
    CommCall call = AllReduceOf(values);
    if (rings->rank() == 1) call.dtype = DType::kUndefined;
    const absl::Status status = ring.Run(call);
    EXPECT_FALSE(status.ok());
    return ring.Run(AllReduceOf(values));
  });
  EXPECT_FALSE(statuses[0].ok());
  EXPECT_FALSE(statuses[1].ok());
}

// Who waits for the message would wait until its time is over.
TEST(Rings, MessageWhoseTagIsNotThereEndsTheOthers) {
  const auto statuses = OnAllRanks(
      {.size = 2}, {.timeout = std::chrono::seconds(20)}, [](const auto& rings, ThreadRanks&) {
        float value = 1;
        const bool sends = rings->rank() == 1;
        return rings->World().Run({.kind = sends ? CommKind::kSend : CommKind::kReceive,
                                   .dtype = DType::kFloat32,
                                   .root = 1 - rings->rank(),
                                   .tag = sends ? -1 : 0,
                                   .count = 1,
                                   .in = &value,
                                   .out = &value});
      });
  for (const absl::Status& status : statuses) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("expected one from 0 to"));
  }
}

// What was launched goes on in memory of its own until the rings end.
TEST(Rings, LaunchedCallsKeepTheirMemory) {
  const auto statuses = OnAllRanks({.size = 2}, {}, [](const auto& rings, ThreadRanks&) {
    if (rings->rank() == 1) return absl::OkStatus();
    Tensor values = Tensor::Of<float>({4}, {1, 2, 3, 4});
    CommCall call{.kind = CommKind::kAllReduce,
                  .dtype = DType::kFloat32,
                  .count = 4,
                  .in = values.raw_data(),
                  .out = values.mutable_raw_data()};
    return (**rings->Find(0)).Launch(call, {values.buffer()});
  });
  EXPECT_THAT(statuses, ::testing::Each(absl::OkStatus()));
}

// A rank dies before, in and between collectives: at any of 40 moments.
TEST(Rings, DeathOfARankIsToldToAllOthers) {
  for (int moment = 0; moment < 40; ++moment) {
    const ThreadRanksOptions options{.size = 4,
                                     .longest_delay = std::chrono::microseconds(100),
                                     .seed = static_cast<uint64_t>(moment)};
    std::atomic<int> calls{0};
    const auto statuses = OnAllRanks(options, {.timeout = std::chrono::seconds(60)},
                                     [&](const auto& rings, ThreadRanks& ranks) {
                                       Communicator& ring = **rings->Find(0);
                                       for (;;) {
                                         if (calls.fetch_add(1) == moment) ranks.Kill(2);
                                         std::vector<float> values(2000);
                                         INTERP_RETURN_IF_ERROR(ring.Run(AllReduceOf(values)));
                                       }
                                       return absl::OkStatus();
                                     });
    for (const absl::Status& status : statuses) {
      EXPECT_THAT(std::string(status.message()), HasSubstr("rank 2 has died"));
    }
  }
}

// Of no message of the dead rank.
TEST(Rings, CheckedPeersAreKnownToHaveDied) {
  const auto statuses =
      OnAllRanks({.size = 3}, {}, [](const auto& rings, ThreadRanks& ranks) -> absl::Status {
        Communicator& all = **rings->Find(0);
        INTERP_RETURN_IF_ERROR(all.Run({.kind = CommKind::kBarrier}));
        EXPECT_EQ(all.CheckPeers(), absl::OkStatus());
        INTERP_RETURN_IF_ERROR(all.Run({.kind = CommKind::kBarrier}));
        if (rings->rank() == 2) {
          ranks.Kill(2);
          return absl::OkStatus();
        }
        for (;;) {
          INTERP_RETURN_IF_ERROR(all.CheckPeers());
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
      });
  EXPECT_THAT(statuses[0].ToString(), HasSubstr("rank 2 has died"));
  EXPECT_THAT(statuses[1].ToString(), HasSubstr("rank 2 has died"));
}

TEST(Rings, CollectivesThatOthersCarryOutAreComparedAlone) {
  const CommOptions checked{.check = true};
  const auto statuses =
      OnAllRanks({.size = 2}, checked, [](const auto& rings, ThreadRanks&) -> absl::Status {
        Communicator& all = **rings->Find(0);
        const CommCall same{.kind = CommKind::kAllReduce, .dtype = DType::kFloat32, .count = 8};
        INTERP_RETURN_IF_ERROR(all.Compare(same));
        CommCall other = same;
        other.count += rings->rank();
        EXPECT_THAT(all.Compare(other).ToString(), HasSubstr("ranks differ"));
        return absl::OkStatus();
      });
  for (const absl::Status& status : statuses) EXPECT_EQ(status, absl::OkStatus());
}

TEST(Rings, TraceHasWhatEndedWithinIt) {
  const auto statuses = OnAllRanks({.size = 2}, {}, [](const auto& rings, ThreadRanks&) {
    Communicator& ring = **rings->Find(0);
    std::vector<float> values(4, 1.0F);
    INTERP_RETURN_IF_ERROR(ring.Run(AllReduceOf(values, "before")));
    rings->StartTrace();
    INTERP_RETURN_IF_ERROR(ring.Run(AllReduceOf(values, "within")));
    const std::vector<CommSpan> spans = rings->StopTrace();
    INTERP_RETURN_IF_ERROR(ring.Run(AllReduceOf(values, "after")));
    EXPECT_EQ(spans.size(), 1U);
    EXPECT_EQ(spans.at(0).what, "within on ring 0, number 2");
    EXPECT_EQ(spans.at(0).ring, 0);
    EXPECT_GT(spans.at(0).end_ns, spans.at(0).start_ns);
    EXPECT_TRUE(rings->StopTrace().empty());
    return absl::OkStatus();
  });
  EXPECT_THAT(statuses, ::testing::Each(absl::OkStatus()));
}

TEST(Rings, LaunchedCallsAreWaitedForByTheirMemory) {
  const auto statuses = OnAllRanks({.size = 2}, {}, [](const auto& rings, ThreadRanks&) {
    Communicator& ring = **rings->Find(0);
    std::vector<std::vector<float>> values(3, std::vector<float>(4, 1.0F));
    for (auto& one : values) INTERP_RETURN_IF_ERROR(ring.Launch(AllReduceOf(one), {}));
    INTERP_RETURN_IF_ERROR(ring.WaitFor(values[1].data()));
    EXPECT_EQ(values[1][3], 2.0F);
    INTERP_RETURN_IF_ERROR(ring.WaitFor(nullptr));
    EXPECT_EQ(values[0][0] + values[2][0], 4.0F);
    return ring.WaitFor(values[0].data());  // nothing any more
  });
  EXPECT_THAT(statuses, ::testing::Each(absl::OkStatus()));
}

}  // namespace
}  // namespace interp
