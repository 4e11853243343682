// The patterns by which dependency engines are measured. One code drives every engine, through an
// adapter; programs that include it are steered by compare_engine.py. Only the standard library and
// C++17, for the sake of peers.
//
// An adapter has
//   Variable, Operator                      handles, cheap to copy
//   Variable NewVariable();
//   void DeleteVariable(Variable);          with an empty function
//   void Push(F, {reads}, {writes});
//   Operator Record(F, {reads}, {writes});
//   void Push(Operator);
//   void PushAll(const std::vector<Operator>&);
//   void WaitForVar(Variable);
//   void WaitForAll();
//
// Long because all engines are driven by the same patterns.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace engine_patterns {

inline double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Work of a fixed number of steps, so that a thread that is off its core makes no progress.
inline void Work(int64_t steps) {
  uint64_t state = 1;
  for (int64_t i = 0; i < steps; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    asm volatile("" : "+r"(state));
  }
}

// Steps that take a microsecond: by the fastest of some tries.
inline int64_t StepsPerMicrosecond() {
  constexpr int64_t kSteps = 200000;
  double best = 1;
  for (int i = 0; i < 20; ++i) {
    const double start = Now();
    Work(kSteps);
    const double seconds = Now() - start;
    if (seconds < best) best = seconds;
  }
  return static_cast<int64_t>(kSteps / (best * 1e6));
}

template <typename Adapter>
class Patterns {
 public:
  using Variable = typename Adapter::Variable;
  using Operator = typename Adapter::Operator;

  struct Result {
    double us = -1;       // per operation, from the first push to the end of all; below 0: unknown
    double push_us = -1;  // of which by the thread that pushes
  };

  explicit Patterns(Adapter& engine) : engine_(engine), steps_per_us_(StepsPerMicrosecond()) {
    for (int i = 0; i < kVariables; ++i) variables_.push_back(engine_.NewVariable());
    for (int i = 0; i < kVariables; ++i) {
      chain_.push_back(engine_.Record(Count(), {}, {variables_[0]}));
      const Triple t = NextTriple();
      random_.push_back(engine_.Record(Count(), {At(t.a), At(t.b)}, {At(t.c)}));
    }
    engine_.WaitForAll();
  }

  // One round of `count` operations, or bodies, or waits.
  Result Run(const std::string& name, int count) {
    if (name == "chain") return Time(count, [&](int) { engine_.Push(Count(), {}, {At(0)}); });
    if (name == "independent") {
      return Time(count, [&](int i) { engine_.Push(Count(), {}, {At(i)}); });
    }
    if (name == "random") return Time(count, [&](int) { PushRandom(); });
    if (name == "recorded-chain") return Time(count, [&](int i) { engine_.Push(Of(chain_, i)); });
    if (name == "recorded-random") return Time(count, [&](int i) { engine_.Push(Of(random_, i)); });
    if (name == "recorded-batch") return Batches(count);
    if (name == "round-trip") {
      return Time(count, [&](int) {
        engine_.Push(Count(), {}, {At(0)});
        engine_.WaitForVar(At(0));
      });
    }
    if (name == "new-delete") {
      return Time(
          count, [&](int) { engine_.DeleteVariable(engine_.NewVariable()); }, kNothing);
    }
    if (name == "wait-ready") {
      return Time(
          count, [&](int) { engine_.WaitForVar(At(0)); }, kNothing);
    }
    if (StartsWith(name, "held-")) return RunHeld(name.substr(5), count);
    if (StartsWith(name, "body-")) return RunBodies(MicrosecondsOf(name), count);
    if (StartsWith(name, "loop-")) {
      const int64_t steps = MicrosecondsOf(name) * steps_per_us_;
      return Time(
          count, [&](int) { Work(steps); }, kNothing);
    }
    return {};
  }

 private:
  static constexpr int kVariables = 1024;
  static constexpr bool kNothing = false;  // what is timed runs no counting function

  // The trivial function.
  auto Count() {
    return [count = &count_] { count->fetch_add(1, std::memory_order_relaxed); };
  }
  Variable At(int i) const { return variables_[i % kVariables]; }
  static const Operator& Of(const std::vector<Operator>& ops, int i) { return ops[i % kVariables]; }

