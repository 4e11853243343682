// Collective ops in programs, run by ranks that are threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "interpreter/interpreter_core.h"
#include "passes/train/append_backward.h"
#include "tests/kernels/rank_runs.h"
#include "tests/testing/program_text.h"
#include "tests/testing/test_program.h"

namespace interp::collective_ops_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::kChecked;
using testing::OnAllRanks;
using testing::RankRun;
using testing::RunOnRanks;
using testing::TestProgram;
using Values = testing::RankValues;
using testing::FloatsOf;

// Of one op from a fed x to a fetched y.
absl::StatusOr<std::vector<RankRun>> RunOp(const std::string& type,
                                           const std::function<TestProgram::Attrs(int)>& attrs,
                                           const std::vector<Values>& x, Shape shape) {
  const auto program = [&](int rank) {
    TestProgram::Dims dims;
    for (const int64_t dim : shape.dims()) dims.push_back(dim);
    return TestProgram()
        .Feed("x", dims)
        .Declare("y", {})
        .Call(type, {"x"}, "y", attrs(rank))
        .Fetch("y")
        .Build();
  };
  return RunOnRanks(static_cast<int>(x.size()), program, [&](int rank) -> std::vector<Tensor> {
    return {Tensor::Of<float>(shape, x[rank])};
  });
}

absl::StatusOr<std::vector<Values>> RunSimple(const std::string& type,
                                              const TestProgram::Attrs& attrs,
                                              const std::vector<Values>& x, Shape shape) {
  INTERP_ASSIGN_OR_RETURN(const auto runs, RunOp(
                                               type, [&](int) { return attrs; }, x, shape));
  std::vector<Values> values;
  for (const RankRun& run : runs) values.push_back(run.fetched[0]);
  return values;
}

TEST(CollectiveOps, ReduceOverAllRanks) {
  const std::vector<Values> x = {{1, 5}, {2, -4}, {3, 2}};
  EXPECT_THAT(*RunSimple("c_allreduce_sum", {}, x, {2}), Each(ElementsAre(6, 3)));
  EXPECT_THAT(*RunSimple("mp_allreduce_sum", {}, x, {2}), Each(ElementsAre(6, 3)));
  EXPECT_THAT(*RunSimple("c_allreduce_max", {}, x, {2}), Each(ElementsAre(3, 5)));
  EXPECT_THAT(*RunSimple("c_allreduce_min", {}, x, {2}), Each(ElementsAre(1, -4)));
  EXPECT_THAT(*RunSimple("c_allreduce_prod", {}, x, {2}), Each(ElementsAre(6, -40)));
  EXPECT_THAT(*RunSimple("c_reduce_sum", {{"root_id", 1}}, x, {2}),
              ElementsAre(ElementsAre(1, 5), ElementsAre(6, 3), ElementsAre(3, 2)));
  EXPECT_THAT((*RunSimple("c_reduce_max", {}, x, {2}))[0], ElementsAre(3, 5));
  EXPECT_THAT((*RunSimple("c_reduce_min", {}, x, {2}))[0], ElementsAre(1, -4));
  EXPECT_THAT((*RunSimple("c_reduce_prod", {}, x, {2}))[0], ElementsAre(6, -40));
}

TEST(CollectiveOps, MoveRowsAndColumns) {
  const std::vector<Values> x = {{1, 2, 3, 4}, {5, 6, 7, 8}};
  const TestProgram::Attrs two = {{"nranks", 2}};
  EXPECT_THAT(*RunSimple("c_broadcast", {{"root", 1}}, x, {2, 2}), Each(ElementsAre(5, 6, 7, 8)));
  EXPECT_THAT(*RunSimple("c_allgather", two, x, {2, 2}), Each(ElementsAre(1, 2, 3, 4, 5, 6, 7, 8)));
  EXPECT_THAT(*RunSimple("c_concat", two, x, {2, 2}), Each(ElementsAre(1, 2, 5, 6, 3, 4, 7, 8)));
  EXPECT_THAT(*RunSimple("c_reducescatter", two, x, {2, 2}),
              ElementsAre(ElementsAre(6, 8), ElementsAre(10, 12)));
  EXPECT_THAT(*RunSimple("alltoall", {}, x, {2, 2}),
              ElementsAre(ElementsAre(1, 2, 5, 6), ElementsAre(3, 4, 7, 8)));
  EXPECT_THAT(*RunSimple("partial_allgather", two, x, {2, 2}), Each(ElementsAre(1, 2, 7, 8)));
  EXPECT_THAT(*RunSimple("c_identity", {}, x, {2, 2}), ::testing::ElementsAreArray(x));
  EXPECT_THAT(*RunSimple("barrier", {}, x, {2, 2}), ::testing::ElementsAreArray(x));
  const auto split = RunOp("c_split",
                           [](int rank) -> TestProgram::Attrs {
                             return {{"nranks", 2}, {"rank", rank}};
                           },
                           x, {2, 2});
  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_EQ((*split)[1].shapes[0], (Shape{2, 1}));
  EXPECT_THAT((*split)[0].fetched[0], ElementsAre(1, 3));
  EXPECT_THAT((*split)[1].fetched[0], ElementsAre(6, 8));
}

