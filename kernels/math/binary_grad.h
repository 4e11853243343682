// Gradients of ops of two tensors with broadcasting: X@GRAD = X's partial derivative times
// Out@GRAD, summed over the dimensions that X is broadcast along; Y@GRAD likewise.
//
// A gradient is a struct that says for each operand which operands its partial derivative takes,
// and has the products with an element of Out@GRAD:
//
//   struct MulGrad {
//     static constexpr Takes kX = Takes::kOther;
//     static constexpr Takes kY = Takes::kOther;
//     template <typename T> static T X(T, T y, T grad) { return grad * y; }
//     template <typename T> static T Y(T x, T, T grad) { return grad * x; }
//   };
//
// The sums are taken by RunReduce as the products are made, without a tensor in between, unless
// both operands are broadcast, or the partial derivative takes both: those are many, and code for
// the sums of each would be large.
//
// Long because which loop a gradient takes is chosen from all of them at once.
#pragma once

#include <algorithm>
#include <complex>
#include <type_traits>

#include "kernels/complex/complex_dtype.h"
#include "kernels/complex/promotion.h"
#include "kernels/math/binary.h"
#include "kernels/util/reduce.h"
#include "kernels/util/sum_of.h"

namespace interp {

// Which operands a partial derivative is computed from: the one it is of, the other one. kNothing:
// it is 1 or -1.
enum class Takes : uint8_t { kNothing, kOther, kBoth };

namespace binary_grad {
inline constexpr int kX = 0;
inline constexpr int kY = 1;
inline constexpr int kOutGrad = 3;
inline constexpr int kXGrad = 0;
inline constexpr int kYGrad = 1;

// One operand of the op, whose gradient is computed, and the other one.
struct Side {
  const Tensor* self = nullptr;
  const Tensor* other = nullptr;
  const Tensor* grad = nullptr;  // of Out
  Tensor* self_grad = nullptr;
  int axis = kTrailingAxis;
  int num_threads = 1;
};

// The operand has the memory order of Out@GRAD, element by element.
bool CoversOutput(const Tensor& operand, const Tensor& grad);

// Calls body(begin, n, values) for pieces of the output, with the elements of the operand that
// meet [begin, begin + n).
template <typename T, typename Body>
void ForEachPieceOf(const Tensor& operand, const Side& side, const Body& body) {
  const Tensor& grad = *side.grad;
  const Strides strides = BroadcastStrides(operand, grad.shape.rank(), side.axis);
  ForEachPiece(PlanBroadcast(StridesOf(grad), strides, grad), side.num_threads, operand.data<T>(),
               body);
}

// Elements of Out@GRAD and of the other operand, as a source of RunReduce.
template <typename T>
struct Pair {
  T grad, other;
};
template <typename T>
struct Pairs {
  const T* grad;
  const T* other;
  Pairs operator+(int64_t n) const { return {grad + n, other + n}; }
  Pair<T> operator[](int64_t i) const { return {grad[i], other[i]}; }
};

template <typename T, typename Partial>
struct SumOfProducts {
  using Acc = SumType<T>;
  Partial partial;
  Acc Init() const { return 0; }
  using C = ComputeType<T>;
  Acc Map(const Pair<T>& pair, int64_t) const {
    return static_cast<Acc>(partial(C{0}, pair.other, pair.grad));
  }
  Acc Map(T grad, int64_t) const { return static_cast<Acc>(partial(C{0}, C{0}, grad)); }
  Acc Fold(Acc a, Acc b) const { return WrapAdd(a, b); }
};

// The plan of the sum over the dimensions that `self` is broadcast along.
ReducePlan PlanSum(const Side& side);

template <typename T, Takes kTakes, typename Partial>
void MapProducts(const Side& side, const Partial& partial) {
  using C = ComputeType<T>;
  const T* grad = side.grad->data<T>();
  T* out = side.self_grad->mutable_data<T>();
  if constexpr (kTakes == Takes::kNothing) {
    if (out == grad && partial(C{0}, C{0}, C{1}) == C{1}) return;  // it is Out@GRAD already
    ParallelFor(side.num_threads, side.grad->numel(), kElementwiseGrain,
                [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
                  for (int64_t i = begin; i < end; ++i) out[i] = partial(C{0}, C{0}, grad[i]);
                });
  } else {
    const T* self = kTakes == Takes::kBoth ? side.self->data<T>() : grad;
    ForEachPieceOf<T>(*side.other, side, [=](int64_t begin, int64_t n, const T* other) {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) {
        out[begin + i] = partial(self[begin + i], other[i], grad[begin + i]);
      }
    });
  }
}

// A tensor of To of the shape of Out@GRAD, with the elements of an operand that meet its own.
template <typename T, typename To = T>
absl::StatusOr<Tensor> LaidOut(KernelContext& ctx, const Tensor& operand, const Side& side) {
  Tensor whole;
  whole.dtype = DTypeOf<To>;
  whole.shape = side.grad->shape;
  INTERP_RETURN_IF_ERROR(ctx.Allocate(whole));
  To* const to = whole.mutable_data<To>();
  ForEachPieceOf<T>(operand, side, [to](int64_t begin, int64_t n, const T* values) {
    std::copy(values, values + n, to + begin);
  });
  return whole;
}

template <typename C>
struct GradAsItIs {
  C operator()(C, C, C grad) const { return grad; }
};

// The products in place of the other operand's elements.
template <typename T, typename Partial>
absl::StatusOr<Tensor> LaidOutProducts(KernelContext& ctx, const Side& side,
                                       const Partial& partial) {
  using C = ComputeType<T>;
  INTERP_ASSIGN_OR_RETURN(Tensor products, (LaidOut<T, C>(ctx, *side.other, side)));
  const T* const grad = side.grad->data<T>();
  C* const to = products.mutable_data<C>();
  ForEachPieceOf<T>(*side.self, side, [=](int64_t begin, int64_t n, const T* self) {
#pragma GCC ivdep
    for (int64_t i = begin; i < begin + n; ++i) to[i] = partial(self[i - begin], to[i], grad[i]);
  });
  return products;
}

// `source` gives elements of E, or pairs of them.
template <typename T, typename E, typename Source, typename Partial>
void Sum(const Side& side, const Source& source, const Partial& partial) {
  using Reducer = SumOfProducts<E, Partial>;
  RunReduce(PlanSum(side), side.num_threads, source, side.self_grad->mutable_data<T>(),
            Reducer{partial},
            [](typename Reducer::Acc total, int64_t) { return static_cast<T>(total); });
}

template <typename T, Takes kTakes, typename Partial>
absl::Status SumProducts(KernelContext& ctx, const Side& side, const Partial& partial) {
  const T* const grad = side.grad->data<T>();
  if constexpr (kTakes == Takes::kNothing) {
    Sum<T, T>(side, grad, partial);
  } else if constexpr (kTakes == Takes::kOther) {
    Tensor whole;
    const bool covers = CoversOutput(*side.other, *side.grad);
    if (!covers) {
      INTERP_ASSIGN_OR_RETURN(whole, LaidOut<T>(ctx, *side.other, side));
    }
    Sum<T, T>(side, Pairs<T>{grad, (covers ? *side.other : whole).template data<T>()}, partial);
  } else {
    using C = ComputeType<T>;
    INTERP_ASSIGN_OR_RETURN(const Tensor products, LaidOutProducts<T>(ctx, side, partial));
    Sum<T, C>(side, products.data<C>(), GradAsItIs<C>());
  }
  return absl::OkStatus();
}

// The gradient of one operand. Out@GRAD may share its memory with it.
template <typename T, Takes kTakes, typename Partial>
absl::Status OperandGrad(KernelContext& ctx, Side side, const Partial& partial) {
  if (side.grad->numel() == 0) {
    T* const out = side.self_grad->mutable_data<T>();
    std::fill(out, out + side.self_grad->numel(), T());
    return absl::OkStatus();
  }
  if (CoversOutput(*side.self_grad, *side.grad)) {
    MapProducts<T, kTakes>(side, partial);
    return absl::OkStatus();
  }
  Tensor copy;
  if (side.grad->raw_data() == side.self_grad->raw_data()) {
    INTERP_ASSIGN_OR_RETURN(copy, side.grad->Clone(ctx.allocator()));
    side.grad = &copy;
  }
  return SumProducts<T, kTakes>(ctx, side, partial);
}

Side SideOf(KernelContext& ctx, int self, int other);

// OpDef::infer where X@GRAD has the LoD of X; that of the others has the LoD of Out@GRAD.
absl::Status InferWithLodOfX(InferContext& ctx);

}  // namespace binary_grad

