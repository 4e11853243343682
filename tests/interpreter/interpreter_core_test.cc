// Long because it goes through the core's whole interface, under every scheduler.
#include "interpreter/interpreter_core.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <new>
#include <set>
#include <stdexcept>
#include <thread>

#include "core/machine/usable_cpus.h"
#include "interpreter/run/scheduler.h"
#include "tests/testing/matchers.h"
#include "tests/testing/probe.h"
#include "tests/testing/probe_cores.h"
#include "tests/testing/test_program.h"

namespace interp::testing::interpreter_core_test {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<CoreOptions> AllSchedulers() {
  return {ProbeOptions(SchedulerKind::kTrace),     ProbeOptions(SchedulerKind::kSerial),
          ProbeOptions(SchedulerKind::kAsync, 1),  ProbeOptions(SchedulerKind::kAsync, 4),
          ProbeOptions(SchedulerKind::kEngine, 1), ProbeOptions(SchedulerKind::kEngine, 3)};
}

Tensor X(int64_t rows = 2) {
  std::vector<int64_t> values(static_cast<size_t>(rows * 4));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int64_t>(i) + 1;
  return Tensor::Of<int64_t>({rows, 4}, values);
}

// Two branches that meet; tags 1 to 6 in program order.
Program Diamonds() {
  return TestProgram(DType::kInt64)
      .Feed("x", {-1, 4})
      .Call("mix", {"x"}, "a", {{"tag", 1}})
      .Call("mix", {"a"}, "b", {{"tag", 2}})
      .Call("mix", {"a"}, "c", {{"tag", 3}})
      .Call("mix", {"b", "c"}, "d", {{"tag", 4}})
      .Call("mix", {"d", "x"}, "e", {{"tag", 5}})
      .Call("mix", {"e", "a"}, "f", {{"tag", 6}})
      .Fetch("f")
      .Fetch("d")
      .Build();
}

TEST(InterpreterCoreTest, EachFailingInstructionIsReportedAndTheCoreStaysUsable) {
  for (const CoreOptions& options : AllSchedulers()) {
    SCOPED_TRACE(absl::StrCat(Name(options.scheduler), " ", options.num_workers));
    const auto core = MakeProbeCore(Diamonds(), nullptr, options);
    const auto expected = core->Run({X()});
    ASSERT_THAT(expected, IsOk());
    for (int tag = 1; tag <= 6; ++tag) {
      Probe probe;
      probe.FailAt(tag);
      EXPECT_THAT(core->Run({X()}),
                  FailsWith(StatusCode::kInternal, absl::StrCat("made to fail at tag ", tag)));
      probe.FailNowhere();
      const auto again = core->Run({X()});
      ASSERT_THAT(again, IsOk());
      EXPECT_TRUE(SameBits(*again, *expected)) << "after failing at " << tag;
    }
  }
}

TEST(InterpreterCoreTest, ErrorsNameTheOpAndItsInputs) {
  const auto core = MakeProbeCore(Diamonds());
  Probe probe;
  probe.FailAt(5);
  EXPECT_THAT(core->Run({X(3)}),
              FailsWith(StatusCode::kInternal,
                        "op #5 mix (d: int64[3,4], x: int64[3,4]): made to fail at tag 5"));
}

TEST(InterpreterCoreTest, NothingStartsAfterAFailure) {
  for (const CoreOptions& options : AllSchedulers()) {
    if (options.num_workers > 1) continue;
    const auto core = MakeProbeCore(Diamonds(), nullptr, options);
    Probe probe;
    probe.FailAt(2);
    ASSERT_THAT(core->Run({X()}), Not(IsOk()));
    EXPECT_THAT(probe.TakeTrace(), Not(IsEmpty()));
    const std::vector<int32_t> trace = [&] {
      (void)core->Run({X()});
      return probe.TakeTrace();
    }();
    EXPECT_EQ(trace.back(), 2) << Name(options.scheduler);
    EXPECT_THAT(trace, Not(::testing::Contains(4)));
  }
}

// Memory of failed, cancelled and good runs all goes back to the pool.
TEST(InterpreterCoreTest, NothingLeaks) {
  for (const CoreOptions& options : AllSchedulers()) {
    const auto core = MakeProbeCore(Diamonds(), nullptr, options);
    Probe probe;
    for (int tag = 0; tag <= 6; ++tag) {
      probe.FailAt(tag);  // 0: nowhere
      { const auto fetched = core->Run({X()}); }
      EXPECT_EQ(core->memory().current_bytes, 0u) << "after failing at " << tag;
    }
    EXPECT_GT(core->memory().peak_bytes, 0u);
    core->TrimMemory();
    EXPECT_EQ(core->memory().reserved_bytes, 0u);
  }
}

TEST(InterpreterCoreTest, TheFirstErrorIsKept) {
  const auto core = MakeProbeCore(Diamonds(), nullptr, ProbeOptions(SchedulerKind::kAsync, 4));
  for (int round = 0; round < 200; ++round) {
    Probe probe;
    std::atomic<int> failures{0};
    std::atomic<int32_t> first{0};
    probe.SetHook([&](int32_t tag) {
      if (tag != 2 && tag != 3) return;
      int32_t none = 0;
      first.compare_exchange_strong(none, tag);
      ++failures;
      throw std::runtime_error(absl::StrCat("thrown at ", tag));
    });
    const auto fetched = core->Run({X()});
    ASSERT_THAT(fetched, FailsWith(StatusCode::kInternal, "thrown at "));
    if (failures == 1) {
      EXPECT_THAT(fetched.status().message(), HasSubstr(absl::StrCat("thrown at ", first.load())));
    }
  }
}

TEST(InterpreterCoreTest, ExceptionsOfKernelsBecomeErrors) {
  const auto core = MakeProbeCore(Diamonds());
  Probe probe;
  probe.SetHook([](int32_t tag) {
    if (tag == 3) throw std::bad_alloc();
  });
  EXPECT_THAT(core->Run({X()}), FailsWith(StatusCode::kResourceExhausted, "op #3 mix"));
}

TEST(InterpreterCoreTest, CancelEndsTheRunAndNoOther) {
  for (const CoreOptions& options : AllSchedulers()) {
    const auto core = MakeProbeCore(Diamonds(), nullptr, options);
    const auto expected = core->Run({X()});
    Probe probe;
    probe.SetHook([&](int32_t tag) {
      if (tag == 1) core->Cancel();
    });
    EXPECT_THAT(core->Run({X()}), FailsWith(StatusCode::kCancelled, "cancelled"));
    EXPECT_THAT(probe.TakeTrace(), ElementsAre(1));
    EXPECT_EQ(core->memory().current_bytes, expected.ok() ? core->memory().current_bytes : 0u);
    probe.SetHook(nullptr);
    const auto again = core->Run({X()});
    ASSERT_THAT(again, IsOk());
    EXPECT_TRUE(SameBits(*again, *expected));
  }
}

TEST(InterpreterCoreTest, CancelBeforeARunEndsItAtOnce) {
  for (const CoreOptions& options : AllSchedulers()) {
    const auto core = MakeProbeCore(Diamonds(), nullptr, options);
    // A run that is refused leaves it as it was.
    EXPECT_THAT(core->Run({}), FailsWith(StatusCode::kInvalidArgument, "got 0 feeds"));
    core->Cancel();
    Probe probe;
    EXPECT_THAT(core->Run({X()}), FailsWith(StatusCode::kCancelled, "cancelled"));
    EXPECT_THAT(probe.TakeTrace(), IsEmpty());
    EXPECT_THAT(core->Run({X()}), IsOk());
  }
}

TEST(InterpreterCoreTest, CancelFromAnotherThread) {
  const auto core = MakeProbeCore(Diamonds(), nullptr, ProbeOptions(SchedulerKind::kAsync, 2));
  for (int round = 0; round < 50; ++round) {
    std::thread other([&] { core->Cancel(); });
    const auto fetched = core->Run({X()});
    other.join();
    if (!fetched.ok()) {
      EXPECT_EQ(fetched.status().code(), StatusCode::kCancelled);
    }
  }
}

TEST(InterpreterCoreTest, TimeOutEndsTheRun) {
  using std::chrono::milliseconds;
  for (const CoreOptions& options : AllSchedulers()) {
    const auto core = MakeProbeCore(Diamonds(), nullptr, options);
    ASSERT_THAT(core->Run({X()}), IsOk());  // threads are there now
    Probe probe;
    probe.SetHook([](int32_t tag) {
      if (tag == 1) std::this_thread::sleep_for(milliseconds(120));
    });
    EXPECT_THAT(core->Run({X()}, {.timeout = milliseconds(100)}),
                FailsWith(StatusCode::kDeadlineExceeded,
                          "op #1 mix (x: int64[2,4]): running when the run's time-out ended"));
    EXPECT_THAT(probe.TakeTrace(), ElementsAre(1));
    EXPECT_THAT(core->Run({X()}, {.timeout = std::chrono::hours(1)}), IsOk());
    EXPECT_THAT(core->Run({X()}, {.timeout = std::chrono::nanoseconds::max()}), IsOk());
  }
}

TEST(InterpreterCoreTest, ASecondRunAtOnceIsRefused) {
  const auto core = MakeProbeCore(Diamonds());
  Probe probe;
  absl::Status inner;
  probe.SetHook([&](int32_t tag) {
    if (tag == 2) inner = core->Run({X()}).status();
  });
  EXPECT_THAT(core->Run({X()}), IsOk());
  EXPECT_THAT(inner, FailsWith(StatusCode::kFailedPrecondition, "Clone()"));
}

TEST(InterpreterCoreTest, ShapesAreInferredWhenTheFeedsChangeTheirs) {
  const auto core = MakeProbeCore(Diamonds());
  Probe probe;
  const auto infers_of_run = [&](const Tensor& x) {
    EXPECT_THAT(core->Run({x}), IsOk());
    return probe.TakeInfers();
  };
  EXPECT_EQ(infers_of_run(X(2)), 6);
  EXPECT_EQ(infers_of_run(X(2)), 0);
  EXPECT_EQ(infers_of_run(X(3)), 6);
  EXPECT_EQ(infers_of_run(X(3)), 0);
  Tensor with_lod = X(3);
  with_lod.lod = {{0, 1, 3}};
  EXPECT_EQ(infers_of_run(with_lod), 6);
  EXPECT_EQ(infers_of_run(with_lod), 0);
  probe.FailAt(3);
  ASSERT_THAT(core->Run({with_lod}), Not(IsOk()));
  probe.FailNowhere();
  probe.TakeInfers();
  EXPECT_EQ(infers_of_run(with_lod), 6);  // the failed run may have left shapes half done
}

TEST(InterpreterCoreTest, LodFlowsToTheFetches) {
  const auto core = MakeProbeCore(Diamonds());
  Tensor x = X(3);
  x.lod = {{0, 1, 3}};
  const auto fetched = core->Run({x});
  ASSERT_THAT(fetched, IsOk());
  EXPECT_EQ((*fetched)[0].lod, x.lod);
}

// Every limit either suffices or gives an error; afterwards the core is as good as new.
TEST(InterpreterCoreTest, MemoryLimitsAreObeyed) {
  const auto unlimited = MakeProbeCore(Diamonds());
  const auto expected = unlimited->Run({X(16)});
  ASSERT_THAT(expected, IsOk());
  const size_t peak = unlimited->memory().peak_bytes;
  int failed = 0;
  for (size_t limit = 64; limit <= peak; limit += 64) {
    CoreOptions options = ProbeOptions();
    options.max_memory_bytes = limit;
    const auto core = MakeProbeCore(Diamonds(), nullptr, options);
    {
      const auto fetched = core->Run({X(16)});
      EXPECT_LE(core->memory().peak_bytes, limit);
      if (fetched.ok()) {
        EXPECT_TRUE(SameBits(*fetched, *expected));
      } else {
        EXPECT_THAT(fetched, FailsWith(StatusCode::kResourceExhausted, "the limit is"));
        EXPECT_THAT(fetched.status().message(), HasSubstr("op #"));
        ++failed;
      }
    }
    EXPECT_EQ(core->memory().current_bytes, 0u);
    EXPECT_THAT(core->Run({X(0)}),
                limit >= 512
                    ? IsOk()
                    : ::testing::Matcher<const absl::StatusOr<std::vector<Tensor>>&>(::testing::_));
  }
  EXPECT_GT(failed, 0);
  CoreOptions options = ProbeOptions();
  options.max_memory_bytes = peak;
  EXPECT_THAT(MakeProbeCore(Diamonds(), nullptr, options)->Run({X(16)}), IsOk());
}

Program UpdateTwice() {
  return TestProgram(DType::kInt64)
      .Feed("x", {2})
      .Param("w", {2})
      .AddOp("update", {{"Param", {"w"}}, {"X", {"x"}}}, {{"ParamOut", {"w"}}}, {{"tag", 1}})
      .AddOp("update", {{"Param", {"w"}}, {"X", {"x"}}}, {{"ParamOut", {"w"}}}, {{"tag", 2}})
      .Fetch("w")
      .Build();
}

// Memory of a mapped file is never written: the first update moves the parameter.
TEST(InterpreterCoreTest, BorrowedParametersAreCopiedBeforeTheyAreUpdated) {
  const int64_t mapped[] = {5, 7};
  auto scope = std::make_shared<Scope>();
  scope->FindOrCreate("w")->tensor = Tensor::Borrow(DType::kInt64, {2}, mapped);
  const auto core = MakeProbeCore(UpdateTwice(), scope);
  const auto fetched = core->Run({VectorOf<int64_t>({1, 2})});
  ASSERT_THAT(fetched, IsOk());
  EXPECT_THAT(mapped, ElementsAre(5, 7));
  const Tensor& w = scope->Find("w")->tensor;
  EXPECT_TRUE(SameBits(w, (*fetched)[0]));
  EXPECT_NE(w.raw_data(), mapped);
}

// A fetched parameter is a snapshot: the next run's update does not reach it.
TEST(InterpreterCoreTest, FetchesStayWhatTheyWere) {
  auto scope = std::make_shared<Scope>();
  scope->FindOrCreate("w")->tensor = VectorOf<int64_t>({5, 7});
  auto core = MakeProbeCore(UpdateTwice(), scope);
  const auto first = core->Run({VectorOf<int64_t>({1, 2})});
  ASSERT_THAT(first, IsOk());
  const std::vector<int64_t> values = Values<int64_t>((*first)[0]);
  ASSERT_THAT(core->Run({VectorOf<int64_t>({1, 2})}), IsOk());
  EXPECT_EQ(Values<int64_t>((*first)[0]), values);
  core.reset();
  scope.reset();
  EXPECT_EQ(Values<int64_t>((*first)[0]), values);
}

TEST(InterpreterCoreTest, FetchesShareNoMemory) {
  const auto core =
      MakeProbeCore(TestProgram(DType::kInt64)
                        .Feed("x", {2, 4})
                        .Call("mix", {"x"}, "y")
                        .Call("view", {"y"}, "z", {{"shape", std::vector<int64_t>{2, 4}}})
                        .Fetch("y")
                        .Fetch("z")
                        .Fetch("y")
                        .Build());
  absl::StatusOr<std::vector<Tensor>> fetched = core->Run({X()});
  ASSERT_THAT(fetched, IsOk());
  const std::vector<int64_t> values = Values<int64_t>((*fetched)[0]);
  EXPECT_EQ(Values<int64_t>((*fetched)[1]), values);
  EXPECT_EQ(Values<int64_t>((*fetched)[2]), values);
  (*fetched)[0].mutable_data<int64_t>()[0] += 1;
  (*fetched)[2].mutable_data<int64_t>()[1] += 1;
  EXPECT_EQ(Values<int64_t>((*fetched)[1]), values);
}

// Also where those are what an earlier run gave, in memory of the core.
TEST(InterpreterCoreTest, FetchesShareNoMemoryWithFeedsAndParameters) {
  auto scope = std::make_shared<Scope>();
  Tensor& w = scope->FindOrCreate("w")->tensor;
  w = X();
  const auto core = MakeProbeCore(TestProgram(DType::kInt64)
                                      .Feed("x", {2, 4})
                                      .Param("w", {2, 4})
                                      .Call("mix", {"x", "w"}, "y")
                                      .Fetch("y")
                                      .Fetch("x")
                                      .Fetch("w")
                                      .Build(),
                                  scope);
  absl::StatusOr<std::vector<Tensor>> first = core->Run({X()});
  ASSERT_THAT(first, IsOk());
  const Tensor x = std::move((*first)[0]);
  w = std::move((*first)[1]);
  const std::vector<int64_t> fed = Values<int64_t>(x);
  const std::vector<int64_t> parameter = Values<int64_t>(w);
  absl::StatusOr<std::vector<Tensor>> fetched = core->Run({x});
  ASSERT_THAT(fetched, IsOk());
  for (Tensor& tensor : *fetched) tensor.mutable_data<int64_t>()[0] += 1;
  EXPECT_EQ(Values<int64_t>(x), fed);
  EXPECT_EQ(Values<int64_t>(w), parameter);
}

TEST(InterpreterCoreTest, EveryByteButZeroIsFedAsTrue) {
  const auto core = MakeProbeCore(
      TestProgram(DType::kBool).Feed("x", {4}).Call("assign", {"x"}, "y").Fetch("y").Build());
  const uint8_t bytes[] = {0, 1, 2, 255};
  const auto fetched = core->Run({Tensor::Borrow(DType::kBool, Shape({4}), bytes)});
  ASSERT_THAT(fetched, IsOk());
  const auto* const got = static_cast<const uint8_t*>((*fetched)[0].raw_data());
  EXPECT_THAT(std::vector<uint8_t>(got, got + 4), ElementsAre(0, 1, 1, 1));
  EXPECT_EQ(bytes[2], 2);  // the caller's memory stays
}

TEST(InterpreterCoreTest, FedMemoryIsNotHeldAfterTheRun) {
  const auto core = MakeProbeCore(Diamonds());
  for (const int fail_at : {0, 4}) {
    Probe probe;
    probe.FailAt(fail_at);
    int64_t values[8] = {};
    bool released = false;
    {
      Tensor x;
      x.dtype = DType::kInt64;
      x.shape = {2, 4};
      x.SetMemory(BorrowBuffer(values, sizeof(values), false, [&] { released = true; }), values);
      { const auto fetched = core->Run({x}); }
      EXPECT_FALSE(released);
    }
    EXPECT_TRUE(released);
  }
}

TEST(InterpreterCoreTest, MissingAndMistypedParametersAreErrors) {
  const Program program =
      TestProgram(DType::kInt64).Param("w", {2}).Call("mix", {"w"}, "a").Fetch("a").Build();
  auto scope = std::make_shared<Scope>();
  const auto core = MakeProbeCore(program, scope);
  EXPECT_THAT(core->Run({}), FailsWith(StatusCode::kNotFound, "parameter 'w'"));
  scope->FindOrCreate("w")->tensor = VectorOf<float>({1, 2});
  EXPECT_THAT(core->Run({}), FailsWith(StatusCode::kInvalidArgument,
                                       "parameter 'w' is float32[2], the program declares int64"));
  scope->FindOrCreate("w")->tensor = VectorOf<int64_t>({1, 2});
  EXPECT_THAT(core->Run({}), IsOk());
}

TEST(InterpreterCoreTest, ParametersMayChangeShapeBetweenRuns) {
  const Program program =
      TestProgram(DType::kInt64).Param("w", {-1}).Call("mix", {"w"}, "a").Fetch("a").Build();
  auto scope = std::make_shared<Scope>();
  scope->FindOrCreate("w")->tensor = VectorOf<int64_t>({1, 2});
  const auto core = MakeProbeCore(program, scope);
  ASSERT_THAT(core->Run({}), IsOk());
  scope->FindOrCreate("w")->tensor = VectorOf<int64_t>({1, 2, 3, 4, 5});
  const auto fetched = core->Run({});
  ASSERT_THAT(fetched, IsOk());
  EXPECT_EQ((*fetched)[0].shape, Shape({5}));
}

// Variables that are declared, but that nothing writes.
TEST(InterpreterCoreTest, ReadingWhatNothingWroteIsAnError) {
  const Program reads = TestProgram(DType::kInt64)
                            .Declare("ghost", {2})
                            .Call("mix", {"ghost"}, "a")
                            .Fetch("a")
                            .Build();
  EXPECT_THAT(MakeProbeCore(reads)->Run({}),
              FailsWith(StatusCode::kNotFound,
                        "op #0 mix (ghost: undefined[]): input 'ghost' has "
                        "no value"));
  const Program updates =
      TestProgram(DType::kInt64)
          .Param("w", {2})
          .Call("source", {}, "x", {{"shape", std::vector<int32_t>{2}}, {"dtype", 3}})
          .AddOp("update", {{"Param", {"w"}}, {"X", {"x"}}}, {{"ParamOut", {"w"}}})
          .Fetch("w")
          .Build();
  EXPECT_THAT(MakeProbeCore(updates)->Run({}), FailsWith(StatusCode::kNotFound, "input 'w'"));
}

// mix takes X[0]'s shape: y, updated in place, would have to grow.
TEST(InterpreterCoreTest, InPlaceUpdatesMayNotOutgrowTheirMemory) {
  OpRegistry ops;
  for (const absl::string_view type : {"feed", "fetch", "mix"}) ops.Add(*ProbeOps().Find(type));
  OpDef grow = *ProbeOps().Find("update");
  grow.type = "grow";
  grow.infer = [](InferContext& ctx) {
    ctx.SetShape(0, {1000});
    return absl::OkStatus();
  };
  ops.Add(grow);
  CoreOptions options = ProbeOptions();
  options.ops = &ops;
  const Program program =
      TestProgram(DType::kInt64)
          .Feed("x", {2})
          .Call("mix", {"x"}, "y")
          .AddOp("grow", {{"Param", {"y"}}, {"X", {"x"}}}, {{"ParamOut", {"y"}}})
          .Fetch("y")
          .Build();
  EXPECT_THAT(MakeProbeCore(program, nullptr, options)->Run({VectorOf<int64_t>({1, 2})}),
              FailsWith(StatusCode::kInvalidArgument, "would change from 16 bytes"));
  // What outlives the run is as it was, or the next one would write beyond it.
  const Program keeps = TestProgram(DType::kInt64)
                            .Param("w", {2})
                            .Feed("x", {2})
                            .AddOp("grow", {{"Param", {"w"}}, {"X", {"x"}}}, {{"ParamOut", {"w"}}})
                            .Fetch("w")
                            .Build();
  const auto scope = std::make_shared<Scope>();
  scope->FindOrCreate("w")->tensor = VectorOf<int64_t>({5, 7});
  const auto core = MakeProbeCore(keeps, scope, options);
  for (int run = 0; run < 2; ++run) {
    EXPECT_THAT(core->Run({VectorOf<int64_t>({1, 2})}),
                FailsWith(StatusCode::kInvalidArgument, "would change from 16 bytes"));
    EXPECT_EQ(scope->Find("w")->tensor.shape, Shape({2}));
  }
}

TEST(InterpreterCoreTest, FeedsAreChecked) {
  Program program =
      TestProgram(DType::kInt64).Feed("x", {-1, 4}).Call("mix", {"x"}, "a").Fetch("a").Build();
  for (Var& var : program.blocks[0].vars) {
    var.need_check_feed = program.names[var.id] == "x";
  }
  const auto core = MakeProbeCore(program);
  const auto fails_with = [](absl::string_view part) {
    return FailsWith(StatusCode::kInvalidArgument, part);
  };
  EXPECT_THAT(core->Run({}), fails_with("got 0 feeds, expected 1"));
  EXPECT_THAT(core->Run({X(), X()}), fails_with("got 2 feeds, expected 1"));
  EXPECT_THAT(core->Run({Tensor::Of<float>({1, 4}, {1, 2, 3, 4})}),
              fails_with("feed 'x' is float32[1,4], expected int64[-1,4]"));
  EXPECT_THAT(core->Run({VectorOf<int64_t>({1, 2})}), fails_with("feed 'x' is int64[2]"));
  EXPECT_THAT(core->Run({Tensor::Of<int64_t>({1, 3}, {1, 2, 3})}), fails_with("int64[1,3]"));
  Tensor no_memory;
  no_memory.dtype = DType::kInt64;
  no_memory.shape = {1, 4};
  EXPECT_THAT(core->Run({no_memory}), fails_with("feed 'x' has no memory"));
  EXPECT_THAT(core->Run({X(7)}), IsOk());
}

// Whether the program asks for it or not.
TEST(InterpreterCoreTest, FeedsHaveTheDeclaredShapeUnlessTheProgramIsKnownToBeWrong) {
  const Program program =
      TestProgram(DType::kInt64).Feed("x", {-1, 4}).Call("mix", {"x"}, "a").Fetch("a").Build();
  const Tensor wrong = Tensor::Of<int64_t>({1, 3}, {1, 2, 3});
  const auto core = MakeProbeCore(program);
  EXPECT_THAT(core->Run({wrong}),
              FailsWith(StatusCode::kInvalidArgument,
                        "feed 'x' is int64[1,3], expected int64[-1,4]; if the program declares"));
  EXPECT_EQ(core->CheckFeeds({wrong}), core->Run({wrong}).status());
  EXPECT_THAT(core->Run({VectorOf<int64_t>({1, 2, 3, 4})}),
              FailsWith(StatusCode::kInvalidArgument, "int64[4]"));
  EXPECT_THAT(core->Run({X(7)}), IsOk());

  CoreOptions options = ProbeOptions();
  options.check_feed_shapes = false;
  EXPECT_THAT(MakeProbeCore(program, nullptr, options)->Run({wrong}), IsOk());
}

TEST(InterpreterCoreTest, AFeedThatDeclaresNoDimsTakesAny) {
  const Program program =
      TestProgram(DType::kInt64).Feed("x", {}).Call("mix", {"x"}, "a").Fetch("a").Build();
  EXPECT_THAT(MakeProbeCore(program)->Run({X(7)}), IsOk());
}

// Threads that nobody runs ops side by side on are there for the ops themselves.
TEST(InterpreterCoreTest, WorkersThatTheSchedulerDoesNotTakeAreThreadsOfOps) {
  CoreOptions options = ProbeOptions(SchedulerKind::kAuto, 2);
  options.num_threads = 0;
  const Program chain = TestProgram(DType::kInt64)
                            .Feed("x", {-1, 4})
                            .Call("mix", {"x"}, "a")
                            .Call("mix", {"a"}, "b")
                            .Fetch("b")
                            .Build();
  const auto narrow = MakeProbeCore(chain, nullptr, options);
  EXPECT_EQ(narrow->scheduler(), SchedulerKind::kTrace);
  EXPECT_EQ(narrow->num_workers(), 1);
  EXPECT_EQ(narrow->num_threads(), UsableCpus());
  options.scheduler = SchedulerKind::kAsync;
  const auto async = MakeProbeCore(chain, nullptr, options);
  EXPECT_EQ(async->num_workers(), 2);
  EXPECT_EQ(async->num_threads(), std::max(1, UsableCpus() / 2));
}

TEST(InterpreterCoreTest, NumbersOfThreadsAreChecked) {
  for (const auto& [workers, threads] : {std::pair(0, 1), {-1, 1}, {5000, 1}, {1, -2}, {1, 5000}}) {
    CoreOptions options = ProbeOptions(SchedulerKind::kAsync, workers);
    options.num_threads = threads;
    EXPECT_THAT(
        InterpreterCore::Create(Diamonds(), {}, {}, nullptr, options),
        FailsWith(StatusCode::kInvalidArgument, workers == 1 ? "num_threads" : "num_workers"));
  }
}

TEST(InterpreterCoreTest, NaNAndInfinityAreFoundWhenAskedFor) {
  const Program program = TestProgram(DType::kFloat32)
                              .Param("w", {2})
                              .Call("half", {"w"}, "a")
                              .Call("half", {"a"}, "b")
                              .Fetch("b")
                              .Build();
  auto scope = std::make_shared<Scope>();
  CoreOptions options = ProbeOptions();
  options.check_nan_inf = true;
  const auto core = MakeProbeCore(program, scope, options);
  scope->Find("w")->tensor = VectorOf<float>({1, 2});
  EXPECT_THAT(core->Run({}), IsOk());
  scope->Find("w")->tensor = VectorOf<float>({1, std::numeric_limits<float>::infinity()});
  EXPECT_THAT(core->Run({}),
              FailsWith(StatusCode::kInvalidArgument,
                        "op #0 half (w: float32[2]): output 'a' float32[2] contains a NaN"));
  EXPECT_THAT(MakeProbeCore(program, scope)->Run({}), IsOk());
}

// Copies to the host are looked at when they are done, and what a block writes on a device is no
// result of the instruction that runs it.
TEST(InterpreterCoreTest, NaNsAreFoundBehindDevices) {
  TestProgram builder(DType::kFloat32);
  builder.Feed("x", {2}).Feed("n", {1}, DType::kInt64);
  builder.Call("half", {"x"}, "a").Call("half", {"x"}, "b").Open();
  builder.Call("half", {"b"}, "a").Close("repeat", {{"Condition", {"n"}}}, {});
  const Program program = builder.Fetch("a").Fetch("b").Build();
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    CoreOptions options = ProbeOptions();
    options.check_nan_inf = true;
    options.plan.place = {PlaceKind::kSim, 0};
    options.sim = {
        .capacity_bytes = 1 << 20, .seed = seed, .execution = SimOptions::Execution::kInterleaved};
    const auto core = MakeProbeCore(program, std::make_shared<Scope>(), options);
    for (int run = 0; run < 3; ++run) {
      EXPECT_THAT(core->Run({VectorOf<float>({1, 2}), VectorOf<int64_t>({1})}), IsOk());
    }
    const float infinity = std::numeric_limits<float>::infinity();
    EXPECT_THAT(core->Run({VectorOf<float>({1, infinity}), VectorOf<int64_t>({1})}),
                FailsWith(StatusCode::kInvalidArgument, "contains a NaN"));
  }
}

