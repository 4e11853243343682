// concat_grad: X@GRAD[i] = the part of Out@GRAD along `axis` that X[i] became.
#include "core/edit_op.h"
#include "core/gradient.h"
#include "core/op_def.h"
#include "kernels/util/all_present.h"
#include "kernels/util/data_mover.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kOutGrad = 0;
constexpr int kX = 1;
constexpr int kAxisTensor = 2;
constexpr int kXGrad = 0;

struct ConcatAttrs {
  int64_t axis = 0;
};

ConcatAttrs ReadConcatAttrs(AttrReader& reader) { return {reader.Long("axis", 0)}; }

absl::StatusOr<int> ConcatAxis(const OpContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const int64_t axis, ReadInteger(ctx, kAxisTensor, "AxisTensor",
                                                          ctx.attrs<ConcatAttrs>().axis));
  return ResolveAxis(axis, ctx.input(kOutGrad).shape.rank());
}

absl::Status InferConcatGrad(InferContext& ctx) {
  const Shape& whole = ctx.input(kOutGrad).shape;
  const absl::Span<const Tensor* const> inputs = ctx.inputs(kX);
  const absl::Span<Tensor* const> outputs = ctx.outputs(kXGrad);
  if (inputs.size() != outputs.size()) {
    return InvalidArgument("'X' has ", inputs.size(), " arguments and 'X@GRAD' ", outputs.size());
  }
  INTERP_RETURN_IF_ERROR(CheckAllPresent(inputs, "X"));
  INTERP_ASSIGN_OR_RETURN(const int axis, ConcatAxis(ctx));
  int64_t length = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Shape part = inputs[i]->shape;
    if (part.rank() == whole.rank()) {
      INTERP_ASSIGN_OR_RETURN(length, CheckedSum(length, part[axis]));
      part[axis] = whole[axis];
    }
    if (!(part == whole)) {
      return InvalidArgument("'X' argument ", i, " has shape ", ToString(inputs[i]->shape),
                             ", expected that of 'Out@GRAD', ", ToString(whole), ", but for axis ",
                             axis);
    }
    if (outputs[i] == nullptr) continue;
    outputs[i]->shape = inputs[i]->shape;
    outputs[i]->lod = inputs[i]->lod;
  }
  if (length == whole[axis]) return absl::OkStatus();
  return InvalidArgument("'Out@GRAD' has length ", whole[axis], " along axis ", axis, ", expected ",
                         length);
}

absl::Status ConcatGrad(KernelContext& ctx) {
  const Tensor& out_grad = ctx.input(kOutGrad);
  INTERP_ASSIGN_OR_RETURN(const int axis, ConcatAxis(ctx));
  const Strides from = StridesOf(out_grad);
  int64_t offset = 0;
  for (size_t i = 0; i < ctx.inputs(kX).size(); ++i) {
    const Shape& part = ctx.inputs(kX)[i]->shape;
    if (Tensor* const x_grad = ctx.outputs(kXGrad)[i]) {
      const Strides to = StridesOf(*x_grad);
      CopyDims dims;
      for (int d = 0; d < part.rank(); ++d) dims.push_back({part[d], from[d], to[d]});
      INTERP_RETURN_IF_ERROR(CopyStrided(ctx, dims, {out_grad, offset * from[axis]}, {*x_grad}));
    }
    offset += part[axis];
  }
  return absl::OkStatus();
}

// The gradients of the parts are concatenated; zeros for a part that nobody wanted one of.
absl::Status MakeSecond(GradientMaker& maker) {
  if (!maker.Wants("Out@GRAD")) return absl::OkStatus();
  const ArgIds out = maker.InputGradients("Out@GRAD");
  const ArgIds wholes = maker.Arguments("X");
  ArgIds parts = maker.OutputGradients("X@GRAD");
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i] != maker.Empty()) continue;
    parts[i] = maker.Intern(absl::StrCat(maker.program().NameOf(out[0]), "@ZERO@", i));
    Op& zeros = maker.Add("fill_any_like");
    AddInput(zeros, "X", {wholes[i]});
    AddOutput(zeros, "Out", {parts[i]});
    SetAttr(zeros, "value", 0.0F);
    SetAttr(zeros, "dtype", int32_t{-1});
  }
  Op& concat = maker.Add("concat");
  concat.attrs = maker.op().attrs;
  AddInput(concat, "X", std::move(parts));
  if (const ArgIds axis = maker.Arguments("AxisTensor"); !axis.empty()) {
    AddInput(concat, "AxisTensor", axis);
  }
  AddOutput(concat, "Out", out);
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "concat_grad",
    .inputs = {{"Out@GRAD"},
               {"X", kVariadic | kNoNeedBuffer | kAnyDType | kAnyLayout},
               {"AxisTensor", kOptional | kAnyDType | kValueInInfer}},
    .outputs = {{"X@GRAD", kVariadic | kOptional}},
    .parse = ParseAttrs<ConcatAttrs, ReadConcatAttrs>,
    .infer = InferConcatGrad,
    .kernels = MoveKernels(ConcatGrad),
    .layout = LayoutRule::kFollows,
    .gradient = {.make = MakeSecond},
});

}  // namespace
}  // namespace interp