  // Three different variables.
  struct Triple {
    int a, b, c;
  };
  Triple NextTriple() {
    random_state_ = random_state_ * 1664525u + 1013904223u;
    const int a = static_cast<int>(random_state_ >> 22);
    const int b = (a + 1 + static_cast<int>(random_state_ >> 12 & 255)) % kVariables;
    const int c = (b + 1 + static_cast<int>(random_state_ >> 4 & 255)) % kVariables;
    return {a, b, c};
  }
  void PushRandom() {
    const Triple t = NextTriple();
    engine_.Push(Count(), {At(t.a), At(t.b)}, {At(t.c)});
  }

  static bool StartsWith(const std::string& name, const char* prefix) {
    return name.compare(0, std::strlen(prefix), prefix) == 0;
  }
  // Of "body-10".
  static int MicrosecondsOf(const std::string& name) {
    return std::atoi(name.c_str() + name.find('-') + 1);
  }

  Result RunHeld(const std::string& name, int count) {
    if (name == "chain") {
      return Held(count, At(0), [&](int) { engine_.Push(Count(), {}, {At(0)}); });
    }
    if (name == "independent") {
      constexpr int kOthers = kVariables - 1;
      return Held(count, At(kOthers), [&](int i) { engine_.Push(Count(), {}, {At(i % kOthers)}); });
    }
    if (name == "random") return Held(count, At(0), [&](int) { PushRandom(); });
    return {};
  }

  Result RunBodies(int us, int count) {
    const int64_t steps = us * steps_per_us_;
    return Time(count, [&](int i) {
      engine_.Push([steps, add = Count()] { Work(steps), add(); }, {}, {At(i)});
    });
  }

  template <typename Step>
  Result Time(int count, const Step& step, bool counts = true) {
    const int64_t before = count_.load();
    const double start = Now();
    for (int i = 0; i < count; ++i) step(i);
    const double pushed = Now();
    engine_.WaitForAll();
    const double end = Now();
    if (counts) Check(count_.load() - before, count);
    return {(end - start) / count * 1e6, (pushed - start) / count * 1e6};
  }

  // Everything is pushed while an operation keeps the only worker busy; then it is let go. So the
  // two sides are seen one after the other. Some at a time, lest caches overflow.
  template <typename Step>
  Result Held(int count, Variable held, const Step& step) {
    constexpr int kAtATime = 1024;
    double push_seconds = 0;
    double seconds = 0;
    for (int done = 0; done < count; done += kAtATime) {
      std::atomic<bool> started{false};
      std::atomic<bool> go{false};
      const auto hold = [&] {
        started = true;
        while (!go) {
        }
      };
      engine_.Push(hold, {}, {held});
      while (!started) {
      }
      const double start = Now();
      for (int i = 0; i < kAtATime; ++i) step(i);
      const double pushed = Now();
      go = true;
      engine_.WaitForAll();
      seconds += Now() - start;
      push_seconds += pushed - start;
    }
    return {seconds / count * 1e6, push_seconds / count * 1e6};
  }

  // The recorded random operators, all of them at a time.
  Result Batches(int count) {
    const int batches = count / kVariables;
    const Result whole = Time(
        batches, [&](int) { engine_.PushAll(random_); }, kNothing);
    return {whole.us / kVariables, whole.push_us / kVariables};
  }

  static void Check(int64_t counted, int count) {
    if (counted == count) return;
    std::fprintf(stderr, "%d operations were pushed and %lld run\n", count,
                 static_cast<long long>(counted));
    std::exit(1);
  }

  Adapter& engine_;
  const int64_t steps_per_us_;
  std::atomic<int64_t> count_{0};
  uint32_t random_state_ = 1;
  std::vector<Variable> variables_;
  std::vector<Operator> chain_;
  std::vector<Operator> random_;
};

// Answers each line "PATTERN COUNT" by "US PUSH_US", until there is no more.
template <typename Adapter>
int Serve(Adapter& engine) {
  Patterns<Adapter> patterns(engine);
  char name[64];
  int count = 0;
  while (std::scanf("%63s %d", name, &count) == 2) {
    const auto result = patterns.Run(name, count);
    std::printf("%.6f %.6f\n", result.us, result.push_us);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace engine_patterns
