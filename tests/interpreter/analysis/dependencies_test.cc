#include "interpreter/analysis/dependencies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "core/program_print.h"
#include "passes/pipeline.h"
#include "tests/testing/matchers.h"
#include "tests/testing/plans.h"
#include "tests/testing/random_graph.h"
#include "tests/testing/test_program.h"

namespace interp::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> EdgesOf(absl::string_view text, const PlanOptions& options = {}) {
  const absl::StatusOr<Plan> plan = PlanOf(text, options);
  EXPECT_THAT(plan, IsOk());
  return plan.ok() ? EdgeTexts(plan->edges, plan->vars) : std::vector<std::string>();
}

TEST(DependenciesTest, ReadAfterWrite) {
  EXPECT_THAT(EdgesOf(R"(block 0
  var x int64[2]
  mix(X=x) -> (Out=a)
  mix(X=a) -> (Out=b)
  mix(X=[a, a]) -> (Out=c)
)"),
              ElementsAre("0->1 raw a", "0->2 raw a"));
}

TEST(DependenciesTest, WriteAfterRead) {
  EXPECT_THAT(EdgesOf(R"(block 0
  var x int64[2]
  var y int64[2]
  mix(X=x) -> (Out=a)
  mix(X=x) -> (Out=b)
  mix(X=y) -> (Out=x)
  mix(X=x) -> (Out=c)
)"),
              ElementsAre("0->2 war x", "1->2 war x", "2->3 raw x"));
}

TEST(DependenciesTest, WriteAfterWrite) {
  EXPECT_THAT(EdgesOf(R"(block 0
  var x int64[2]
  mix(X=x) -> (Out=a)
  mix(X=x) -> (Out=a)
  mix(X=a) -> (Out=b)
)"),
              ElementsAre("0->1 waw a", "1->2 raw a"));
}

TEST(DependenciesTest, UpdatesReadAndWrite) {
  EXPECT_THAT(EdgesOf(R"(block 0
  var p int64[2] param
  var x int64[2]
  mix(X=p) -> (Out=a)
  update(Param=p, X=x) -> (ParamOut=p)
  update(Param=p, X=x) -> (ParamOut=p)
  mix(X=p) -> (Out=b)
)"),
              ElementsAre("0->1 war p", "1->2 raw p", "2->3 raw p"));
}

// Shapes are written, too: the reader of x's shape comes before the next writer of x.
TEST(DependenciesTest, InputsWithoutBufferAreReads) {
  EXPECT_THAT(EdgesOf(R"(block 0
  var y int64[2]
  mix(X=y) -> (Out=x)
  shape_of(X=x) -> (Out=s)
  mix(X=y) -> (Out=x)
)"),
              ElementsAre("0->1 raw x", "1->2 war x"));
}

// b takes a's memory, so who reads a's values comes first.
TEST(DependenciesTest, InplaceWritesWaitForReadersOfTheMemory) {
  EXPECT_THAT(EdgesOf(R"(block 0
  var x int64[2]
  mix(X=x) -> (Out=a)
  mix(X=a) -> (Out=c)
  mix(X=a) -> (Out=b) inplace(X->Out)
  mix(X=b) -> (Out=d)
)"),
              ElementsAre("0->1 raw a", "0->2 raw a~", "1->2 war b", "2->3 raw b"));
}

// Readers of a's shape alone need not wait for, nor be waited for by, who writes over the bytes.
TEST(DependenciesTest, ShapesDoNotLieInTheMemory) {
  EXPECT_THAT(EdgesOf(R"(block 0
  var x int64[2]
  mix(X=x) -> (Out=a)
  shape_of(X=a) -> (Out=s)
  mix(X=a) -> (Out=b) inplace(X->Out)
)"),
              ElementsAre("0->1 raw a", "0->2 raw a"));
}

