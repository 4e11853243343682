// The same for MXNet 1.9.1's engine, of the wheel. No part of the build: compare_engine.py compiles
// it. MXNET_CPU_WORKER_NTHREADS sets the number of workers.
#include <mxnet/engine.h>

#include <cstring>
#include <functional>
#include <initializer_list>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/bench/engine_patterns.h"

namespace {

using mxnet::Context;
using mxnet::Engine;
using mxnet::RunContext;

// The wheel was built by a GCC whose std::function hands objects on by value. Functions compiled by
// a newer one expect references to them, which does no harm to those that look at no argument. One
// that calls its completion needs an entry of the old kind in place of its own: the last word of
// the object.
template <typename F>
Engine::AsyncFn AsyncOf(F function) {
  static_assert(sizeof(F) <= sizeof(std::_Any_data) && std::is_trivially_copyable<F>::value, "");
  using Entry = void (*)(const std::_Any_data&, RunContext, Engine::CallbackOnComplete);
  const Entry entry = [](const std::_Any_data& data, RunContext, Engine::CallbackOnComplete done) {
    data._M_access<F>()();
    done();
  };
  Engine::AsyncFn result = [function](RunContext, Engine::CallbackOnComplete) { function(); };
  char* const last_word = reinterpret_cast<char*>(&result) + sizeof(result) - sizeof(entry);
  std::memcpy(last_word, &entry, sizeof(entry));
  return result;
}

class Adapter {
 public:
  using Variable = Engine::VarHandle;
  using Operator = mxnet::engine::OprHandle;
  using Variables = std::initializer_list<Variable>;

  Variable NewVariable() { return engine_->NewVariable(); }
  void DeleteVariable(Variable variable) {
    engine_->DeleteVariable([](RunContext) {}, cpu_, variable);
  }
  template <typename F>
  void Push(F function, Variables reads, Variables writes) {
    engine_->PushSync([function](RunContext) { function(); }, cpu_, reads, writes);
  }
  template <typename F>
  Operator Record(F function, Variables reads, Variables writes) {
    return engine_->NewOperator(AsyncOf(function), reads, writes);
  }
  void Push(Operator op) { engine_->Push(op, cpu_); }
  // It has nothing for it.
  void PushAll(const std::vector<Operator>& ops) {
    for (Operator op : ops) Push(op);
  }
  void WaitForVar(Variable variable) { engine_->WaitForVar(variable); }
  void WaitForAll() { engine_->WaitForAll(); }

 private:
  Engine* const engine_ = Engine::Get();
  const Context cpu_ = Context::CPU();
};

}  // namespace

int main() {
  Adapter adapter;
  return engine_patterns::Serve(adapter);
}
