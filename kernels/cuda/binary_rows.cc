// Rows of functions of two tensors, element by element. Integers are divided on the host, which
// says where a divisor is 0.
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/operands.h"
#include "kernels/cuda/row.h"
#include "kernels/math/binary.h"

namespace interp::cuda {
namespace {

template <ElementwiseOp kOp>
absl::Status Pairwise(KernelContext& ctx) {
  Tensor& out = ctx.output(binary::kOut);
  if (out.numel() == 0) return absl::OkStatus();
  const BinaryOperandDims dims(ctx);
  // As on the host the operand of more dimensions comes first, which counts for a NaN.
  constexpr bool kExtreme = kOp == ElementwiseOp::kMax || kOp == ElementwiseOp::kMin;
  const bool swapped =
      kExtreme && ctx.input(binary::kX).shape.rank() < ctx.input(binary::kY).shape.rank();
  const ElementwiseStep step = {.op = kOp, .operand = 1, .swapped = swapped};
  return Elementwise(out.dtype, {step}, dims.operands(), dims.out_dims(), out.mutable_raw_data(),
                     StreamOf(ctx));
}

constexpr std::initializer_list<DType> kRealNumbers = {DType::kFloat32, DType::kFloat64,
                                                       DType::kFloat16, DType::kBFloat16};
constexpr std::initializer_list<DType> kAllNumbers = {DType::kFloat32, DType::kFloat64,
                                                      DType::kFloat16, DType::kBFloat16,
                                                      DType::kInt32,   DType::kInt64};

INTERP_REGISTER_KERNELS("elementwise_add", RowsFor(kAllNumbers, Pairwise<ElementwiseOp::kAdd>));
INTERP_REGISTER_KERNELS("grad_add",
                        RowsFor({DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kInt64},
                                Pairwise<ElementwiseOp::kAdd>));
INTERP_REGISTER_KERNELS("elementwise_sub", RowsFor(kAllNumbers, Pairwise<ElementwiseOp::kSub>));
INTERP_REGISTER_KERNELS("minus", RowsFor({DType::kFloat32}, Pairwise<ElementwiseOp::kSub>));
INTERP_REGISTER_KERNELS("elementwise_mul", RowsFor(kAllNumbers, Pairwise<ElementwiseOp::kMul>));
INTERP_REGISTER_KERNELS("elementwise_max", RowsFor(kAllNumbers, Pairwise<ElementwiseOp::kMax>));
INTERP_REGISTER_KERNELS("elementwise_min", RowsFor(kAllNumbers, Pairwise<ElementwiseOp::kMin>));
INTERP_REGISTER_KERNELS("elementwise_fmax", RowsFor(kAllNumbers, Pairwise<ElementwiseOp::kFmax>));
INTERP_REGISTER_KERNELS("elementwise_fmin", RowsFor(kAllNumbers, Pairwise<ElementwiseOp::kFmin>));
INTERP_REGISTER_KERNELS("elementwise_pow", RowsFor(kRealNumbers, Pairwise<ElementwiseOp::kPow>));
INTERP_REGISTER_KERNELS("elementwise_div", RowsFor(kRealNumbers, Pairwise<ElementwiseOp::kDiv>));
INTERP_REGISTER_KERNELS("elementwise_floordiv",
                        RowsFor(kRealNumbers, Pairwise<ElementwiseOp::kFloorDiv>));
INTERP_REGISTER_KERNELS("elementwise_mod", RowsFor(kRealNumbers, Pairwise<ElementwiseOp::kMod>));

}  // namespace
}  // namespace interp::cuda