TEST(InterpreterCoreTest, ArraysStartEmptyInEveryRun) {
  const Program program = TestProgram(DType::kInt64)
                              .Feed("x", {2})
                              .DeclareArray("array")
                              .AddOp("push", {{"X", {"x"}}}, {{"ArrayOut", {"array"}}})
                              .AddOp("gather", {{"Array", {"array"}}}, {{"Out", {"y"}}})
                              .Fetch("y")
                              .Build();
  const auto core = MakeProbeCore(program);
  for (int run = 0; run < 3; ++run) {
    const auto fetched = core->Run({VectorOf<int64_t>({1, 2})});
    ASSERT_THAT(fetched, IsOk());
    EXPECT_THAT(Values<int64_t>((*fetched)[0]), ElementsAre(1, 2));
  }
}

// What runs need is in frames: the caller's scope has what lives on.
TEST(InterpreterCoreTest, ScopesHoldPersistablesAlone) {
  const Program program = TestProgram(DType::kInt64)
                              .Feed("x", {2})
                              .Param("w", {2})
                              .Call("dynamic", {"x"}, "x")
                              .Call("mix", {"x", "w"}, "y")
                              .Fetch("y")
                              .Build();
  auto scope = std::make_shared<Scope>();
  const auto core = MakeProbeCore(program, scope);
  EXPECT_THAT(scope->LocalNames(), ElementsAre("w"));
}