TEST(CollectiveOps, AreCopiesWhereThereIsOneRank) {
  const Program program = TestProgram()
                              .Feed("x", {2})
                              .Call("c_allreduce_sum", {"x"}, "a", {{"ring_id", 3}})
                              .Call("c_allgather", {"a"}, "b", {{"nranks", 1}})
                              .Call("c_sync_comm_stream", {"b"}, "c")
                              .Call("c_concat", {"c"}, "d", {{"nranks", 1}})
                              .Call("alltoall", {"d"}, "e")
                              .Fetch("e")
                              .Build();
  const auto core = InterpreterCore::Create(program, {}, {}, nullptr);
  ASSERT_TRUE(core.ok()) << core.status();
  const auto fetched = (*core)->Run({Tensor::Of<float>({2}, {3, 4})});
  ASSERT_TRUE(fetched.ok()) << fetched.status();
  EXPECT_THAT(FloatsOf((*fetched)[0]), ElementsAre(3, 4));
}

TEST(CollectiveOps, SayHowManyRanksTheyAreFor) {
  const Program program = TestProgram()
                              .Feed("x", {2})
                              .Call("c_allgather", {"x"}, "y", {{"nranks", 4}})
                              .Fetch("y")
                              .Build();
  const auto core = InterpreterCore::Create(program, {}, {}, nullptr);
  const auto fetched = (*core)->Run({Tensor::Of<float>({2}, {3, 4})});
  EXPECT_THAT(std::string(fetched.status().message()),
              HasSubstr("the op is for 4 ranks, and ring 0 has 1: start that many, as with `mpirun "
                        "-n 4`"));
}

TEST(CollectiveOps, ScatterRowsOfTheRoot) {
  const auto program = [](int) {
    return TestProgram()
        .Feed("x", {4})
        .Call("c_scatter", {"x"}, "y", {{"root", 1}, {"nranks", 2}})
        .Fetch("y")
        .Build();
  };
  const auto runs = RunOnRanks(2, program, [](int rank) -> std::vector<Tensor> {
    const auto base = static_cast<float>(10 * rank);
    return {Tensor::Of<float>({4}, {base, base + 1, base + 2, base + 3})};
  });
  ASSERT_TRUE(runs.ok()) << runs.status();
  EXPECT_THAT((*runs)[0].fetched[0], ElementsAre(10, 11));
  EXPECT_THAT((*runs)[1].fetched[0], ElementsAre(12, 13));
}

TEST(CollectiveOps, SendAndReceive) {
  // Both send first: no send waits for its receiver.
  const auto program = [](int rank) {
    const int peer = 1 - rank;
    return TestProgram()
        .Feed("x", {-1, 2})
        .AddOp("send_v2", {{"X", {"x"}}}, {}, {{"peer", peer}})
        .AddOp("partial_send", {{"X", {"x"}}}, {}, {{"peer", peer}, {"num", 2}, {"id", 1}})
        .Declare("y", {-1, 2})
        .AddOp("recv_v2", {}, {{"Out", {"y"}}},
               {{"peer", peer}, {"dtype", 5}, {"dynamic_shape", true}})
        .Declare("z", {-1, 2})
        .AddOp("partial_recv", {}, {{"Out", {"z"}}},
               {{"peer", peer},
                {"dtype", 5},
                {"num", 2},
                {"id", 1},
                {"out_shape", std::vector<int32_t>{-1, 2}}})
        .Fetch("y")
        .Fetch("z")
        .Build();
  };
  const auto runs = RunOnRanks(2, program, [](int rank) -> std::vector<Tensor> {
    if (rank == 0) return {Tensor::Of<float>({1, 2}, {1, 2})};
    return {Tensor::Of<float>({2, 2}, {3, 4, 5, 6})};
  });
  ASSERT_TRUE(runs.ok()) << runs.status();
  EXPECT_EQ((*runs)[0].shapes[0], (Shape{2, 2}));
  EXPECT_THAT((*runs)[0].fetched[0], ElementsAre(3, 4, 5, 6));
  EXPECT_THAT((*runs)[0].fetched[1], ElementsAre(0, 0, 5, 6));
  EXPECT_THAT((*runs)[1].fetched[0], ElementsAre(1, 2));
  EXPECT_THAT((*runs)[1].fetched[1], ElementsAre(0, 2));
}

