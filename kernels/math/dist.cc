// dist: Out, a scalar, is the p-norm of X - Y, which are broadcast against each other.
// dist_grad: its derivative for X, and minus that for Y, summed over what is broadcast.
#include "kernels/math/binary_grad.h"
#include "kernels/math/p_norm.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kY = 1;
constexpr int kOut = 0;
// Of the gradient.
constexpr int kForwardOut = 2;
constexpr int kOutGrad = 3;

struct DistAttrs {
  float order = 2;
};

DistAttrs ReadDistAttrs(AttrReader& reader) { return {reader.Float("p", 2.0f)}; }

absl::StatusOr<Shape> DifferenceShape(const OpContext& ctx) {
  return BroadcastShapes(ctx.input(kX).shape, ctx.input(kY).shape, kTrailingAxis);
}

absl::Status InferDist(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(DifferenceShape(ctx).status());
  ctx.SetShape(kOut, {});
  return absl::OkStatus();
}

// X - Y.
template <typename T>
absl::StatusOr<Tensor> Difference(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const Tensor& y = ctx.input(kY);
  Tensor difference;
  difference.dtype = DTypeOf<T>;
  INTERP_ASSIGN_OR_RETURN(difference.shape, DifferenceShape(ctx));
  INTERP_RETURN_IF_ERROR(ctx.Allocate(difference));
  if (difference.numel() == 0) return difference;
  RunBroadcast(PlanBroadcast(x, y, difference, kTrailingAxis), ctx.num_threads(), x.data<T>(),
               y.data<T>(), difference.mutable_data<T>(), [](T a, T b) { return a - b; });
  return difference;
}

template <typename T>
absl::Status Dist(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Tensor difference, Difference<T>(ctx));
  DimSet all;
  for (int i = 0; i < difference.shape.rank(); ++i) all[i] = true;
  const ReducePlan plan = PlanReduce(difference, all, Strides{});
  WithNorm<T>(ctx.attrs<DistAttrs>().order, [&](const auto& sum, const auto& finish) {
    RunReduce(plan, ctx.num_threads(), difference.data<T>(), ctx.output(kOut).mutable_data<T>(),
              sum, [&finish](auto total, int64_t at) { return static_cast<T>(finish(total, at)); });
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "dist",
    .inputs = {{"X"}, {"Y"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<DistAttrs, ReadDistAttrs>,
    .infer = InferDist,
    .kernels = {{DType::kFloat32, Dist<float>}, {DType::kFloat64, Dist<double>}},
    .gradient = {.inputs = {"X", "Y", "Out", "Out@GRAD"}, .outputs = {"X@GRAD", "Y@GRAD"}},
});

absl::Status InferDistGrad(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(DifferenceShape(ctx).status());
  for (const auto& [slot, name] :
       {std::pair(kForwardOut, "Out"), std::pair(kOutGrad, "Out@GRAD")}) {
    if (ctx.input(slot).shape.numel() == 1) continue;
    return InvalidArgument("input '", name, "' has shape ", ToString(ctx.input(slot).shape),
                           ", expected one element");
  }
  ctx.ShareShape(kX, kX);
  ctx.ShareShape(kY, kY);
  return absl::OkStatus();
}

template <typename T>
absl::Status DistGrad(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(Tensor grad, Difference<T>(ctx));
  const T norm = *ctx.input(kForwardOut).data<T>();
  const T out_grad = *ctx.input(kOutGrad).data<T>();
  T* const values = grad.mutable_data<T>();
  WithNormGrad<T>(ctx.attrs<DistAttrs>().order, /*epsilon=*/0, [&](const auto& op) {
    ParallelFor(ctx.num_threads(), grad.numel(), kElementwiseGrain,
                [&op, values, norm, out_grad](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) values[i] = op(values[i], norm, out_grad);
                });
  });
  const auto give = [&](int self, int other, const auto& partial) -> absl::Status {
    if (!ctx.has_output(self)) return absl::OkStatus();
    return binary_grad::OperandGrad<T, Takes::kNothing>(ctx,
                                                        {.self = &ctx.input(self),
                                                         .other = &ctx.input(other),
                                                         .grad = &grad,
                                                         .self_grad = &ctx.output(self),
                                                         .axis = kTrailingAxis,
                                                         .num_threads = ctx.num_threads()},
                                                        partial);
  };
  INTERP_RETURN_IF_ERROR(give(kX, kY, [](T, T, T g) { return g; }));
  return give(kY, kX, [](T, T, T g) { return -g; });
}

INTERP_REGISTER_OP(OpDef{
    .type = "dist_grad",
    .inputs = {{"X"}, {"Y"}, {"Out"}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD", kOptional}, {"Y@GRAD", kOptional}},
    .parse = ParseAttrs<DistAttrs, ReadDistAttrs>,
    .infer = InferDistGrad,
    .kernels = {{DType::kFloat32, DistGrad<float>}, {DType::kFloat64, DistGrad<double>}},
});

}  // namespace
}  // namespace interp
