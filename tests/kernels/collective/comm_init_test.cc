// Ops that make rings, run by ranks that are threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kernels/rank_runs.h"
#include "tests/testing/test_program.h"

namespace interp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::RunOnRanks;
using testing::TestProgram;

TEST(CommInit, MakesRingsOfAllRanksAndFindsOthersMissing) {
  const auto program = [](int ring, int nranks) {
    return [=](int rank) {
      Program made = TestProgram()
                         .Feed("x", {1})
                         .DeclareArray("id")
                         .AddOp("c_gen_nccl_id", {}, {{"Out", {"id"}}}, {{"ring_id", ring}})
                         .AddOp("c_comm_init", {{"X", {"id"}}}, {},
                                {{"ring_id", ring}, {"nranks", nranks}, {"rank", rank}})
                         .Call("c_allreduce_sum", {"x"}, "y", {{"ring_id", ring}})
                         .Fetch("y")
                         .Build();
      for (Var& var : made.blocks[0].vars) {
        if (made.NameOf(var.id) != "id") continue;
        var.kind = VarKind::kRaw;  // as Paddle declares it
        var.persistable = true;
      }
      return made;
    };
  };
  const auto feeds = [](int rank) -> std::vector<Tensor> {
    return {Tensor::Of<float>({1}, {static_cast<float>(rank + 1)})};
  };
  const auto runs = RunOnRanks(2, program(9, 2), feeds);
  ASSERT_TRUE(runs.ok()) << runs.status();
  EXPECT_THAT((*runs)[1].fetched[0], ElementsAre(3));
  EXPECT_THAT(std::string(RunOnRanks(2, program(9, 1), feeds).status().message()),
              HasSubstr("there is no ring 9"));
  EXPECT_THAT(std::string(RunOnRanks(2, program(9, 3), feeds).status().message()),
              HasSubstr("makes a ring of 3 ranks, and there are 2"));
}

// As fleet writes tensor parallelism with data parallelism: rings 0 and 2 of two ranks each.
TEST(CommInit, FindsTheRanksOfRingsByTheirEndpoints) {
  const std::vector<std::string> endpoints = {"a:1", "a:2", "b:1", "b:2"};
  const auto program = [&](bool in_id) {
    return [&endpoints, in_id](int rank) {
      TestProgram builder;
      builder.Feed("x", {1});
      std::string from = "x";
      for (const int ring : {0, 2}) {
        const int first = ring == 0 ? rank / 2 * 2 : rank % 2;
        const int second = ring == 0 ? first + 1 : first + 2;
        const int own = rank == first ? 0 : 1;
        const std::string id = "id" + std::to_string(ring);
        builder.DeclareArray(id);
        TestProgram::Attrs attrs = {{"ring_id", ring}};
        if (in_id) {
          attrs.push_back({"rank", own});
          attrs.push_back({"endpoint", endpoints[rank]});
          attrs.push_back(
              {"other_endpoints", std::vector<std::string>{endpoints[own == 0 ? second : first]}});
        }
        builder.AddOp("c_gen_nccl_id", {}, {{"Out", {id}}}, attrs);
        TestProgram::Attrs init = {{"ring_id", ring}, {"nranks", 2}, {"rank", own}};
        if (!in_id) init.push_back({"endpoints", endpoints[first] + "," + endpoints[second]});
        builder.AddOp("c_comm_init", {{"X", {id}}}, {}, init);
        const std::string to = "y" + std::to_string(ring);
        builder.Call("c_allreduce_sum", {from}, to, {{"ring_id", ring}});
        from = to;
      }
      return builder.Fetch("y0").Fetch("y2").Build();
    };
  };
  const auto feeds = [](int rank) -> std::vector<Tensor> {
    return {Tensor::Of<float>({1}, {static_cast<float>(1 << rank)})};
  };
  for (const bool in_id : {false, true}) {
    const auto runs = RunOnRanks(4, program(in_id), feeds);
    ASSERT_TRUE(runs.ok()) << runs.status();
    for (int rank = 0; rank < 4; ++rank) {
      EXPECT_THAT((*runs)[rank].fetched[0], ElementsAre(rank < 2 ? 3 : 12));
      EXPECT_THAT((*runs)[rank].fetched[1], ElementsAre(15));
    }
  }
}

}  // namespace
}  // namespace interp
