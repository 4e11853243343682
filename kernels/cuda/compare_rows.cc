// Rows of comparisons, logic and tests of floats.
#include "kernels/cuda/compare.h"
#include "kernels/cuda/operands.h"
#include "kernels/cuda/row.h"
#include "kernels/math/binary.h"
#include "kernels/math/unary.h"

namespace interp::cuda {
namespace {

template <PredicateOp kOp>
absl::Status OfTwo(KernelContext& ctx) {
  Tensor& out = ctx.output(binary::kOut);
  if (out.numel() == 0) return absl::OkStatus();
  const BinaryOperandDims dims(ctx);
  return Predicate(ctx.input(binary::kX).dtype, kOp, dims.operands(), dims.out_dims(),
                   out.mutable_data<bool>(), StreamOf(ctx));
}

template <PredicateOp kOp>
absl::Status OfOne(KernelContext& ctx) {
  const Tensor& x = ctx.input(unary::kX);
  const int64_t flat[] = {x.numel()};
  return Predicate(x.dtype, kOp, {ElementwiseOperand{x.raw_data(), flat}}, flat,
                   ctx.output(unary::kOut).mutable_data<bool>(), StreamOf(ctx));
}

constexpr std::initializer_list<DType> kComparable = {
    DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kInt32, DType::kInt64,
    DType::kInt16,   DType::kInt8,    DType::kUInt8,   DType::kBool};
constexpr std::initializer_list<DType> kLogical = {DType::kBool,  DType::kFloat32, DType::kFloat64,
                                                   DType::kInt32, DType::kInt64,   DType::kInt16,
                                                   DType::kInt8};
constexpr std::initializer_list<DType> kClassified = {
    DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kInt32, DType::kInt64};

INTERP_REGISTER_KERNELS("equal", RowsFor(kComparable, OfTwo<PredicateOp::kEqual>));
INTERP_REGISTER_KERNELS("not_equal", RowsFor(kComparable, OfTwo<PredicateOp::kNotEqual>));
INTERP_REGISTER_KERNELS("less_than", RowsFor(kComparable, OfTwo<PredicateOp::kLess>));
INTERP_REGISTER_KERNELS("less_equal", RowsFor(kComparable, OfTwo<PredicateOp::kLessEqual>));
INTERP_REGISTER_KERNELS("greater_than", RowsFor(kComparable, OfTwo<PredicateOp::kGreater>));
INTERP_REGISTER_KERNELS("greater_equal", RowsFor(kComparable, OfTwo<PredicateOp::kGreaterEqual>));
INTERP_REGISTER_KERNELS("logical_and", RowsFor(kLogical, OfTwo<PredicateOp::kAnd>));
INTERP_REGISTER_KERNELS("logical_or", RowsFor(kLogical, OfTwo<PredicateOp::kOr>));
INTERP_REGISTER_KERNELS("logical_xor", RowsFor(kLogical, OfTwo<PredicateOp::kXor>));
INTERP_REGISTER_KERNELS("logical_not", RowsFor(kLogical, OfOne<PredicateOp::kNot>));
INTERP_REGISTER_KERNELS("isfinite_v2", RowsFor(kClassified, OfOne<PredicateOp::kIsFinite>));
INTERP_REGISTER_KERNELS("isinf_v2", RowsFor(kClassified, OfOne<PredicateOp::kIsInf>));
INTERP_REGISTER_KERNELS("isnan_v2", RowsFor(kClassified, OfOne<PredicateOp::kIsNan>));

}  // namespace
}  // namespace interp::cuda
