// Random numbers in graphs: those of the host, new ones in each run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/resource/random_stream.h"
#include "interpreter/analysis/graphs.h"
#include "tests/cuda/graph_test.h"
#include "tests/testing/golden_steps.h"
#include "tests/testing/program_text.h"

namespace interp::cuda_test {
namespace {

using testing::IsOk;
using testing::Parse;

// What is fetched, as bytes.
std::vector<std::string> Bytes(const std::vector<Tensor>& tensors) {
  std::vector<std::string> bytes;
  for (const Tensor& tensor : tensors) {
    bytes.emplace_back(static_cast<const char*>(tensor.raw_data()), tensor.size_bytes());
  }
  return bytes;
}

CoreOptions OnGpu() {
  CoreOptions options = InGraphs();
  options.cuda_graphs = false;
  return options;
}

// A program in graphs and on the host, whose runs are to give the same bits.
class CudaGraphRandom : public CudaGraphs {
 protected:
  void Make(absl::string_view text, std::vector<std::string> feeds,
            std::vector<std::string> fetches) {
    const auto make = [&](CoreOptions options) {
      options.random_seed = 5;
      options.passes.disable = {"prune"};
      auto core = InterpreterCore::Create(Parse(text), feeds, fetches, nullptr, options);
      EXPECT_THAT(core, IsOk());
      return *std::move(core);
    };
    core_ = make(InGraphs());
    host_ = make({});
  }

  // Runs both and gives what they have in common.
  std::vector<std::string> RunBoth(const std::vector<Tensor>& feeds = {},
                                   const RunOptions& options = {}) {
    const auto got = core_->Run(feeds, options);
    const auto want = host_->Run(feeds, options);
    EXPECT_THAT(got, IsOk());
    EXPECT_THAT(want, IsOk());
    if (!got.ok() || !want.ok()) return {};
    EXPECT_EQ(Bytes(*got), Bytes(*want));
    return Bytes(*got);
  }
};

constexpr char kDraws[] = R"(block 0
  var u float32[1000]
  var v float32[1000]
  var i int64[100]
  var d float32[1000]
  var m uint8[1000]
  uniform_random() -> (Out=u) {shape=[1000], dtype=5, min=0.0, max=1.0}
  uniform_random() -> (Out=v) {shape=[1000], dtype=5, min=0.0, max=1.0}
  randint() -> (Out=i) {shape=[100], dtype=3, low=0, high=1000000}
  dropout(X=u) -> (Out=d, Mask=m) {dropout_prob=0.4}
)";

TEST_F(CudaGraphRandom, IsNewInEachRunAndOfEachOp) {
  Make(kDraws, {}, {"u", "v", "i", "m"});
  EXPECT_THAT(TypesInNoGraph(core_->plan()), ::testing::IsEmpty());
  std::set<std::string> seen;
  for (int run = 0; run < 8; ++run) {
    for (std::string& bytes : RunBoth()) seen.insert(std::move(bytes));
  }
  EXPECT_EQ(seen.size(), 8u * 4u);
  EXPECT_EQ(stats().graphs, 1);
  EXPECT_EQ(stats().captures, 1);
  EXPECT_EQ(stats().replays, 6);
  EXPECT_THAT(stats().refused, ::testing::IsEmpty());
}

TEST_F(CudaGraphRandom, GoesOnFromAnyState) {
  Make(kDraws, {}, {"u", "v", "i", "m"});
  std::vector<std::string> third;
  for (int run = 0; run < 4; ++run) {
    const std::vector<std::string> drawn = RunBoth();
    if (run == 2) third = drawn;
  }
  core_->SetRandomState({.seed = 5, .step = 2});
  host_->SetRandomState({.seed = 5, .step = 2});
  EXPECT_EQ(RunBoth(), third);
  const RandomState far{.seed = ~uint64_t{0}, .stream = 7, .step = uint64_t{1} << 40};
  EXPECT_NE(RunBoth({}, {.random = far}), third);
  EXPECT_EQ(RunBoth({}, {.random = RandomState{.seed = 5, .step = 2}}), third);
  RunBoth();
  EXPECT_EQ(stats().captures, 1);
  EXPECT_EQ(stats().replays, 6);
}

TEST_F(CudaGraphRandom, IsOfAnotherStreamInEachClone) {
  Make(kDraws, {}, {"u", "v", "i", "m"});
  const std::unique_ptr<InterpreterCore> first = std::move(core_);
  const std::unique_ptr<InterpreterCore> first_host = std::move(host_);
  std::set<std::string> seen;
  for (int clone = 0; clone < 2; ++clone) {
    core_ = first->Clone();
    host_ = first_host->Clone();
    for (int run = 0; run < 4; ++run) seen.insert(RunBoth()[0]);
    EXPECT_EQ(stats().replays, 2);
  }
  EXPECT_EQ(seen.size(), 8u);
}

// Runs whose time is over, in graphs or not, are repeated with the same numbers.
TEST_F(CudaGraphRandom, IsDrawnAgainAfterARunThatFails) {
  Make(kDraws, {}, {"u", "v", "i", "m"});
  for (int run = 0; run < 12; ++run) {
    if (run % 4 == 3) {
      const auto failed = core_->Run({}, {.timeout = std::chrono::nanoseconds(0)});
      EXPECT_TRUE(absl::IsDeadlineExceeded(failed.status())) << failed.status();
    }
    RunBoth();
  }
  EXPECT_GT(stats().replays, 0);
}

// A sum of what all runs have drawn, none of which waits for the one before. Feeds are copied on a
// stream of their own.
TEST_F(CudaGraphRandom, IsThatOfItsRunWhileOthersAreInFlight) {
  constexpr char kSum[] = R"(block 0
  var sum int64[500] persistable
  var x int64[500]
  var y int64[500]
  var i int64[500]
  var k int64[500]
  scale(X=x) -> (Out=y) {scale=2.0}
  randint() -> (Out=i) {shape=[500], dtype=3, low=0, high=1000000000}
  elementwise_add(X=i, Y=y) -> (Out=k)
  elementwise_add(X=sum, Y=k) -> (Out=sum)
)";
  const auto run = [&](CoreOptions options) {
    options.passes.disable = {"prune"};
    const auto scope = std::make_shared<Scope>();
    const Tensor zeros = TensorOf<int64_t>({500}, std::vector<int64_t>(500, 0));
    EXPECT_THAT(testing::FillScope({{"sum", zeros}}, *scope), IsOk());
    auto core = InterpreterCore::Create(Parse(kSum), {"x"}, {}, scope, options);
    EXPECT_THAT(core, IsOk());
    for (int i = 0; i < 12; ++i) {
      EXPECT_THAT((*core)->Run({zeros}, {.wait_for_devices = false}), IsOk());
    }
    EXPECT_THAT((*core)->Synchronize(), IsOk());
    const int64_t replays = options.cuda_graphs ? (*core)->graph_stats()->replays : 10;
    EXPECT_EQ(replays, 10);
    return testing::Values<int64_t>(testing::ValuesInScope({{"sum", zeros}}, *scope)[0].second);
  };
  EXPECT_EQ(run(InGraphs()), run({}));
}