class Recorder : public RunObserver {
 public:
  struct Event {
    InstrId instruction;
    int worker;
    int64_t start_ns;
    int64_t end_ns;
  };
  void OnInstruction(InstrId instruction, int worker, int64_t start_ns, int64_t end_ns) override {
    std::lock_guard<std::mutex> lock(mutex_);
    events.push_back({instruction, worker, start_ns, end_ns});
  }
  void OnRunStart(int64_t /*now_ns*/) override { calls.emplace_back("run"); }
  void OnRunEnd(int64_t /*now_ns*/) override { calls.emplace_back("end"); }
  void OnStart(InstrId /*instruction*/, int /*worker*/, int64_t /*now_ns*/) override {
    std::lock_guard<std::mutex> lock(mutex_);
    calls.emplace_back("start");
  }
  void OnFree(VarId var, InstrId after, int /*worker*/) override {
    std::lock_guard<std::mutex> lock(mutex_);
    frees.emplace_back(var, after);
  }
  std::vector<Event> events;
  std::vector<std::string> calls;
  std::vector<std::pair<VarId, InstrId>> frees;

 private:
  std::mutex mutex_;
};

// Throws once an instruction has run.
class Thrower : public RunObserver {
 public:
  explicit Thrower(InstrId at) : at_(at) {}
  void OnInstruction(InstrId instruction, int /*worker*/, int64_t /*start_ns*/,
                     int64_t /*end_ns*/) override {
    if (instruction == at_) throw std::runtime_error("seen enough");
  }

