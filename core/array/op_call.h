// OpCall: one op on arrays, from the call to its kernel. Internal to core/array.
#pragma once

#include <memory>
#include <vector>

#include "core/array/array.h"
#include "core/array/op_cache.h"
#include "core/op_def.h"

namespace interp {

// Made by the thread that calls Invoke, which infers dtypes and shapes; run as an operation of the
// engine.
class OpCall {
 public:
  // How an argument's memory is used.
  enum class Use : int8_t {
    kNone,  // @EMPTY@, or an input of which only shape and dtype are read
    kRead,
    kRows,     // the kernel uses the variable of the chunk itself
    kWrite,    // an output that no input shares memory with
    kInPlace,  // an output in the memory of an input that it may be written over
    kAside,    // an output in memory of its own, which then replaces what an input still reads
    kFound,    // an output whose kernel finds its shape and gives it memory
  };
  struct Operand {
    Array array;
    Use use = Use::kNone;
  };

  OpCall(ArrayRuntime& runtime, std::shared_ptr<CachedOp> op)
      : runtime(runtime), op(std::move(op)) {}

  // Takes memory, calls the kernel or enqueues it, and hands results to their arrays.
  absl::Status Run(const engine::RunContext& context);
  // Lets argument `i` be a value of its own that has the array's shape and dtype alone.
  void BindShape(size_t i);
  // Points the arguments to what the kernel is to see.
  void BindVariables();

  ArrayRuntime& runtime;
  const std::shared_ptr<CachedOp> op;
  const KernelDef* kernel = nullptr;
  BoundArgs args;
  std::vector<Operand> operands;    // by argument, inputs first
  std::vector<Variable> variables;  // by argument
  size_t num_inputs = 0;
  RandomState random;

 private:
  absl::Status BindOutputs(const engine::RunContext& context);
  absl::Status OwnRows(const Array& array);
  absl::Status BindInputs();
  absl::Status Compute(const engine::RunContext& context);
  absl::Status Launch(const engine::RunContext& context, KernelContext::Services services);
  absl::Status Commit(const engine::RunContext& context);
  static absl::Status CheckRows(const Array& array);
  absl::Status CommitAside(const Operand& operand, const Tensor& result,
                           const engine::RunContext& context);
};

}  // namespace interp