// Each stream has graphs of its own.
TEST_F(CudaGraphRandom, IsDrawnOnSeveralStreams) {
  constexpr char kTwoStreams[] = R"(block 0
  var a float32[300]
  var b float32[300]
  var c float32[300]
  var d float32[300]
  uniform_random() -> (Out=a) {shape=[300], dtype=5, execution_stream="one"}
  relu(X=a) -> (Out=b) {execution_stream="one"}
  uniform_random() -> (Out=c) {shape=[300], dtype=5, execution_stream="two"}
  relu(X=c) -> (Out=d) {execution_stream="two"}
)";
  Make(kTwoStreams, {}, {"b", "d"});
  std::set<std::string> seen;
  for (int run = 0; run < 6; ++run) {
    for (std::string& bytes : RunBoth()) seen.insert(std::move(bytes));
  }
  EXPECT_EQ(seen.size(), 12u);
  EXPECT_EQ(stats().graphs, 2);
}

// The block's activations draw from states of their own, in no graph.
TEST_F(CudaGraphRandom, LeavesThatOfLoopsAlone) {
  constexpr char kLoop[] = R"(block 0
  var n int64[1]
  var i int64[1]
  var go bool[1]
  var a int64[40]
  var b int64[40]
  var sum int64[40]
  fill_constant() -> (Out=i) {shape=[1], dtype=3, value=0.0}
  randint() -> (Out=a) {shape=[40], dtype=3, low=0, high=1000}
  scale(X=a) -> (Out=b) {scale=2.0}
  assign(X=b) -> (Out=sum)
  less_than(X=i, Y=n) -> (Out=go)
  while(X=[i, n, sum], Condition=go) -> (Out=[i, sum, go]) {sub_block=block:1}
block 1 parent=0
  var r int64[40]
  var next int64[40]
  randint() -> (Out=r) {shape=[40], dtype=3, low=0, high=1000}
  elementwise_add(X=sum, Y=r) -> (Out=next)
  assign(X=next) -> (Out=sum)
  increment(X=i) -> (Out=i) {step=1.0}
  less_than(X=i, Y=n) -> (Out=go)
)";
  Make(kLoop, {"n"}, {"a", "sum"});
  std::set<std::string> seen;
  for (int run = 0; run < 6; ++run) {
    for (std::string& bytes : RunBoth({TensorOf<int64_t>({1}, {3})})) seen.insert(std::move(bytes));
  }
  EXPECT_EQ(seen.size(), 12u);
  EXPECT_GT(stats().replays, 0);
}

