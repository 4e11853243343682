// The rows of cast: every pair of dtypes that the host has, for plans insert casts.
#include "kernels/cuda/convert.h"
#include "kernels/cuda/row.h"
#include "kernels/math/cast.h"
#include "kernels/math/unary.h"

namespace interp::cuda {
namespace {

absl::Status CastTo(KernelContext& ctx) {
  const Tensor& x = ctx.input(unary::kX);
  Tensor& out = ctx.output(unary::kOut);
  return Cast(x.dtype, ctx.attrs<CastAttrs>().out_dtype, x.raw_data(), out.mutable_raw_data(),
              out.numel(), StreamOf(ctx));
}

INTERP_REGISTER_KERNELS("cast", RowsFor({DType::kBool, DType::kInt16, DType::kInt32, DType::kInt64,
                                         DType::kFloat16, DType::kBFloat16, DType::kFloat32,
                                         DType::kFloat64, DType::kUInt8, DType::kInt8,
                                         DType::kComplex64, DType::kComplex128},
                                        CastTo));

}  // namespace
}  // namespace interp::cuda
