// Random operations against running them one after another, with every policy, 1 to 8 workers and
// several threads that push. Meant for ThreadSanitizer, too: values are plain memory.
#include <gtest/gtest.h>

#include <cstdint>
#include <queue>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/testing/engines.h"

namespace interp::engine {
namespace {

using testing::IsOk;
using testing::MakeEngine;

constexpr int kNumVars = 100;
constexpr int kNumOps = testing::kSlow ? 100'000 : 1'000'000;

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

TEST_P(RandomOps, GiveWhatSomeSerialOrderGives) {
  const std::vector<RandomOp> ops = MakeOps(kNumOps, GetParam().workers);
  World world;
  // By op: the versions it found, in the order reads, updates, writes.
  std::vector<std::vector<int>> found(ops.size());
  auto engine = Make();
  PushAll(*engine, ops, [&](size_t i) {
    for (const std::vector<int>* list : {&ops[i].reads, &ops[i].updates, &ops[i].writes}) {
      for (const int v : *list) found[i].push_back(world.versions[v]);
    }
    world.Apply(ops[i], i);
  });

  // The order of pushes, as far as it can be told: a thread's own order, and per variable the
  // writers by version with the readers between them.
  const int pushers = GetParam().pushers;
  std::vector<std::vector<int32_t>> after(ops.size());
  std::vector<int32_t> before(ops.size(), 0);
  const auto edge = [&](size_t from, size_t to) {
    after[from].push_back(static_cast<int32_t>(to));
    ++before[to];
  };
  for (size_t i = pushers; i < ops.size(); ++i) edge(i - pushers, i);
  std::vector<std::vector<int32_t>> writers(kNumVars);
  for (int v = 0; v < kNumVars; ++v) writers[v].assign(world.versions[v], -1);
  const auto each = [&](size_t i, auto visit) {
    size_t k = 0;
    for (const int v : ops[i].reads) visit(v, found[i][k++], false);
    for (const int v : ops[i].updates) visit(v, found[i][k++], true);
    for (const int v : ops[i].writes) visit(v, found[i][k++], true);
  };
  for (size_t i = 0; i < ops.size(); ++i) {
    each(i, [&](int v, int version, bool writes) {
      if (writes) writers[v][version] = static_cast<int32_t>(i);
    });
  }
  for (size_t i = 0; i < ops.size(); ++i) {
    each(i, [&](int v, int version, bool writes) {
      if (version > 0) edge(writers[v][version - 1], i);
      if (!writes && version < world.versions[v]) edge(i, writers[v][version]);
    });
  }
  World replay;
  size_t replayed = 0;
  std::queue<int32_t> free;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (before[i] == 0) free.push(static_cast<int32_t>(i));
  }
  for (; !free.empty(); free.pop(), ++replayed) {
    replay.Apply(ops[free.front()], free.front());
    for (const int32_t next : after[free.front()]) {
      if (--before[next] == 0) free.push(next);
    }
  }
  EXPECT_EQ(replayed, ops.size()) << "no serial order explains what was seen";
  EXPECT_EQ(replay.values, world.values);
  if (pushers == 1) {
    World sequential;
    for (size_t i = 0; i < ops.size(); ++i) sequential.Apply(ops[i], i);
    EXPECT_EQ(sequential.values, world.values);
  }
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
  constexpr int kRounds = testing::kSlow ? 300 : 3000;
  std::atomic<int> completed{0};
  std::atomic<int> expected{0};
  std::vector<std::thread> pushers;
  for (int t = 0; t < GetParam().pushers; ++t) {
    pushers.emplace_back([&, t] {
      std::mt19937_64 random(t);
      std::vector<Variable> mine;
      for (int i = 0; i < kRounds; ++i) {
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
