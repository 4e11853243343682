// Long because one model of operations serves all kinds of random tests.
// Random operations against running them one after another, with every policy, 1 to 8 workers and
// several threads that push. Meant for ThreadSanitizer, too: values are plain memory.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <queue>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/testing/engines.h"
#include "tests/testing/sample.h"

namespace interp::engine {
namespace {

using testing::IsOk;
using testing::MakeEngine;

constexpr int kNumVars = 100;
const int kNumOps = testing::SampleOf(50'000, 1'000'000);

struct RandomOp {
  std::vector<int> reads, writes, updates;
};

std::vector<RandomOp> MakeOps(int count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<RandomOp> ops(count);
  for (RandomOp& op : ops) {
    std::vector<bool> used(kNumVars);
    const auto draw = [&](std::vector<int>& into, int most) {
      for (int n = static_cast<int>(random() % (most + 1)); n > 0; --n) {
        const int var = static_cast<int>(random() % kNumVars);
        if (!used[var]) into.push_back(var);
        used[var] = true;
      }
    };
    draw(op.writes, 2);
    draw(op.updates, 1);
    draw(op.reads, random() % 50 == 0 ? 20 : 3);
  }
  return ops;
}

uint64_t Mix(uint64_t a, uint64_t b) {
  a ^= b + 0x9E3779B97F4A7C15ULL + (a << 6) + (a >> 2);
  a *= 0xD6E8FEB86659FD93ULL;
  return a ^ (a >> 32);
}

// Values and, per variable, how often it was written.
struct World {
  std::vector<uint64_t> values = std::vector<uint64_t>(kNumVars, 1);
  std::vector<int> versions = std::vector<int>(kNumVars, 0);

  void Apply(const RandomOp& op, uint64_t id) {
    uint64_t value = id;
    for (const int v : op.reads) value = Mix(value, values[v]);
    for (const int v : op.updates) value = Mix(value, values[v]);
    for (const std::vector<int>* written : {&op.writes, &op.updates}) {
      for (const int v : *written) {
        values[v] = Mix(value, static_cast<uint64_t>(v));
        ++versions[v];
      }
    }
  }
};

struct Case {
  PolicyKind policy;
  int workers;
  int pushers;
};

class RandomOps : public ::testing::TestWithParam<Case> {
 protected:
  // Pushes ops[t], ops[t + pushers], ... from thread t, every other thread in a batch. `run` is the
  // body.
  template <typename Body>
  void PushAll(Engine& engine, const std::vector<RandomOp>& ops, const Body& run) {
    std::vector<Variable> variables;
    for (int i = 0; i < kNumVars; ++i) variables.push_back(engine.NewVariable());
    const int pushers = GetParam().pushers;
    std::vector<std::thread> threads;
    for (int t = 0; t < pushers; ++t) {
      threads.emplace_back([&, t] {
        std::vector<Variable> reads;
        std::vector<Variable> writes;
        Batch batch(engine);
        for (size_t i = t; i < ops.size(); i += pushers) {
          reads.clear();
          writes.clear();
          for (const int v : ops[i].reads) reads.push_back(variables[v]);
          for (const int v : ops[i].updates) reads.push_back(variables[v]);
          for (const int v : ops[i].updates) writes.push_back(variables[v]);
          for (const int v : ops[i].writes) writes.push_back(variables[v]);
          const auto body = [&run, i] { run(i); };
          const Accesses accesses{.reads = reads, .writes = writes};
          const OperationOptions options{.priority = static_cast<int>(i % 3)};
          ASSERT_THAT(t % 2 == 1 ? batch.Push(body, accesses, options)
                                 : engine.Push(body, accesses, options),
                      IsOk());
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_THAT(engine.WaitForAll(), IsOk());
  }

  std::unique_ptr<Engine> Make() {
    return MakeEngine({.policy = GetParam().policy, .workers = GetParam().workers});
  }
};

std::string NameOfCase(const ::testing::TestParamInfo<Case>& info) {
  return testing::NameOfPolicy({info.param.policy, 0}) + std::to_string(info.param.workers) +
         "Workers" + std::to_string(info.param.pushers) + "Pushers";
}

std::vector<Case> AllCases() {
  std::vector<Case> cases;
  for (const int pushers : {1, 3}) {
    cases.push_back({PolicyKind::kNaive, 1, pushers});
    for (int workers = 1; workers <= 8; ++workers) {
      cases.push_back({PolicyKind::kPooled, workers, pushers});
      cases.push_back({PolicyKind::kPerDevice, workers, pushers});
    }
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Engine, RandomOps, ::testing::ValuesIn(AllCases()), NameOfCase);

// Looks for an order of operations, one after the other, that explains what each of them has found:
// its versions, in the order reads, updates, writes.
class SerialOrder {
 public:
  SerialOrder(const std::vector<RandomOp>& ops, const std::vector<std::vector<int>>& found,
              const World& world)
      : ops_(ops), found_(found), world_(world), after_(ops.size()), before_(ops.size(), 0) {
    std::vector<std::vector<int32_t>> writers(kNumVars);
    for (int v = 0; v < kNumVars; ++v) writers[v].assign(world.versions[v], -1);
    for (size_t i = 0; i < ops.size(); ++i) {
      Each(i, [&](int v, int version, bool writes) {
        if (writes) writers[v][version] = static_cast<int32_t>(i);
      });
    }
    for (size_t i = 0; i < ops.size(); ++i) {
      Each(i, [&](int v, int version, bool writes) {
        if (version > 0) Demand(writers[v][version - 1], i);
        if (!writes && version < world.versions[v]) Demand(i, writers[v][version]);
      });
    }
  }
  // Operation `from` is known to come first.
  void Demand(size_t from, size_t to) {
    after_[from].push_back(static_cast<int32_t>(to));
    ++before_[to];
  }
  void ExpectThatThereIsOne() {
    World replay;
    size_t replayed = 0;
    std::queue<int32_t> free;
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (before_[i] == 0) free.push(static_cast<int32_t>(i));
    }
    for (; !free.empty(); free.pop(), ++replayed) {
      replay.Apply(ops_[free.front()], free.front());
      for (const int32_t next : after_[free.front()]) {
        if (--before_[next] == 0) free.push(next);
      }
    }
    EXPECT_EQ(replayed, ops_.size()) << "no serial order explains what was seen";
    EXPECT_EQ(replay.values, world_.values);
  }

 private:
  template <typename Visit>
  void Each(size_t i, const Visit& visit) const {
    size_t k = 0;
    for (const int v : ops_[i].reads) visit(v, found_[i][k++], false);
    for (const int v : ops_[i].updates) visit(v, found_[i][k++], true);
    for (const int v : ops_[i].writes) visit(v, found_[i][k++], true);
  }

  const std::vector<RandomOp>& ops_;
  const std::vector<std::vector<int>>& found_;
  const World& world_;
  std::vector<std::vector<int32_t>> after_;
  std::vector<int32_t> before_;
};

// What an operation does: notes the versions it finds, and writes.
void FindAndApply(const RandomOp& op, size_t id, World& world, std::vector<int>& found) {
  for (const std::vector<int>* list : {&op.reads, &op.updates, &op.writes}) {
    for (const int v : *list) found.push_back(world.versions[v]);
  }
  world.Apply(op, id);
}

TEST_P(RandomOps, GiveWhatSomeSerialOrderGives) {
  const std::vector<RandomOp> ops = MakeOps(kNumOps, GetParam().workers);
  World world;
  std::vector<std::vector<int>> found(ops.size());
  auto engine = Make();
  PushAll(*engine, ops, [&](size_t i) { FindAndApply(ops[i], i, world, found[i]); });
  const int pushers = GetParam().pushers;
  SerialOrder order(ops, found, world);
  for (size_t i = pushers; i < ops.size(); ++i) order.Demand(i - pushers, i);
  order.ExpectThatThereIsOne();
  if (pushers == 1) {
    World sequential;
    for (size_t i = 0; i < ops.size(); ++i) sequential.Apply(ops[i], i);
    EXPECT_EQ(sequential.values, world.values);
  }
}

// Operations that push others and wait for them, three deep, while another thread stops and starts
// the engine and yet another completes operations; the engine's destruction waits for the rest.
// Variables belong to a depth, so that no wait is a cycle.
class NestedOps : public ::testing::TestWithParam<Case> {
 protected:
  static constexpr int kDepths = 3;
  static constexpr int kVarsOfDepth = kNumVars / kDepths;
  inline static const size_t kNumNested = testing::SampleOf<size_t>(3'000, 20'000);

  NestedOps() : ops_(kNumNested), parents_(kNumNested, -1), found_(kNumNested) {
    for (int i = 0; i < kNumVars; ++i) variables_.push_back(engine_->NewVariable());
  }

  void Run() {
    std::vector<std::thread> pushers;
    for (int t = 0; t < GetParam().pushers; ++t) {
      pushers.emplace_back([this] {
        while (PushNext(0, -1) >= 0) continue;
      });
    }
    std::thread completer([this] { CompleteUntilOver(); });
    std::thread stopper([this] {
      while (!pushed_) {
        EXPECT_THAT(engine_->Stop(), IsOk());
        std::this_thread::yield();
        engine_->Start();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
    for (std::thread& thread : pushers) thread.join();
    pushed_ = true;
    stopper.join();
    // Bodies push by way of `engine_`, which is null as soon as its destruction begins.
    EXPECT_THAT(engine_->WaitForAll(), IsOk());
    engine_.reset();
    over_ = true;
    completer.join();
  }

  // A random operation on the variables of a depth.
  static RandomOp MakeOpOf(int depth, size_t seed) {
    RandomOp op = MakeOps(1, seed)[0];
    std::vector<bool> used(kVarsOfDepth);
    for (std::vector<int>* list : {&op.reads, &op.updates, &op.writes}) {
      std::vector<int> kept;
      for (const int v : *list) {
        const size_t of_depth = static_cast<size_t>(v) % kVarsOfDepth;
        if (!used[of_depth]) kept.push_back(depth * kVarsOfDepth + static_cast<int>(of_depth));
        used[of_depth] = true;
      }
      *list = std::move(kept);
    }
    return op;
  }

  // Pushes one operation more; -1 when there are enough.
  int PushNext(int depth, int parent) {
    const size_t id = next_++;
    if (id >= kNumNested) return -1;
    std::mt19937_64 random(id);
    parents_[id] = parent;
    ops_[id] = MakeOpOf(depth, id);
    const RandomOp& op = ops_[id];
    std::vector<Variable> reads;
    std::vector<Variable> writes;
    for (const int v : op.reads) reads.push_back(variables_[v]);
    for (const int v : op.updates) reads.push_back(variables_[v]);
    for (const int v : op.updates) writes.push_back(variables_[v]);
    for (const int v : op.writes) writes.push_back(variables_[v]);
    const Accesses accesses{.reads = reads, .writes = writes};
    const OperationOptions options{
        .property = random() % 3 == 0 ? Property::kHostUrgent : Property::kNormal,
        .priority = static_cast<int>(random() % 3)};
    const auto body = [this, id, depth] { Body(id, depth); };
    // A naive engine would run on the completing thread what waits for its next completion.
    if (random() % 8 == 0 && GetParam().policy != PolicyKind::kNaive) {
      EXPECT_THAT(engine_->Push(
                      [this, body](Completion completion) {
                        body();
                        std::lock_guard<std::mutex> lock(mutex_);
                        completions_.push(std::move(completion));
                      },
                      accesses, options),
                  IsOk());
    } else {
      EXPECT_THAT(engine_->Push(body, accesses, options), IsOk());
    }
    return static_cast<int>(id);
  }

  void Body(size_t id, int depth) {
    FindAndApply(ops_[id], id, world_, found_[id]);
    std::mt19937_64 random(id + 1);
    if (depth + 1 == kDepths || random() % 4 != 0) return;
    for (size_t children = 1 + random() % 3; children > 0; --children) {
      const int child = PushNext(depth + 1, static_cast<int>(id));
      if (child < 0 || ops_[child].writes.empty() || random() % 2 == 0) continue;
      const Variable written = variables_[ops_[child].writes[0]];
      const absl::Status status =
          random() % 4 == 0 ? engine_->WaitForWrite(written, std::chrono::microseconds(100))
                            : engine_->WaitForVar(written);
      EXPECT_TRUE(status.ok() || absl::IsDeadlineExceeded(status) ||
                  absl::IsResourceExhausted(status))
          << status;
    }
  }

  void CompleteUntilOver() {
    while (true) {
      const bool last = over_;
      std::queue<Completion> taken;
      {
        std::lock_guard<std::mutex> lock(mutex_);
        taken.swap(completions_);
      }
      if (taken.empty() && last) return;
      if (taken.empty()) std::this_thread::yield();
      for (; !taken.empty(); taken.pop()) EXPECT_THAT(taken.front().Done(), IsOk());
    }
  }

  std::vector<RandomOp> ops_;
  std::vector<int> parents_;
  std::vector<std::vector<int>> found_;
  std::atomic<size_t> next_{0};
  World world_;
  std::mutex mutex_;  // guards completions_
  std::queue<Completion> completions_;
  std::atomic<bool> pushed_{false};
  std::atomic<bool> over_{false};
  std::unique_ptr<Engine> engine_ =
      MakeEngine({.policy = GetParam().policy, .workers = GetParam().workers});
  std::vector<Variable> variables_;
};
INSTANTIATE_TEST_SUITE_P(
    Engine, NestedOps,
    ::testing::Values(Case{PolicyKind::kNaive, 1, 2}, Case{PolicyKind::kPooled, 1, 1},
                      Case{PolicyKind::kPooled, 3, 2}, Case{PolicyKind::kPerDevice, 1, 1},
                      Case{PolicyKind::kPerDevice, 1, 3}, Case{PolicyKind::kPerDevice, 4, 3}),
    NameOfCase);

TEST_P(NestedOps, GiveWhatSomeSerialOrderGives) {
  Run();
  SerialOrder order(ops_, found_, world_);
  for (size_t i = 0; i < ops_.size(); ++i) {
    if (parents_[i] >= 0) order.Demand(parents_[i], i);
  }
  order.ExpectThatThereIsOne();
}

// Waits for anything at all, cycles among them: each returns, and nothing hangs.
TEST_P(NestedOps, WaitsThatMayBeCyclesReturn) {
  std::atomic<int> runs{0};
  std::mt19937_64 random(1);
  const int num_tries = testing::SampleOf(100, 300);
  for (int i = 0; i < num_tries; ++i) {
    const Variable mine = variables_[random() % 4];
    const Variable other = variables_[random() % 4];
    const Variable inner = variables_[random() % 4];
    EXPECT_THAT(engine_->Push(
                    [&, other, inner] {
                      EXPECT_THAT(engine_->Push([&] { ++runs; }, {.writes = {inner}},
                                                {.property = Property::kHostUrgent}),
                                  IsOk());
                      const absl::Status status = engine_->WaitForVar(other);
                      EXPECT_TRUE(status.ok() || absl::IsFailedPrecondition(status)) << status;
                    },
                    {.writes = {mine}}),
                IsOk());
    if (i % 16 == 0) {
      EXPECT_THAT(engine_->WaitForAll(std::chrono::minutes(2)), IsOk());
    }
  }
  EXPECT_THAT(engine_->WaitForAll(std::chrono::minutes(2)), IsOk());
  EXPECT_EQ(runs, num_tries);
}

// Operations that fail, push, wait and complete elsewhere, with variables made and deleted
// meanwhile: nothing is lost and nothing hangs.
class Mixture : public RandomOps {};
INSTANTIATE_TEST_SUITE_P(
    Engine, Mixture,
    ::testing::Values(Case{PolicyKind::kNaive, 1, 3}, Case{PolicyKind::kPooled, 1, 1},
                      Case{PolicyKind::kPooled, 3, 1}, Case{PolicyKind::kPooled, 8, 4},
                      Case{PolicyKind::kPerDevice, 1, 1}, Case{PolicyKind::kPerDevice, 2, 2},
                      Case{PolicyKind::kPerDevice, 4, 3}),
    NameOfCase);

TEST_P(Mixture, SurvivesEverythingAtOnce) {
  auto engine = Make();
  const int num_rounds = testing::SampleOf(300, 3000);
  std::atomic<int> completed{0};
  std::atomic<int> expected{0};
  std::vector<std::thread> pushers;
  for (int t = 0; t < GetParam().pushers; ++t) {
    pushers.emplace_back([&, t] {
      std::mt19937_64 random(t);
      std::vector<Variable> mine;
      for (int i = 0; i < num_rounds; ++i) {
        while (mine.size() < 8) mine.push_back(engine->NewVariable());
        const Variable a = mine[random() % mine.size()];
        const Variable b = mine[random() % mine.size()];
        expected += 3;
        EXPECT_THAT(engine->Push(
                        [&completed, fails = random() % 5 == 0] {
                          ++completed;
                          if (fails) throw 1;
                        },
                        {.reads = {a}, .writes = {b}}, {.property = Property::kNoSkip}),
                    IsOk());
        EXPECT_THAT(engine->Push(
                        [&, b](Completion completion) {
                          ++completed;
                          // Pushes behind itself.
                          EXPECT_THAT(engine->Push([&] { ++completed; }, {.writes = {b}},
                                                   {.property = Property::kNoSkip}),
                                      IsOk());
                          EXPECT_THAT(completion.Done(), IsOk());
                        },
                        {.reads = {a}, .writes = {b}}, {.property = Property::kNoSkip}),
                    IsOk());
        if (random() % 4 == 0) (void)engine->WaitForVar(a);
        if (random() % 4 == 0) (void)engine->WaitForWrite(b, std::chrono::microseconds(50));
        if (random() % 4 == 0) {
          // What the asynchronous operation still pushes on it must be there.
          (void)engine->WaitForWrite(mine.back());
          (void)engine->WaitForWrite(mine.back());
          const bool in_use = mine.back() == b;
          if (!in_use) {
            ++expected;
            EXPECT_THAT(engine->DeleteVariable(mine.back(), [&] { ++completed; }), IsOk());
            mine.pop_back();
          }
        }
      }
    });
  }
  for (std::thread& thread : pushers) thread.join();
  (void)engine->WaitForAll(std::chrono::minutes(5));
  EXPECT_EQ(completed, expected);
  const EngineCounters counters = engine->counters();
  EXPECT_EQ(counters.pushed, counters.completed);
}

}  // namespace
}  // namespace interp::engine
