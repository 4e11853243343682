// One op with the row of a place that computes it, for tests of rows.
#pragma once

#include <algorithm>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "core/find_kernel.h"
#include "core/infer_dtypes.h"
#include "core/op_def.h"
#include "core/variable.h"
#include "tests/testing/slot_dtypes.h"

namespace interp::cuda_test {

// An op and its arguments.
struct RowCase {
  struct Input {
    std::string slot;
    Tensor tensor;
  };
  std::string type;
  std::vector<Attr> attrs;
  std::vector<Input> inputs;  // those of one slot are neighbours
  // Of variadic output slots, in the order of the definition; one of the others.
  std::vector<int> output_counts = {};
  std::vector<std::string> absent = {};  // output slots without an argument
};

// An op with its arguments and the row that is to run.
struct BoundRow {
  Op op;
  const OpDef* def = nullptr;
  ParsedAttrs attrs;
  std::deque<Variable> inputs;
  std::deque<Variable> outputs;
  BoundArgs args;
  KernelFn kernel = nullptr;
};

inline void AddArgument(std::deque<Variable>& variables, Tensor tensor, BoundArgs& args,
                        BoundArgs::Range& range) {
  variables.emplace_back().tensor = std::move(tensor);
  args.tensors.push_back(&variables.back().tensor);
  args.variables.push_back(&variables.back());
  args.constant.push_back(false);
  ++range.size;
}

// The arguments of the input slots, and their dtypes.
inline testing::SlotDTypes BindInputs(const RowCase& c, BoundRow& bound) {
  testing::SlotDTypes in;
  for (const SlotDef& slot : bound.def->inputs) {
    BoundArgs::Range range{static_cast<int32_t>(bound.args.tensors.size()), 0};
    for (const RowCase::Input& input : c.inputs) {
      if (input.slot == slot.name) AddArgument(bound.inputs, input.tensor, bound.args, range);
    }
    for (int i = 0; i < range.size; ++i) {
      in.dtypes.push_back(bound.args.tensors[range.begin + i]->dtype);
    }
    in.counts.push_back(range.size);
    bound.args.input_slots.push_back(range);
  }
  return in;
}

// Those of the output slots, which have no dtypes yet.
inline testing::SlotDTypes BindOutputs(const RowCase& c, BoundRow& bound) {
  testing::SlotDTypes out;
  auto count = c.output_counts.begin();
  for (const SlotDef& slot : bound.def->outputs) {
    const bool given = (slot.flags & kVariadic) != 0 && count != c.output_counts.end();
    BoundArgs::Range range{static_cast<int32_t>(bound.args.tensors.size()), 0};
    const bool absent = std::find(c.absent.begin(), c.absent.end(), slot.name) != c.absent.end();
    for (int left = given ? *count++ : absent ? 0 : 1; left > 0; --left) {
      AddArgument(bound.outputs, Tensor(), bound.args, range);
    }
    out.counts.push_back(range.size);
    bound.args.output_slots.push_back(range);
  }
  out.dtypes.assign(bound.outputs.size(), DType::kUndefined);
  return out;
}

// All but shapes and memory of the outputs.
inline absl::Status BindRow(const RowCase& c, PlaceKind place, BoundRow& bound) {
  bound.op.type = c.type;
  bound.op.attrs = c.attrs;
  bound.def = OpRegistry::Global().Find(c.type);
  if (bound.def == nullptr) return NotFound("no op '", c.type, "'");
  if (bound.def->parse != nullptr) {
    AttrReader reader(bound.op);
    INTERP_ASSIGN_OR_RETURN(bound.attrs, bound.def->parse(reader));
  }
  const testing::SlotDTypes in = BindInputs(c, bound);
  testing::SlotDTypes out = BindOutputs(c, bound);
  const void* const attrs = bound.attrs.get();
  const DType dtype = KernelDType(*bound.def, bound.op, attrs, in.AsInputs(), out.AsOutputs());
  out.dtypes.assign(bound.outputs.size(), dtype);
  InferDTypes(*bound.def, attrs, dtype, in.AsInputs(), out.AsOutputs());
  for (size_t i = 0; i < bound.outputs.size(); ++i) bound.outputs[i].tensor.dtype = out.dtypes[i];
  INTERP_ASSIGN_OR_RETURN(const int32_t row, FindKernel(*bound.def, dtype, attrs, place));
  bound.kernel = bound.def->kernels[row].run;
  return absl::OkStatus();
}

}  // namespace interp::cuda_test