// v is a view of a, made by a reader; the writer over a's memory waits for v's readers.
TEST(DependenciesTest, ViewsAreReaders) {
  EXPECT_THAT(EdgesOf(R"(block 0
  var x int64[2]
  mix(X=x) -> (Out=a)
  view(X=a) -> (Out=v) {shape=[-1]} inplace(X->Out)
  view(X=a) -> (Out=u) {shape=[-1]} inplace(X->Out)
  mix(X=v) -> (Out=c)
  mix(X=u) -> (Out=d) inplace(X->Out)
)"),
              ElementsAre("0->1 raw a", "0->2 raw a", "0->3 raw v~", "1->3 raw v", "0->4 raw u~",
                          "1->4 war d~", "2->4 raw u", "3->4 war d"));
}

TEST(DependenciesTest, FetchesRunInOrder) {
  const Program program = TestProgram(DType::kInt64)
                              .Feed("x", {2})
                              .Call("mix", {"x"}, "a")
                              .Fetch("a")
                              .Fetch("x")
                              .Build();
  const absl::StatusOr<Plan> plan = MainPlan(program, {}, ProbeOps());
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(EdgeTexts(plan->edges, plan->vars),
              ElementsAre("0->1 raw x", "1->2 raw a", "0->3 raw x~", "2->3 waw fetch"));
}

// Each draws from a stream of its own.
TEST(DependenciesTest, RandomOpsKeepNoOrder) {
  EXPECT_THAT(EdgesOf(R"(block 0
  random() -> (Out=a) {dtype=3, shape=[1]}
  source() -> (Out=b) {dtype=3, shape=[1]}
  random() -> (Out=c) {dtype=3, shape=[1]}
  random() -> (Out=d) {dtype=3, shape=[1]}
)"),
              IsEmpty());
}

TEST(DependenciesTest, CommunicationRunsInProgramOrder) {
  EXPECT_THAT(EdgesOf(R"(block 0
  var x int64[2]
  c_allreduce(X=x) -> (Out=a)
  mix(X=x) -> (Out=b)
  send_v2(X=b) -> ()
  c_sync_comm_stream(X=x) -> (Out=d)
  mix(X=x) -> (Out=e)
  c_allreduce(X=x) -> (Out=f)
)"),
              ElementsAre("0->2 communication", "1->2 raw b", "2->3 communication",
                          "3->4 communication", "3->5 communication"));
}

TEST(DependenciesTest, OpsWithoutPredecessorWaitForTheRead) {
  EXPECT_THAT(EdgesOf(R"(block 0
  source() -> (Out=a) {dtype=3, shape=[1]}
  read() -> (Out=x)
  source() -> (Out=b) {dtype=3, shape=[1]}
  mix(X=b) -> (Out=c)
)"),
              ElementsAre("1->2 read", "2->3 raw b"));
}

// f lies over p and q: its reader (#3) waits for who writes the parts, and later readers of the
// parts wait for it.
TEST(DependenciesTest, CoalescedTensorsAreOneMemory) {
  EXPECT_THAT(EdgesOf(R"(block 0
  var x int64[2]
  coalesce_tensor(Input=[x, x]) -> (Output=[p, q], FusedOutput=f)
  mix(X=x) -> (Out=p)
  mix(X=x) -> (Out=q)
  c_allreduce(X=f) -> (Out=f)
  mix(X=p) -> (Out=y)
)"),
              ElementsAre("0->1 waw p", "0->2 waw q", "0->3 raw f~", "1->3 coalesce f",
                          "2->3 coalesce f", "1->4 raw p~", "3->4 coalesce f"));
}

TEST(DependenciesTest, SequentialOrdersEverything) {
  EXPECT_THAT(EdgesOf(R"(block 0
  source() -> (Out=a) {dtype=3, shape=[1]}
  source() -> (Out=b) {dtype=3, shape=[1]}
  mix(X=a) -> (Out=c)
)",
                      {.sequential = true}),
              ElementsAre("0->1 sequential", "0->2 raw a~", "1->2 sequential"));
}

