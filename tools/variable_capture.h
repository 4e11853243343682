// What a run writes to the variables of its main block, kept for comparison.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/status.h"
#include "core/tensor.h"
#include "interpreter/interpreter_core.h"
#include "interpreter/run/observer.h"

namespace interp {

// One value of a variable.
struct WrittenValue {
  std::string variable;
  int32_t write = 0;  // how many times the run had written the variable before
  std::string op;     // what wrote it, as errors name it
  int32_t at = 0;     // its place in the order of the plan
  Tensor value;       // a copy in plain layout
};

// Copies the tensors that the instructions of the main block write as they run: passes and plans
// stay as they are. Memory of devices is left out, and so are variables of the plan's own and what
// is fed, which the run does not compute. Thread-safety: an observer of one run at a time.
class VariableCapture final : public RunObserver {
 public:
  // Borrows the core.
  explicit VariableCapture(const InterpreterCore& core);

  void OnInstruction(int32_t instruction, int worker, int64_t start_ns, int64_t end_ns) override;

  // What the run wrote, in the order of the plan. Errors: of memory for the copies.
  absl::StatusOr<std::vector<WrittenValue>> Take();

 private:
  absl::Status Copy(const Instruction& instruction, int32_t at);

  const InterpreterCore& core_;
  std::vector<int32_t> position_;  // in the order of the plan, by InstrId
  std::mutex mutex_;               // guards what follows
  std::vector<WrittenValue> values_;
  absl::Status status_;
};

// Tensors of 16-bit numbers as float32, others as they are.
absl::StatusOr<Tensor> WidenTensor(const Tensor& tensor);

}  // namespace interp
