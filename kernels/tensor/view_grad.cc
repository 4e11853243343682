// Gradients of the ops that give a tensor another shape: X@GRAD = Out@GRAD in the shape of X. The
// older ops have X itself for that, the newer ones XShape: a 0, then the dimensions of X.
#include "core/op_def.h"
#include "kernels/util/data_mover.h"
#include "kernels/util/second_gradient.h"
#include "kernels/util/shape_args.h"
#include "kernels/util/without_lod.h"

namespace interp {
namespace {

constexpr int kOutGrad = 0;
constexpr int kX = 1;
constexpr int kXGrad = 0;

absl::Status SetGradientShape(InferContext& ctx, const Shape& shape) {
  const Shape& given = ctx.input(kOutGrad).shape;
  if (shape.CheckedNumel() != given.numel()) {
    return InvalidArgument("'Out@GRAD' has shape ", ToString(given),
                           ", which does not fill that of 'X', ", ToString(shape));
  }
  ctx.SetShape(kXGrad, shape);
  ShareLod(ctx.input(kX), ctx.output(kXGrad));
  return absl::OkStatus();
}

absl::Status InferFromX(InferContext& ctx) { return SetGradientShape(ctx, ctx.input(kX).shape); }

absl::Status InferFromXShape(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  if (x.rank() == 0) return InvalidArgument("'XShape' is 0-D, expected a 0 as first dimension");
  Shape shape;
  for (int i = 1; i < x.rank(); ++i) shape.push_back(x[i]);
  return SetGradientShape(ctx, shape);
}

absl::Status View(KernelContext& ctx) {
  return CopyUnlessShared(ctx, ctx.input(kOutGrad), ctx.output(kXGrad));
}

OpDef ViewGradDef(absl::string_view type, absl::string_view shape_slot,
                  const std::vector<absl::string_view>& unused) {
  OpDef def{
      .type = type,
      .inputs = {{"Out@GRAD"}, {shape_slot, kNoNeedBuffer | kAnyDType | kAnyLayout}},
      .outputs = {{"X@GRAD"}},
      .infer = shape_slot == "X" ? InferFromX : InferFromXShape,
      .kernels = MoveKernels(View),
      .view = {{kOutGrad, kXGrad}},
  };
  // What the forward op takes its shape from; gradients of programs repeat it.
  for (const absl::string_view slot : unused) {
    def.inputs.push_back({slot, kOptional | kVariadic | kNoNeedBuffer | kAnyDType | kAnyLayout});
  }
  return def;
}

OpDef ReshapeGradDef() {
  OpDef def = ViewGradDef("reshape_grad", "X", {"Shape", "ShapeTensor"});
  def.infer = WithoutLod<InferFromX, kXGrad>;
  return def;
}

constexpr SecondGradient kReshapeSecond = {.type = "reshape2_grad_grad",
                                           .values = {{{"DOut", "Out@GRAD"}}},
                                           .incoming = {{{"DDX", "X@GRAD"}}},
                                           .results = {{{"DDOut", "Out@GRAD"}}}};
constexpr SecondGradient kSqueezeSecond = {.type = "squeeze2",
                                           .incoming = {{{"X", "X@GRAD"}}},
                                           .results = {{{"Out", "Out@GRAD"}}},
                                           .kept = {{{"XShape", "XShape"}}}};
constexpr SecondGradient kUnsqueezeSecond = {
    .type = "unsqueeze2",
    .values = {{{"AxesTensor", "AxesTensor"}, {"AxesTensorList", "AxesTensorList"}}},
    .incoming = {{{"X", "X@GRAD"}}},
    .results = {{{"Out", "Out@GRAD"}}},
    .kept = {{{"XShape", "XShape"}}}};

INTERP_REGISTER_OP(ReshapeGradDef());
INTERP_REGISTER_OP(WithSecond<kReshapeSecond>(ViewGradDef("reshape2_grad", "XShape",
                                                          {"Shape", "ShapeTensor"})));
INTERP_REGISTER_OP(ViewGradDef("squeeze_grad", "X", {}));
INTERP_REGISTER_OP(WithSecond<kSqueezeSecond>(ViewGradDef("squeeze2_grad", "XShape", {})));
INTERP_REGISTER_OP(ViewGradDef("unsqueeze_grad", "X", {"AxesTensor", "AxesTensorList"}));
INTERP_REGISTER_OP(WithSecond<kUnsqueezeSecond>(ViewGradDef("unsqueeze2_grad", "XShape",
                                                            {"AxesTensor", "AxesTensorList"})));
INTERP_REGISTER_OP(ViewGradDef("flatten_grad", "X", {}));
INTERP_REGISTER_OP(ViewGradDef("flatten2_grad", "XShape", {}));
INTERP_REGISTER_OP(ViewGradDef("flatten_contiguous_range_grad", "XShape", {}));

}  // namespace
}  // namespace interp