TEST(CollectiveOps, ReceiverSaysWhatItExpected) {
  const auto program = [](int rank) {
    TestProgram builder;
    builder.Feed("x", {3});
    if (rank == 0) {
      builder.AddOp("send_v2", {{"X", {"x"}}}, {}, {{"peer", 1}}).Fetch("x");
    } else {
      builder.Declare("y", {2});
      builder
          .AddOp("recv_v2", {}, {{"Out", {"y"}}},
                 {{"peer", 0}, {"dtype", 5}, {"out_shape", std::vector<int32_t>{2}}})
          .Fetch("y");
    }
    return builder.Build();
  };
  const auto feeds = [](int) -> std::vector<Tensor> { return {Tensor::Of<float>({3}, {1, 2, 3})}; };
  EXPECT_THAT(std::string(RunOnRanks(2, program, feeds).status().message()),
              HasSubstr("rank 0 of ring 0 has sent float32[3], expected float32[2]"));
}

// Weights of one layer dealt out by columns and of the next by rows, as tensor-parallel programs
// have them, against the layers in one piece.
TEST(CollectiveOps, ShardedLossHasTheValuesAndGradientsOfTheWhole) {
  const int64_t rows = 3;
  const int64_t classes = 4;
  Values logits;
  for (int i = 0; i < rows * classes; ++i) logits.push_back(std::sin(static_cast<float>(i)) * 3);
  const std::vector<int64_t> labels = {3, -100, 0};
  const auto program = [&](const std::string& type, int64_t columns) {
    Program made =
        TestProgram()
            .Feed("x", {rows, columns})
            .Feed("label", {rows, 1}, DType::kInt64)
            .Declare("softmax", {rows, columns})
            .Declare("loss", {rows, 1})
            .Declare("grad", {rows, 1})
            .Declare("x_grad", {rows, columns})
            .AddOp(type, {{"Logits", {"x"}}, {"Label", {"label"}}},
                   {{"Softmax", {"softmax"}}, {"Loss", {"loss"}}}, {})
            .AddOp("scale", {{"X", {"loss"}}}, {{"Out", {"grad"}}},
                   {{"scale", 0.5F}, {"bias", 1.0F}})
            .AddOp(absl::StrCat(type, "_grad"),
                   {{"Softmax", {"softmax"}}, {"Label", {"label"}}, {"Loss@GRAD", {"grad"}}},
                   {{"Logits@GRAD", {"x_grad"}}}, {})
            .Fetch("loss")
            .Fetch("x_grad")
            .Build();
    return made;
  };
  const auto whole = RunOnRanks(
      1, [&](int) { return program("softmax_with_cross_entropy", classes); },
      [&](int) -> std::vector<Tensor> {
        return {Tensor::Of<float>({rows, classes}, logits), Tensor::Of<int64_t>({rows, 1}, labels)};
      });
  ASSERT_TRUE(whole.ok()) << whole.status();
  const auto parts = RunOnRanks(
      2, [&](int) { return program("c_softmax_with_cross_entropy", classes / 2); },
      [&](int rank) -> std::vector<Tensor> {
        Values own;
        for (int64_t r = 0; r < rows; ++r) {
          for (int64_t k = 0; k < 2; ++k) own.push_back(logits[r * classes + rank * 2 + k]);
        }
        return {Tensor::Of<float>({rows, 2}, own), Tensor::Of<int64_t>({rows, 1}, labels)};
      });
  ASSERT_TRUE(parts.ok()) << parts.status();
  for (int rank = 0; rank < 2; ++rank) {
    for (int64_t r = 0; r < rows; ++r) {
      EXPECT_NEAR((*parts)[rank].fetched[0][r], (*whole)[0].fetched[0][r], 1e-6);
      for (int64_t k = 0; k < 2; ++k) {
        EXPECT_NEAR((*parts)[rank].fetched[1][r * 2 + k],
                    (*whole)[0].fetched[1][r * classes + rank * 2 + k], 1e-6);
      }
    }
  }
}

