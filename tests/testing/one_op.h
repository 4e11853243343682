// OneOp: one op on given tensors, without a program or a plan. For benchmarks of kernels and for
// tests of what a plan decides by itself, such as layouts and shared memory.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "core/op_def.h"
#include "core/variable.h"

namespace interp::testing {

class OneOp {
 public:
  struct Input {
    absl::string_view slot;
    Tensor tensor;
  };
  // Parses the attributes, infers dtypes and shapes, allocates one tensor per output slot in
  // `layout`, but for those that are absent, and picks the kernel. Aborts on any error: callers
  // give valid ops. REQUIRES: every input has the dtype the kernel takes; inputs of one slot are
  // neighbours.
  OneOp(std::string type, std::vector<Attr> attrs, const std::vector<Input>& inputs,
        Layout layout = Layout::kPlain, absl::Span<const absl::string_view> absent_outputs = {});

  // Runs the kernel once.
  absl::Status Run(int num_threads = 1);

  Tensor& input(int argument) { return inputs_[argument].tensor; }
  Tensor& output(int slot) { return outputs_[slot].tensor; }

 private:
  void BindInputs(const std::vector<Input>& inputs);
  void BindOutputs(Layout layout, absl::Span<const absl::string_view> absent);

  Op op_;
  const OpDef* def_;
  ParsedAttrs attrs_;
  std::deque<Variable> inputs_;
  std::deque<Variable> outputs_;
  BoundArgs args_;
  KernelFn kernel_ = nullptr;
  std::unique_ptr<KernelState> state_;
};

}  // namespace interp::testing
