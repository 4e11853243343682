// meshgrid: for vectors X, Out[k][i0, i1, ...] = X[k][ik].
#include "core/op_def.h"
#include "kernels/util/data_mover.h"
#include "kernels/util/gradient_op.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

absl::Status InferMeshgrid(InferContext& ctx) {
  const absl::Span<const Tensor* const> inputs = ctx.inputs(kX);
  const absl::Span<Tensor* const> outputs = ctx.outputs(kOut);
  if (inputs.size() != outputs.size() || inputs.size() > kMaxRank) {
    return InvalidArgument("'X' has ", inputs.size(), " arguments and 'Out' ", outputs.size(),
                           ", expected as many and at most ", kMaxRank);
  }
  Shape shape;
  for (const Tensor* x : inputs) {
    if (x == nullptr || x->shape.rank() > 1) {
      return InvalidArgument("'X' has an argument that is not a vector");
    }
    shape.push_back(x->numel());
  }
  for (Tensor* out : outputs) {
    if (out == nullptr) continue;
    out->shape = shape;
    out->lod.clear();
  }
  return absl::OkStatus();
}

absl::Status Meshgrid(KernelContext& ctx) {
  const absl::Span<const Tensor* const> inputs = ctx.inputs(kX);
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (ctx.outputs(kOut)[k] == nullptr) continue;
    Tensor& out = *ctx.outputs(kOut)[k];
    const Strides to = StridesOf(out);
    CopyDims dims;
    for (int i = 0; i < out.shape.rank(); ++i) {
      dims.push_back({out.shape[i], i == static_cast<int>(k) ? 1 : 0, to[i]});
    }
    INTERP_RETURN_IF_ERROR(CopyStrided(ctx, dims, {*inputs[k]}, {out}));
  }
  return absl::OkStatus();
}

// Paddle 2.6 names the slot of the gradients after its kernel's argument.
absl::Status MakeGradient(GradientMaker& maker) {
  return AddGradientOp(maker, "meshgrid_grad", {{"X", "X"}, {"outputs@GRAD", "Out@GRAD"}},
                       {{"X@GRAD", "X@GRAD"}});
}

INTERP_REGISTER_OP(OpDef{
    .type = "meshgrid",
    .inputs = {{"X", kVariadic}},
    .outputs = {{"Out", kVariadic}},
    .infer = InferMeshgrid,
    .kernels = MoveKernels(Meshgrid),
    .gradient = {.make = MakeGradient},
});

}  // namespace
}  // namespace interp