// As programs do that compute a part of the forward pass again.
TEST_F(CudaGraphRandom, RepeatsMasksOfOneSeedWithinARun) {
  constexpr char kRepeated[] = R"(block 0
  var x float32[400]
  var seed int32[1]
  var a float32[400]
  var b float32[400]
  var m uint8[400]
  var n uint8[400]
  seed() -> (Out=seed) {seed=0}
  dropout(X=x, Seed=seed) -> (Out=a, Mask=m) {dropout_prob=0.4}
  dropout(X=x, Seed=seed) -> (Out=b, Mask=n) {dropout_prob=0.4}
)";
  Make(kRepeated, {"x"}, {"m", "n"});
  EXPECT_THAT(TypesInNoGraph(core_->plan()), ::testing::IsEmpty());
  const Tensor x = TensorOf<float>({400}, SomeValues<float>(400));
  std::set<std::string> seen;
  for (int run = 0; run < 5; ++run) {
    const std::vector<std::string> masks = RunBoth({x});
    EXPECT_EQ(masks[0], masks[1]);
    seen.insert(masks[0]);
  }
  EXPECT_EQ(seen.size(), 5u);
  EXPECT_EQ(stats().graphs, 1);
}

// Rows of all ops that draw random numbers, in a graph with what doubles their output.
struct Draw {
  std::string type;
  std::string call;  // slots and attributes, all of which `out` is
  std::string out = "float32[50]";
  bool repeats = false;  // the same in every run
};

const std::vector<Draw>& Draws() {
  static const auto& draws = *new std::vector<Draw>{
      {"uniform_random", "() -> (Out=out) {shape=[50], dtype=5}"},
      {"uniform_random", "() -> (Out=out) {shape=[50], dtype=5, seed=7}", "float32[50]", true},
      {"uniform_random_batch_size_like", "(Input=x) -> (Out=out) {shape=[50], dtype=5}"},
      {"gaussian_random", "() -> (Out=out) {shape=[50], dtype=5}"},
      {"gaussian_random", "() -> (Out=out) {shape=[50], dtype=5, seed=7}", "float32[50]", true},
      {"gaussian_random_batch_size_like", "(Input=x) -> (Out=out) {shape=[50], dtype=5}"},
      {"gaussian_inplace", "(x=x) -> (out=out) {}"},
      {"randint", "() -> (Out=out) {shape=[50], dtype=3, low=0, high=100000}", "int64[50]"},
      {"seed", "() -> (Out=out) {}", "int32[1]"},
      {"seed", "() -> (Out=out) {seed=7}", "int32[1]", true},
      {"dropout", "(X=x) -> (Out=out) {dropout_prob=0.5}"},
      {"dropout", "(X=x) -> (Out=out) {dropout_prob=0.5, fix_seed=true, seed=7}", "float32[50]",
       true},
      {"dropout", "(X=x) -> (Out=out) {dropout_prob=0.5, is_test=true}", "float32[50]", true},
  };
  return draws;
}

TEST_F(CudaGraphRandom, IsThatOfTheHostWhateverTheOp) {
  const Tensor x = TensorOf<float>({50}, SomeValues<float>(50));
  for (const Draw& draw : Draws()) {
    SCOPED_TRACE(absl::StrCat(draw.type, draw.call));
    const std::string text = absl::StrCat("block 0\n  var x float32[50]\n  var out ", draw.out,
                                          "\n  var twice ", draw.out, "\n  ", draw.type, draw.call,
                                          "\n  scale(X=out) -> (Out=twice) {scale=2.0}\n");
    std::vector<std::unique_ptr<InterpreterCore>> cores;
    for (const CoreOptions& options : {InGraphs(), OnGpu(), CoreOptions()}) {
      auto core = InterpreterCore::Create(Parse(text), {"x"}, {"out", "twice"}, nullptr, options);
      ASSERT_THAT(core, IsOk());
      cores.push_back(*std::move(core));
    }
    std::set<std::string> seen;
    for (int run = 0; run < 5; ++run) {
      std::vector<std::vector<Tensor>> results;
      for (const auto& core : cores) {
        const auto result = core->Run({x});
        ASSERT_THAT(result, IsOk());
        results.push_back(*result);
      }
      EXPECT_EQ(Bytes(results[0]), Bytes(results[1]));
      EXPECT_EQ(testing::Difference(results[0][0], results[2][0], 1e-5, 1e-5), "");
      seen.insert(Bytes(results[0])[0]);
    }
    EXPECT_EQ(seen.size(), draw.repeats ? 1u : 5u);
    EXPECT_EQ(cores[0]->graph_stats()->instructions, 2);
    EXPECT_EQ(cores[0]->graph_stats()->replays, 3);
  }
}

// A row that asked KernelContext::random would repeat the numbers of the run that was captured.
// Those of rnn draw none.
TEST_F(CudaGraphRandom, IsTestedForAllOpsWithRows) {
  std::set<std::string, std::less<>> tested = {"rnn"};
  for (const Draw& draw : Draws()) tested.insert(draw.type);
  for (const absl::string_view type : OpRegistry::Global().Types()) {
    const OpDef& def = *OpRegistry::Global().Find(type);
    const bool has_row =
        std::any_of(def.kernels.begin(), def.kernels.end(),
                    [](const KernelDef& kernel) { return kernel.place == PlaceKind::kCuda; });
    EXPECT_TRUE(!def.random || !has_row || tested.contains(type)) << type;
  }
}

}  // namespace
}  // namespace interp::cuda_test