// A definition without kernels. Without `values` only shapes of X and Y are used, which older
// programs leave out where they are those of Out@GRAD.
OpDef PlainBinaryGradDef(absl::string_view type, bool values);

template <typename Op, typename T>
absl::Status BinaryGrad(KernelContext& ctx) {
  namespace bg = binary_grad;
  using C = ComputeType<T>;
  const auto x_grad = [&]() -> absl::Status {
    if (!ctx.has_output(bg::kXGrad)) return absl::OkStatus();
    return bg::OperandGrad<T, Op::kX>(ctx, bg::SideOf(ctx, bg::kX, bg::kY),
                                      [](C x, C y, C grad) { return Op::X(x, y, grad); });
  };
  const auto y_grad = [&]() -> absl::Status {
    if (!ctx.has_output(bg::kYGrad)) return absl::OkStatus();
    return bg::OperandGrad<T, Op::kY>(ctx, bg::SideOf(ctx, bg::kY, bg::kX),
                                      [](C y, C x, C grad) { return Op::Y(x, y, grad); });
  };
  // The one that overwrites Out@GRAD comes last.
  const Tensor* x = ctx.optional_output(bg::kXGrad);
  const bool x_last = x != nullptr && x->raw_data() == ctx.input(bg::kOutGrad).raw_data();
  INTERP_RETURN_IF_ERROR(x_last ? y_grad() : x_grad());
  return x_last ? x_grad() : y_grad();
}

