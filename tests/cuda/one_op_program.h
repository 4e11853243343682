// Programs of one op on any place, for tests of rows.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "interpreter/interpreter_core.h"
#include "tests/testing/test_program.h"

namespace interp::cuda_test {

// A program of one op.
struct OneOpProgram {
  std::string type;
  std::vector<std::pair<std::string, Tensor>> inputs;  // by slot
  std::vector<std::string> outputs;                    // slots
  testing::TestProgram::Attrs attrs = {};
};

// What it gives on a place, whether an instruction of the op runs on a GPU, and how much memory of
// devices was in use at a time.
struct OneOpResult {
  std::vector<Tensor> outputs;
  bool on_gpu = false;
  size_t device_peak_bytes = 0;
};

inline absl::StatusOr<OneOpResult> RunOn(Place place, const OneOpProgram& op,
                                         CoreOptions options = {}) {
  testing::TestProgram builder(op.inputs[0].second.dtype);
  testing::TestProgram::Slots inputs;
  testing::TestProgram::Slots outputs;
  std::vector<Tensor> feeds;
  for (const auto& [slot, tensor] : op.inputs) {
    const auto& shape = tensor.shape;
    builder.Feed(slot, {shape.begin(), shape.end()}, tensor.dtype);
    inputs.push_back({slot, {slot}});
    builder.Declare(slot + "@GRAD.out", {shape.begin(), shape.end()}, tensor.dtype);
    feeds.push_back(tensor);
  }
  for (const std::string& slot : op.outputs) outputs.push_back({slot, {slot + ".out"}});
  builder.AddOp(op.type, inputs, outputs, op.attrs);
  for (const std::string& slot : op.outputs) builder.Fetch(slot + ".out");
  options.plan.place = place;
  INTERP_ASSIGN_OR_RETURN(const auto core,
                          InterpreterCore::Create(builder.Build(), {}, {}, nullptr, options));
  INTERP_ASSIGN_OR_RETURN(std::vector<Tensor> results, core->Run(feeds));
  const auto& instructions = core->plan().instructions;
  return OneOpResult{std::move(results),
                     std::any_of(instructions.begin(), instructions.end(),
                                 [&](const auto& i) {
                                   return i.op_type == op.type && i.place.kind == PlaceKind::kCuda;
                                 }),
                     core->device_memory().peak_bytes};
}

}  // namespace interp::cuda_test
