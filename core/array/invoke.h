// Invoke: any registered op on arrays, without a program.
//
//   ArraySlots out = *Invoke(runtime, "conv2d", {{"Input", {x}}, {"Filter", {w}}},
//                            {{"strides", std::vector<int32_t>{1, 1}}});
//   Array y = out[0].second[0];
//
// The same definitions, rules and kernels as in programs: attributes are parsed and checked,
// dtypes and shapes inferred and inputs of another dtype cast as for an instruction of a plan.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/array/array.h"
#include "core/op_def.h"
#include "core/program.h"

namespace interp {

// Arrays by slot. An array that is none stands for @EMPTY@.
using ArraySlots = std::vector<std::pair<absl::string_view, std::vector<Array>>>;

struct InvokeOptions {
  // Of an op without inputs; others run where their inputs lie.
  Place place = {};
  int32_t priority = 0;
  // kDeviceUrgent: on a stream of its own on devices, so that what it waits for holds up no other.
  engine::Property property = engine::Property::kNormal;
  // Which optional outputs to give, and how many arguments of those that take several. Any other
  // output has one where it is not optional or the gradient of a recording may read it.
  std::vector<std::pair<absl::string_view, int>> outputs = {};
  // Arrays that are written in place of new ones, also inputs and views; of the shape and dtype
  // that are inferred. All outputs that a kernel gives as selected rows are to be here.
  ArraySlots into = {};
};

// Pushes the op and returns its outputs, in the order of the definition's slots. Waits only where
// shapes depend on values: for inputs whose values `infer` reads, and for ops that find the shapes
// of their outputs themselves.
// Errors: NotFound for an unknown op; InvalidArgument for slots, shapes, dtypes or places that do
// not fit; Unimplemented for ops that need a program (blocks, tensor arrays) or have no kernel.
absl::StatusOr<ArraySlots> Invoke(ArrayRuntime& runtime, absl::string_view type,
                                  const ArraySlots& inputs, const std::vector<Attr>& attrs = {},
                                  const InvokeOptions& options = {});
// The same of an op that is in no registry; it lives as long as the runtime.
absl::StatusOr<ArraySlots> Invoke(ArrayRuntime& runtime, const OpDef& def, const ArraySlots& inputs,
                                  const std::vector<Attr>& attrs = {},
                                  const InvokeOptions& options = {});

// The first array of the first output.
absl::StatusOr<Array> First(absl::StatusOr<ArraySlots> outputs);

}  // namespace interp
