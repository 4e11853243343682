// Runs of a core as operations on arrays: imperative and declarative code side by side.
//
//   CoreOnArrays forward(*runtime, *core);
//   forward.Run({x}, {loss, gradient});     // pushed; returns at once
//   Scale(gradient, 0.5);                   // comes after it
#pragma once

#include <vector>

#include "core/array/array_runtime.h"
#include "interpreter/interpreter_core.h"

namespace interp {

// Thread-safety: all methods; runs happen in the order of their pushes, one at a time. Runtime and
// core are borrowed until everything pushed is done, and nobody else runs the core meanwhile.
class CoreOnArrays {
 public:
  // `shared`: variables that each run writes, besides: one for all cores whose programs write the
  // same parameters.
  CoreOnArrays(ArrayRuntime& runtime, InterpreterCore& core,
               std::vector<engine::Variable> shared = {});
  ~CoreOnArrays();
  CoreOnArrays(const CoreOnArrays&) = delete;
  CoreOnArrays& operator=(const CoreOnArrays&) = delete;

  // Pushes one run that reads `feeds` and overwrites `fetches`, both arrays of the host in the
  // order of the core's. InvalidArgument for numbers, places or types of arrays that do not fit,
  // views of a part among the fetches. Errors of the run arrive where a fetch is read, also when a
  // fetch has another shape or dtype than its array.
  absl::Status Run(std::vector<Array> feeds, std::vector<Array> fetches, int32_t priority = 0);

  // Written by every run: for operations of one's own that have to come after it.
  engine::Variable variable() const { return variable_; }

 private:
  ArrayRuntime& runtime_;
  InterpreterCore& core_;
  const std::vector<engine::Variable> shared_;
  const engine::Variable variable_;
};

}  // namespace interp
