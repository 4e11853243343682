// What core/engine costs; see compare_engine.py, which steers it. INTERP_ENGINE and
// INTERP_ENGINE_WORKERS choose policy and workers.
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "core/engine/engine.h"
#include "tests/bench/engine_patterns.h"
#include "tools/engine_environment.h"

namespace interp::engine {
namespace {

void Require(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

class Adapter {
 public:
  using Variable = engine::Variable;
  using Operator = engine::Operator;
  using Variables = std::initializer_list<Variable>;

  explicit Adapter(Engine& engine) : engine_(engine) {}
  Variable NewVariable() { return engine_.NewVariable(); }
  void DeleteVariable(Variable variable) {
    Require(engine_.DeleteVariable(variable, [] {}));
  }
  template <typename F>
  void Push(F function, Variables reads, Variables writes) {
    Require(engine_.Push(std::move(function), {.reads = reads, .writes = writes}));
  }
  template <typename F>
  Operator Record(F function, Variables reads, Variables writes) {
    absl::StatusOr<Operator> op =
        engine_.NewOperator(std::move(function), {.reads = reads, .writes = writes});
    Require(op.status());
    return *std::move(op);
  }
  void Push(const Operator& op) { Require(engine_.Push(op)); }
  void PushAll(const std::vector<Operator>& ops) { Require(engine_.PushAll(ops)); }
  void WaitForVar(Variable variable) { Require(engine_.WaitForVar(variable)); }
  void WaitForAll() { Require(engine_.WaitForAll()); }

 private:
  Engine& engine_;
};

int Main() {
  const absl::StatusOr<EngineOptions> options = FromEnvironment();
  Require(options.status());
  const absl::StatusOr<std::unique_ptr<Engine>> engine = Engine::Create(*options);
  Require(engine.status());
  Adapter adapter(**engine);
  return engine_patterns::Serve(adapter);
}

}  // namespace
}  // namespace interp::engine

int main() { return interp::engine::Main(); }
