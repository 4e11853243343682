// Functions of two tensors of one shape, element by element.
// atan2: the angle of the point (X2, X1), as float64 for integers.
// nextafter: the number next to x in the direction of y.
#include <cmath>

#include "core/op_def.h"
#include "kernels/util/arithmetic.h"
#include "kernels/util/data_or_null.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/parallel_for.h"

namespace interp {
namespace {

constexpr int kFirst = 0;
constexpr int kSecond = 1;
constexpr int kOut = 0;

absl::Status InferPair(InferContext& ctx) {
  const Shape& first = ctx.input(kFirst).shape;
  const Shape& second = ctx.input(kSecond).shape;
  if (first != second) {
    return InvalidArgument("the inputs have shapes ", ToString(first), " and ", ToString(second),
                           ", expected one shape");
  }
  ctx.ShareShape(kFirst, kOut);
  return absl::OkStatus();
}

template <typename T, typename R, typename Function>
void MapPairs(KernelContext& ctx, const Function& function) {
  using C = ComputeType<R>;
  const T* const first = ctx.input(kFirst).data<T>();
  const T* const second = ctx.input(kSecond).data<T>();
  R* const out = ctx.output(kOut).mutable_data<R>();
  ParallelFor(ctx.num_threads(), ctx.input(kFirst).numel(), kElementwiseGrain,
              [=](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const C a = static_cast<C>(first[i]);
                  const C b = static_cast<C>(second[i]);
                  out[i] = static_cast<R>(function(a, b));
                }
              });
}

template <typename T, typename R = T>
absl::Status Atan2(KernelContext& ctx) {
  MapPairs<T, R>(ctx, [](auto y, auto x) { return std::atan2(y, x); });
  return absl::OkStatus();
}

template <typename T>
absl::Status NextAfter(KernelContext& ctx) {
  MapPairs<T, T>(ctx, [](T x, T y) { return std::nextafter(x, y); });
  return absl::OkStatus();
}

bool IsInteger(DType dtype) { return dtype == DType::kInt32 || dtype == DType::kInt64; }

INTERP_REGISTER_OP(OpDef{
    .type = "atan2",
    .inputs = {{"X1"}, {"X2"}},
    .outputs = {{"Out"}},
    .infer_dtype =
        [](DTypeContext& ctx) {
          if (IsInteger(ctx.kernel())) ctx.Set(kOut, DType::kFloat64);
        },
    .infer = InferPair,
    .kernels = {{DType::kFloat32, Atan2<float>},
                {DType::kFloat64, Atan2<double>},
                {DType::kFloat16, Atan2<float16>},
                {DType::kInt32, Atan2<int32_t, double>},
                {DType::kInt64, Atan2<int64_t, double>}},
    .gradient = {.inputs = {"X1", "X2", "Out@GRAD"}, .outputs = {"X1@GRAD", "X2@GRAD"}},
});

INTERP_REGISTER_OP(OpDef{
    .type = "nextafter",
    .inputs = {{"x"}, {"y"}},
    .outputs = {{"out"}},
    .infer = InferPair,
    .kernels = {{DType::kFloat32, NextAfter<float>}, {DType::kFloat64, NextAfter<double>}},
    .inplace = {{kFirst, kOut}, {kSecond, kOut}},
    .gradient = {.none = true},
});

constexpr int kOutGrad = 2;
constexpr int kFirstGrad = 0;
constexpr int kSecondGrad = 1;

absl::Status InferAtan2Grad(InferContext& ctx) {
  const Shape& shape = ctx.input(kFirst).shape;
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kSecond, "X2", shape));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", shape));
  ctx.ShareShape(kFirst, kFirstGrad);
  ctx.ShareShape(kSecond, kSecondGrad);
  return absl::OkStatus();
}

template <typename T>
absl::Status Atan2Grad(KernelContext& ctx) {
  const T* const y = ctx.input(kFirst).data<T>();
  const T* const x = ctx.input(kSecond).data<T>();
  const T* const grad = ctx.input(kOutGrad).data<T>();
  Tensor* const y_grad = ctx.optional_output(kFirstGrad);
  Tensor* const x_grad = ctx.optional_output(kSecondGrad);
  T* const to_y = DataOrNull<T>(y_grad);
  T* const to_x = DataOrNull<T>(x_grad);
  ParallelFor(ctx.num_threads(), ctx.input(kFirst).numel(), kElementwiseGrain,
              [=](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const T part = grad[i] / (x[i] * x[i] + y[i] * y[i]);
                  if (to_y != nullptr) to_y[i] = part * x[i];
                  if (to_x != nullptr) to_x[i] = -part * y[i];
                }
              });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "atan2_grad",
    .inputs = {{"X1"}, {"X2"}, {"Out@GRAD"}},
    .outputs = {{"X1@GRAD", kOptional}, {"X2@GRAD", kOptional}},
    .infer = InferAtan2Grad,
    .kernels = {{DType::kFloat32, Atan2Grad<float>}, {DType::kFloat64, Atan2Grad<double>}},
});

}  // namespace
}  // namespace interp
