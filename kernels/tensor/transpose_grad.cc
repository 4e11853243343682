// transpose_grad, transpose2_grad: dimension axis[i] of X@GRAD is dimension i of Out@GRAD.
#include "core/op_def.h"
#include "kernels/util/data_mover.h"
#include "kernels/util/second_gradient.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kOutGrad = 0;
constexpr int kXShape = 2;
constexpr int kXGrad = 0;

struct TransposeAttrs {
  IntList axis;
};

TransposeAttrs ReadTransposeAttrs(AttrReader& reader) { return {ReadIntListAttr(reader, "axis")}; }

absl::Status InferTransposeGrad(InferContext& ctx) {
  const IntList& axis = ctx.attrs<TransposeAttrs>().axis;
  const Shape& out = ctx.input(kOutGrad).shape;
  if (static_cast<int>(axis.size()) != out.rank()) {
    return InvalidArgument("'axis' has ", axis.size(), " entries, expected the rank of 'Out@GRAD' ",
                           ToString(out));
  }
  Shape shape;
  shape.resize(out.rank(), -1);
  for (int i = 0; i < out.rank(); ++i) {
    INTERP_ASSIGN_OR_RETURN(const int to, ResolveAxis(axis[i], out.rank()));
    if (std::exchange(shape[to], out[i]) != -1) {
      return InvalidArgument("'axis' lists dimension ", to, " twice");
    }
  }
  ctx.SetShape(kXGrad, shape);
  // transpose_grad, which has X, hands no LoD on.
  if (ctx.has_input(kXShape)) ShareLod(ctx.input(kXShape), ctx.output(kXGrad));
  return absl::OkStatus();
}

absl::Status TransposeGrad(KernelContext& ctx) {
  const IntList& axis = ctx.attrs<TransposeAttrs>().axis;
  const Tensor& out_grad = ctx.input(kOutGrad);
  Tensor& x_grad = ctx.output(kXGrad);
  const Strides from = StridesOf(out_grad);
  const Strides to = StridesOf(x_grad);
  const int rank = x_grad.shape.rank();
  CopyDims dims;
  for (int i = 0; i < rank; ++i) {
    dims.push_back({out_grad.shape[i], from[i], to[*NormalizeAxis(axis[i], rank)]});
  }
  return CopyStrided(ctx, dims, {out_grad}, {x_grad});
}

OpDef TransposeGradDef(absl::string_view type) {
  constexpr int kUnused = kOptional | kNoNeedBuffer | kAnyDType | kAnyLayout;
  return OpDef{
      .type = type,
      .inputs = {{"Out@GRAD", kAnyLayout}, {"X", kUnused}, {"XShape", kUnused}},
      .outputs = {{"X@GRAD"}},
      .parse = ParseAttrs<TransposeAttrs, ReadTransposeAttrs>,
      .infer = InferTransposeGrad,
      .kernels = MoveKernels(TransposeGrad),
  };
}

constexpr SecondGradient kTransposeSecond = {.type = "transpose2",
                                             .incoming = {{{"X", "X@GRAD"}}},
                                             .results = {{{"Out", "Out@GRAD"}}},
                                             .kept = {{{"XShape", "XShape"}}}};

INTERP_REGISTER_OP(TransposeGradDef("transpose_grad"));
INTERP_REGISTER_OP(WithSecond<kTransposeSecond>(TransposeGradDef("transpose2_grad")));

}  // namespace
}  // namespace interp
