// diag: the matrix with the vector Diagonal as its diagonal and zeros elsewhere. (Paddle before
// 2.0: fluid/operators/diag_op.h; later ones have diag_v2.)
#include "kernels/tensor/diagonal.h"
#include "kernels/util/fill_zero.h"

namespace interp {
namespace {

constexpr int kDiagonal = 0;
constexpr int kOut = 0;

absl::Status Infer(InferContext& ctx) {
  const Shape& shape = ctx.input(kDiagonal).shape;
  if (shape.rank() != 1) {
    return InvalidArgument("input 'Diagonal' has shape ", ToString(shape), ", expected rank 1");
  }
  INTERP_RETURN_IF_ERROR(CheckedProduct(shape[0], shape[0]).status());
  ctx.SetShape(kOut, {shape[0], shape[0]});
  return absl::OkStatus();
}

absl::Status Diag(KernelContext& ctx) {
  Tensor& out = ctx.output(kOut);
  FillZero(ctx.num_threads(), out);
  WriteDiagonals(ctx.num_threads(), *FindDiagonal({}, out.shape), DiagonalSource::kFull,
                 ctx.input(kDiagonal).raw_data(), out);
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "diag",
    .inputs = {{"Diagonal"}},
    .outputs = {{"Out"}},
    .infer = Infer,
    .kernels = {{DType::kUndefined, Diag}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