// What the edges are for: any two instructions that could disturb each other are on a path.
class Conflicts {
 public:
  explicit Conflicts(const Plan& plan) : plan_(plan) {
    for (const Instruction& instruction : plan.instructions) Add(instruction);
  }

  bool Between(InstrId a, InstrId b) const {
    return Meet(writes_[a], uses_[b]) || Meet(writes_[b], uses_[a]) ||
           Meet(byte_writes_[a], byte_uses_[b]) || Meet(byte_writes_[b], byte_uses_[a]);
  }

 private:
  using Set = std::set<int32_t>;
  static bool Meet(const Set& a, const Set& b) {
    return std::any_of(a.begin(), a.end(), [&](int32_t x) { return b.count(x) > 0; });
  }

  void Add(const Instruction& instruction) {
    Set uses, writes, byte_uses, byte_writes;
    for (size_t arg = 0; arg < instruction.inputs.size(); ++arg) {
      const VarId id = instruction.inputs[arg];
      if (id < 0) continue;
      uses.insert(id);
      const int flags = instruction.def->inputs[InputSlotOf(instruction, arg)].flags;
      if ((flags & kNoNeedBuffer) == 0) byte_uses.insert(plan_.vars[id].storage);
    }
    for (size_t arg = 0; arg < instruction.outputs.size(); ++arg) {
      const VarId id = instruction.outputs[arg];
      if (id < 0) continue;
      uses.insert(id);
      writes.insert(id);
      const bool view = std::any_of(
          instruction.share.begin(), instruction.share.end(), [&](const InplacePair& pair) {
            return pair.output == static_cast<int32_t>(arg) && IsView(instruction, pair);
          });
      byte_uses.insert(plan_.vars[id].storage);
      if (!view) byte_writes.insert(plan_.vars[id].storage);
    }
    uses_.push_back(uses);
    writes_.push_back(writes);
    byte_uses_.push_back(byte_uses);
    byte_writes_.push_back(byte_writes);
  }

  const Plan& plan_;
  std::vector<Set> uses_, writes_, byte_uses_, byte_writes_;  // by InstrId
};

TEST(DependenciesTest, EveryConflictOfRandomProgramsIsOrdered) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    RandomGraph graph = MakeRandomGraph(seed, {.num_ops = 60});
    const absl::StatusOr<PipelineResult> passed =
        RunPipeline(std::move(graph.program), {.ops = ProbeOps()});
    ASSERT_THAT(passed, IsOk());
    const absl::StatusOr<Plan> plan = MainPlan(passed->program, {}, ProbeOps());
    ASSERT_THAT(plan, IsOk());
    const size_t n = plan->instructions.size();
    const auto kept = Closure(n, plan->edges, [](const Edge& edge) { return !edge.shrunk; });
    const Conflicts conflicts(*plan);
    for (size_t a = 0; a < n; ++a) {
      for (size_t b = a + 1; b < n; ++b) {
        if (!conflicts.Between(a, b)) continue;
        ASSERT_TRUE(kept[a][b]) << "seed " << seed << ": #" << a << " and #" << b << "\n"
                                << ToText(passed->program);
      }
    }
  }
}

// One writer, n readers, one writer, and so on: 2n edges for n instructions, not n^2.
TEST(DependenciesTest, EdgesGrowLinearly) {
  const auto count = [](int n) {
    TestProgram builder(DType::kInt64);
    builder.Feed("x", {2});
    for (int i = 0; i < n; ++i) {
      builder.Call("mix", {"x"}, i % 100 == 99 ? "a" : "y");
      builder.Call("mix", {"a", "y"}, absl::StrCat("b", i));
    }
    const absl::StatusOr<Plan> plan = MainPlan(builder.Build(), {}, ProbeOps());
    EXPECT_THAT(plan, IsOk());
    return plan->edges.size();
  };
  const size_t small = count(1'000);
  const size_t large = count(10'000);
  EXPECT_LE(large, small * 11);
  EXPECT_LE(large, 10'000u * 2 * 5);
}

}  // namespace
}  // namespace interp::testing
