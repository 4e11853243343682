// select_input: Out = X[Mask]; select_output: Out[Mask] = X, the others keep what they hold.
// Tensors are shared, not copied; arrays share their elements. (Paddle:
// fluid/operators/select_input_op.cc, select_output_op.cc.)
#include "core/op_def.h"
#include "kernels/util/gradient_op.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kMask = 1;
constexpr int kOut = 0;

absl::StatusOr<size_t> ReadMask(const Tensor& mask, size_t num_branches) {
  if (mask.dtype != DType::kInt32 || mask.numel() != 1 || !mask.has_memory()) {
    return InvalidArgument("input 'Mask' is ", DescribeType(mask), ", expected one int32");
  }
  const int32_t branch = *mask.data<int32_t>();
  if (branch >= 0 && static_cast<size_t>(branch) < num_branches) {
    return static_cast<size_t>(branch);
  }
  return InvalidArgument("input 'Mask' selects branch ", branch, " of ", num_branches);
}

// Whether a variable holds a value: a tensor, or an array with elements.
bool HoldsValue(const Variable& variable) {
  return variable.tensor.has_memory() || !variable.array.empty();
}

void Share(const Variable& from, Variable& to) {
  to.tensor = from.tensor;
  to.array = from.array;
}

absl::Status SelectInput(KernelContext& ctx) {
  const absl::Span<Variable* const> branches = ctx.input_variables(kX);
  INTERP_ASSIGN_OR_RETURN(const size_t branch, ReadMask(ctx.input(kMask), branches.size()));
  const Variable* const from = branches[branch];
  if (from == nullptr) return InvalidArgument("argument ", branch, " of input 'X' is @EMPTY@");
  const bool tensor_without_value = !HoldsValue(*from) && from->tensor.shape.numel() != 0 &&
                                    from->tensor.dtype != DType::kUndefined;
  if (tensor_without_value) {
    return NotFound("argument ", branch, " of input 'X' has no value: its branch did not run");
  }
  Variable& out = ctx.output_variable(kOut);
  if (&out != from) Share(*from, out);
  return absl::OkStatus();
}

absl::Status SelectOutput(KernelContext& ctx) {
  const absl::Span<Variable* const> branches = ctx.output_variables(kOut);
  INTERP_ASSIGN_OR_RETURN(const size_t branch, ReadMask(ctx.input(kMask), branches.size()));
  Variable* const to = branches[branch];
  if (to != nullptr) Share(ctx.input_variable(kX), *to);
  return absl::OkStatus();
}

// Each is the other's gradient.
template <const absl::string_view& kType>
absl::Status MakeGradient(GradientMaker& maker) {
  return AddGradientOp(maker, kType, {{"Mask", "Mask"}, {"X", "Out@GRAD"}}, {{"Out", "X@GRAD"}});
}

constexpr absl::string_view kSelectInput = "select_input";
constexpr absl::string_view kSelectOutput = "select_output";

INTERP_REGISTER_OP(OpDef{
    .type = kSelectInput,
    .inputs = {{"X", kVariadic | kAnyDType | kMayBeEmpty | kMayBeArray},
               {"Mask", kAnyDType | kHostInput}},
    .outputs = {{"Out", kMayBeArray}},
    .kernels = {{DType::kUndefined, SelectInput}},
    .precision = PrecisionRule::kFull,  // what holds no value cannot be cast
    .dynamic_outputs = true,
    .gradient = {.make = MakeGradient<kSelectOutput>},
});

INTERP_REGISTER_OP(OpDef{
    .type = kSelectOutput,
    .inputs = {{"X", kMayBeArray}, {"Mask", kAnyDType | kHostInput}},
    .outputs = {{"Out", kVariadic | kMayBeArray}},
    .kernels = {{DType::kUndefined, SelectOutput}},
    .precision = PrecisionRule::kFull,  // what holds no value cannot be cast
    .dynamic_outputs = true,
    .gradient = {.make = MakeGradient<kSelectInput>},
});

}  // namespace
}  // namespace interp