template <typename Op>
OpDef BinaryGradDef(absl::string_view type) {
  OpDef def = PlainBinaryGradDef(type, Op::kX != Takes::kNothing || Op::kY != Takes::kNothing);
  def.kernels = {{DType::kFloat32, BinaryGrad<Op, float>},
                 {DType::kFloat64, BinaryGrad<Op, double>},
                 {DType::kBFloat16, BinaryGrad<Op, bfloat16>}};
  return def;
}

// The same, of integers too.
template <typename Op>
OpDef NumberGradDef(absl::string_view type) {
  OpDef def = BinaryGradDef<Op>(type);
  def.kernels.push_back({DType::kInt32, BinaryGrad<Op, int32_t>});
  def.kernels.push_back({DType::kInt64, BinaryGrad<Op, int64_t>});
  return def;
}

// The same, of complex numbers too: partial derivatives are those of conjugates.
template <typename Op>
OpDef ComplexBinaryGradDef(absl::string_view type) {
  OpDef def = NumberGradDef<Op>(type);
  def.kernel_dtype = PromotedDType<binary_grad::kX, binary_grad::kY, binary_grad::kOutGrad>;
  def.infer_dtype = RealGradientDTypes;
  def.kernels.push_back(
      {DType::kComplex64, WithRealGradients<float, BinaryGrad<Op, std::complex<float>>>});
  def.kernels.push_back(
      {DType::kComplex128, WithRealGradients<double, BinaryGrad<Op, std::complex<double>>>});
  return def;
}

}  // namespace interp
