#pragma once

#include "passes/pass.h"

namespace interp {

inline constexpr absl::string_view kUndefinedValuesPass = "undefined_values";

// Gives values that stand for "not defined here" the kind and dtype of what they are chosen
// against. Paddle's dygraph-to-static writes one wherever a name has a value in one branch alone,
// and always in float32:
//
//   assign_value() -> (Out=undefined_var_0) {dtype=5, shape=[1], fp32_values=[1.77113e+27]}
//   select_input(X=[undefined_var_0, k], Mask=m) -> (Out=n)
//
// where `k` is int64 becomes
//
//   assign_value() -> (Out=undefined_var_0) {dtype=3, shape=[1], int64_values=[0]}
//
// Where `k` is an array the op goes, and undefined_var_0 is declared as one, which is empty then;
// so this is before array_ops.
// Values that go through assign and select_input are of one dtype; where ops and feeds give such a
// group several, of the widest (branch_dtypes.h). One of floats stays. Gradients are declared in
// the dtype of the value, as zeros like it are of that. (Paddle:
// python/paddle/jit/dy2static/utils.py, create_undefined_variable.) About linear time.
absl::StatusOr<Program> TypeUndefinedValues(Program program, const PassContext& context);

}  // namespace interp
