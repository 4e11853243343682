// Three small cases of the dependency engine, with the schedules they led to. Run it: engine_cases.
//
// Nothing here locks or waits for anything but the end: that each operation finds its operands as
// they should be is the engine's doing. Only the printed order is collected under a mutex.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/engine/engine.h"

namespace interp::engine {
namespace {

void Require(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "error: %s\n", status.ToString().c_str());
  std::exit(1);
}

std::unique_ptr<Engine> MakeEngine(const EngineOptions& options) {
  absl::StatusOr<std::unique_ptr<Engine>> engine = Engine::Create(options);
  Require(engine.status());
  return *std::move(engine);
}

// The order in which operations ran.
class Schedule {
 public:
  void Note(const char* operation) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!text_.empty()) text_ += ", ";
    text_ += operation;
  }
  void Print() const { std::printf("order: %s\n", text_.c_str()); }

 private:
  std::mutex mutex_;
  std::string text_;
};

// Pushes `compute` under a name, noting when it ran.
template <typename F>
void Push(Engine& engine, Schedule& schedule, const char* name, F compute,
          const Accesses& accesses) {
  Require(engine.Push(
      [&schedule, name, compute = std::move(compute)] {
        compute();
        schedule.Note(name);
      },
      accesses, {.name = name}));
}

// Deleting a variable is an operation that writes it: it comes after both readers, whichever of
// them is last, and nobody has to count.
void FreedAfterItsReaders() {
  std::printf("Memory of A is freed after both readers of A\n");
  const std::unique_ptr<Engine> engine = MakeEngine({.workers = 2});
  Schedule schedule;
  auto a = std::make_unique<int>();
  int b = 0;
  int c = 0;
  const Variable va = engine->NewVariable("A");
  const Variable vb = engine->NewVariable("B");
  const Variable vc = engine->NewVariable("C");
  Push(*engine, schedule, "A = 2", [&] { *a = 2; }, {.writes = {va}});
  Push(*engine, schedule, "B = A + 1", [&] { b = *a + 1; }, {.reads = {va}, .writes = {vb}});
  Push(*engine, schedule, "C = A + 2", [&] { c = *a + 2; }, {.reads = {va}, .writes = {vc}});
  Require(engine->DeleteVariable(va, [&] {
    a.reset();
    schedule.Note("free A");
  }));
  Require(engine->WaitForAll());
  schedule.Print();
  std::printf("B = %d, C = %d, A is %s\n\n", b, c, a == nullptr ? "freed" : "leaked");
}

// Each draw changes the state of the generator, so it writes the generator's variable: draws come
// one after another, in the order they were pushed. What is done with the numbers runs beside.
std::vector<int> Draw(const EngineOptions& options) {
  constexpr int kNumbers = 6;
  const std::unique_ptr<Engine> engine = MakeEngine(options);
  std::minstd_rand generator(7);
  std::vector<int> numbers(kNumbers);
  const Variable state = engine->NewVariable("generator");
  for (int& number : numbers) {
    const Variable v = engine->NewVariable();
    Require(engine->Push([&] { number = static_cast<int>(generator() % 100); },
                         {.reads = {state}, .writes = {state, v}}, {.name = "draw"}));
    Require(engine->Push([&number] { number += 1000; }, {.reads = {v}, .writes = {v}},
                         {.name = "use"}));
  }
  Require(engine->WaitForAll());
  return numbers;
}

void SerialisedByTheirGenerator() {
  std::printf("Random numbers are serialised by the variable of their generator\n");
  const std::pair<const char*, EngineOptions> engines[] = {
      {"on the pushing thread", {.policy = PolicyKind::kNaive}},
      {"one worker", {.workers = 1}},
      {"four workers", {.workers = 4}},
      {"four workers, once more", {.workers = 4}},
  };
  for (const auto& [label, options] : engines) {
    std::printf("%s:", label);
    for (const int number : Draw(options)) std::printf(" %d", number);
    std::printf("\n");
  }
  std::printf("\n");
}

// A first operation is held back, so that all of the program stands in the queues of its variables.
// B and C may then run side by side; `A = C * 2` comes after both, as it overwrites what they read.
void QueuesOfAProgram() {
  std::printf("A = 1; B = A + 1; C = A + 2; A = C * 2; D = A + 3\n");
  const std::unique_ptr<Engine> engine = MakeEngine({.workers = 2});
  Schedule schedule;
  int a = 0, b = 0, c = 0, d = 0;
  const Variable va = engine->NewVariable("A");
  const Variable vb = engine->NewVariable("B");
  const Variable vc = engine->NewVariable("C");
  const Variable vd = engine->NewVariable("D");
  std::promise<void> started, go;
  const auto hold = [&, may_go = go.get_future().share()] {
    started.set_value();
    may_go.wait();
    a = 1;
  };
  Push(*engine, schedule, "A = 1", hold, {.writes = {va}});
  Push(*engine, schedule, "B = A + 1", [&] { b = a + 1; }, {.reads = {va}, .writes = {vb}});
  Push(*engine, schedule, "C = A + 2", [&] { c = a + 2; }, {.reads = {va}, .writes = {vc}});
  Push(*engine, schedule, "A = C * 2", [&] { a = c * 2; }, {.reads = {vc}, .writes = {va}});
  Push(*engine, schedule, "D = A + 3", [&] { d = a + 3; }, {.reads = {va}, .writes = {vd}});
  started.get_future().wait();
  std::printf("queues while A = 1 is held back:\n");
  for (const Variable v : {va, vb, vc, vd}) std::printf("%s", engine->Describe(v).c_str());
  go.set_value();
  Require(engine->WaitForAll());
  schedule.Print();
  std::printf("A = %d, B = %d, C = %d, D = %d\n", a, b, c, d);
}

}  // namespace
}  // namespace interp::engine

int main() {
  interp::engine::FreedAfterItsReaders();
  interp::engine::SerialisedByTheirGenerator();
  interp::engine::QueuesOfAProgram();
  return 0;
}