 private:
  const InstrId at_;
};

TEST(InterpreterCoreTest, WhatObserversThrowEndsTheRunAndLeavesNothing) {
  for (const CoreOptions& options : AllSchedulers()) {
    SCOPED_TRACE(absl::StrCat(Name(options.scheduler), " ", options.num_workers));
    const auto core = MakeProbeCore(Diamonds(), nullptr, options);
    const auto expected = core->Run({X()});
    ASSERT_THAT(expected, IsOk());
    for (size_t at = 0; at < core->plan().instructions.size(); ++at) {
      Thrower thrower(static_cast<InstrId>(at));
      EXPECT_THAT(core->Run({X()}, {.observer = &thrower}),
                  FailsWith(StatusCode::kInternal, "seen enough"));
      const auto again = core->Run({X()});
      ASSERT_THAT(again, IsOk());
      EXPECT_TRUE(SameBits(*again, *expected)) << "after a throw at " << at;
    }
  }
}

TEST(InterpreterCoreTest, ObserversSeeEachInstructionOnceAndInOrder) {
  for (const CoreOptions& options : AllSchedulers()) {
    const auto core = MakeProbeCore(Diamonds(), nullptr, options);
    Recorder recorder;
    ASSERT_THAT(core->Run({X()}, {.observer = &recorder}), IsOk());
    const Plan& plan = core->plan();
    std::vector<const Recorder::Event*> by_id(plan.instructions.size(), nullptr);
    for (const Recorder::Event& event : recorder.events) {
      EXPECT_EQ(by_id[event.instruction], nullptr);
      by_id[event.instruction] = &event;
      EXPECT_LE(event.start_ns, event.end_ns);
      EXPECT_GE(event.worker, 0);
      EXPECT_LT(event.worker, options.num_workers);
    }
    EXPECT_EQ(recorder.events.size(), plan.instructions.size());
    for (const Edge& edge : plan.edges) {
      EXPECT_LE(by_id[edge.from]->end_ns, by_id[edge.to]->start_ns);
    }
  }
}