TEST(CollectiveOps, ShardedEmbeddingHasTheRowsAndGradientsOfTheWhole) {
  const auto program = [](int rank) {
    return TestProgram()
        .Feed("w", {2, 2})
        .Feed("ids", {3}, DType::kInt64)
        .Declare("part", {3, 2})
        .AddOp("c_embedding", {{"W", {"w"}}, {"Ids", {"ids"}}}, {{"Out", {"part"}}},
               {{"start_index", static_cast<int64_t>(rank * 2)}})
        .Call("mp_allreduce_sum", {"part"}, "rows")
        .Declare("w_grad", {2, 2})
        .AddOp("c_embedding_grad", {{"W", {"w"}}, {"Ids", {"ids"}}, {"Out@GRAD", {"rows"}}},
               {{"W@GRAD", {"w_grad"}}}, {{"start_index", static_cast<int64_t>(rank * 2)}})
        .Fetch("rows")
        .Fetch("w_grad")
        .Build();
  };
  const auto runs = RunOnRanks(2, program, [](int rank) -> std::vector<Tensor> {
    const Values w = rank == 0 ? Values{1, 2, 3, 4} : Values{5, 6, 7, 8};
    return {Tensor::Of<float>({2, 2}, w), Tensor::Of<int64_t>({3}, {3, 0, 3})};
  });
  ASSERT_TRUE(runs.ok()) << runs.status();
  for (const RankRun& run : *runs) EXPECT_THAT(run.fetched[0], ElementsAre(7, 8, 1, 2, 7, 8));
  EXPECT_THAT((*runs)[0].fetched[1], ElementsAre(1, 2, 0, 0));
  EXPECT_THAT((*runs)[1].fetched[1], ElementsAre(0, 0, 14, 16));
}

TEST(CollectiveOps, KeepTheirOrderUnderAllSchedulersAndArePrunedByNone) {
  // Nothing but the program's order ties these together: two rings, results that nobody reads, and
  // a nested block.
  const auto program = [](int) {
    TestProgram builder;
    builder.Feed("x", {4}).Feed("go", {1}, DType::kBool).DeclareSteps("scope");
    for (int i = 0; i < 8; ++i) {
      builder.Call("scale", {"x"}, absl::StrCat("a", i), {{"scale", 1.0F + i}});
    }
    for (int i = 0; i < 8; ++i) {
      const std::string type = i % 2 == 0 ? "c_allreduce_sum" : "c_allreduce_max";
      builder.Call(type, {absl::StrCat("a", i)}, absl::StrCat("b", i), {{"ring_id", 0}});
    }
    builder.Open().Call("c_allreduce_sum", {"x"}, "inner").Call("barrier", {"inner"}, "seen");
    builder.Close("conditional_block", {{"Cond", {"go"}}}, {{"Out", {}}, {"Scope", {"scope"}}},
                  {{"is_scalar_condition", true}});
    builder.Call("c_allreduce_min", {"x"}, "last");
    return builder.Fetch("b7").Build();
  };
  const auto feeds = [](int rank) -> std::vector<Tensor> {
    const auto v = static_cast<float>(rank);
    return {Tensor::Of<float>({4}, {v, v, v, v}), Tensor::Of<bool>({1}, {true})};
  };
  for (const auto kind : {SchedulerKind::kTrace, SchedulerKind::kSerial, SchedulerKind::kAsync,
                          SchedulerKind::kEngine, SchedulerKind::kShuffle}) {
    for (const int workers : {1, 4}) {
      CoreOptions options{.scheduler = kind, .num_workers = workers, .schedule_seed = 5};
      const auto runs = RunOnRanks(3, program, feeds, options);
      ASSERT_TRUE(runs.ok()) << Name(kind) << ": " << runs.status();
      EXPECT_THAT((*runs)[0].fetched[0], Each(2 * 8.0F));
    }
  }
}

TEST(CollectiveOps, AreDifferentiatedAsTensorParallelLayersNeedIt) {
  TestProgram builder;
  builder.Feed("x", {2, 4})
      .Call("c_identity", {"x"}, "a")
      .Call("scale", {"a"}, "b", {{"scale", 2.0F}})
      .Call("mp_allreduce_sum", {"b"}, "c")
      .Call("c_split", {"c"}, "d", {{"nranks", 2}})
      .Call("c_concat", {"d"}, "e", {{"nranks", 2}})
      .Call("alltoall", {"e"}, "f")
      .Declare("loss", {})
      .Call("reduce_sum", {"f"}, "loss", {{"reduce_all", true}});
  const auto backward =
      AppendBackward(builder.Build(), {.loss = "loss", .sources = {"x"}}, OpRegistry::Global());
  ASSERT_TRUE(backward.ok()) << backward.status();
  const std::vector<std::string> added = testing::OpTypes(backward->program);
  EXPECT_THAT(
      std::vector<std::string>(added.end() - 6, added.end()),
      ElementsAre("alltoall", "c_split", "c_concat", "c_identity", "scale", "c_allreduce_sum"));
}

}  // namespace
}  // namespace interp::collective_ops_test
