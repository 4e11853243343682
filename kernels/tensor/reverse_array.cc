// reverse_array: what reverse is of tensor arrays (passes/import/array_ops.h). Out = the elements
// of X from the last to the first; they share memory.
#include "core/op_def.h"
#include "kernels/util/gradient_op.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

struct ReverseArrayAttrs {};

// An array has one dimension.
ReverseArrayAttrs ReadReverseArrayAttrs(AttrReader& reader) {
  const IntList axis = ReadIntListAttr(reader, "axis");
  if (axis != IntList{0}) {
    reader.Fail("attribute 'axis' of an array is to be [0]");
  }
  return {};
}

absl::Status ReverseArray(KernelContext& ctx) {
  const std::vector<Tensor>& x = ctx.input_array(kX);
  // Out may be X.
  std::vector<Tensor> elements(x.rbegin(), x.rend());
  ctx.output_array(kOut) = std::move(elements);
  return absl::OkStatus();
}

absl::Status MakeGradient(GradientMaker& maker) {
  return AddGradientOp(maker, "reverse_array", {{"X", "Out@GRAD"}}, {{"Out", "X@GRAD"}});
}

INTERP_REGISTER_OP(OpDef{
    .type = "reverse_array",
    .inputs = {{"X", kTensorArray}},
    .outputs = {{"Out", kTensorArray}},
    .parse = ParseAttrs<ReverseArrayAttrs, ReadReverseArrayAttrs>,
    .kernels = {{DType::kUndefined, ReverseArray}},
    .dynamic_outputs = true,
    .gradient = {.make = MakeGradient},
});

}  // namespace
}  // namespace interp