TEST(InterpreterCoreTest, ObserversSeeTheRunAroundEverythingAndEachFreeOnce) {
  for (const CoreOptions& options : AllSchedulers()) {
    const auto core = MakeProbeCore(Diamonds(), nullptr, options);
    Recorder first;
    Recorder second;
    ObserverList both;
    both.Add(&first);
    both.Add(nullptr);
    both.Add(&second);
    ASSERT_THAT(core->Run({X()}, {.observer = &both}), IsOk());
    const Plan& plan = core->plan();
    EXPECT_EQ(first.calls.size(), plan.instructions.size() + 2);
    EXPECT_EQ(first.calls.front(), "run");
    EXPECT_EQ(first.calls.back(), "end");
    size_t num_freed = 0;
    for (const int32_t count : plan.ref_counts) num_freed += count > 0 ? 1 : 0;
    std::set<VarId> freed;
    for (const auto& [var, after] : first.frees) {
      EXPECT_TRUE(freed.insert(var).second);
      EXPECT_THAT(plan.gc_check[after], ::testing::Contains(var));
    }
    EXPECT_EQ(freed.size(), num_freed);
    EXPECT_EQ(second.calls.size(), first.calls.size());
    EXPECT_EQ(second.events.size(), first.events.size());
    EXPECT_EQ(second.frees.size(), first.frees.size());
  }
}

TEST(InterpreterCoreTest, CreateReportsWhatIsWrongWithTheProgram) {
  const auto create = [](const Program& program) {
    return InterpreterCore::Create(program, {}, {}, nullptr, ProbeOptions()).status();
  };
  EXPECT_THAT(create(TestProgram().Feed("x", {2}).Call("nope", {"x"}, "y").Fetch("y").Build()),
              FailsWith(StatusCode::kUnimplemented, "nope"));
  EXPECT_THAT(InterpreterCore::Create(Diamonds(), {"x"}, {"z"}, nullptr, ProbeOptions()),
              FailsWith(StatusCode::kNotFound, "z"));
}

TEST(InterpreterCoreTest, FeedsAndFetchesMayBeChosen) {
  auto core = InterpreterCore::Create(Diamonds(), {"a"}, {"d", "c"}, nullptr, ProbeOptions());
  ASSERT_THAT(core, IsOk());
  EXPECT_THAT((*core)->plan().fetches, ElementsAre("d", "c"));
  EXPECT_EQ((*core)->plan().feeds[0].name, "a");
}

TEST(ResolveSchedulerTest, AutoIsAsyncForWidePlansWithWorkers) {
  Plan wide;
  wide.instructions.resize(30);
  wide.critical_path = 20;
  Plan narrow;
  narrow.instructions.resize(30);
  narrow.critical_path = 21;
  const SchedulerKind automatic = SchedulerKind::kAuto;
  EXPECT_EQ(ResolveScheduler(automatic, wide, 2), SchedulerKind::kAsync);
  EXPECT_EQ(ResolveScheduler(automatic, wide, 1), SchedulerKind::kTrace);
  EXPECT_EQ(ResolveScheduler(automatic, narrow, 2), SchedulerKind::kTrace);
  EXPECT_EQ(ResolveScheduler(SchedulerKind::kSerial, wide, 2), SchedulerKind::kSerial);
}

TEST(SchedulerNamesTest, NamesReadBack) {
  for (const SchedulerKind kind :
       {SchedulerKind::kAuto, SchedulerKind::kTrace, SchedulerKind::kSerial, SchedulerKind::kAsync,
        SchedulerKind::kEngine, SchedulerKind::kShuffle}) {
    const auto read = SchedulerFromName(Name(kind));
    ASSERT_THAT(read, IsOk());
    EXPECT_EQ(*read, kind);
  }
  EXPECT_THAT(SchedulerFromName("fast"),
              FailsWith(StatusCode::kInvalidArgument, "auto trace serial async engine shuffle"));
}

}  // namespace
}  // namespace interp::testing::interpreter_core_test
