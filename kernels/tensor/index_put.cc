// index_put: out = x, where the places that `indices` name together take value, or with
// `accumulate` have it added. value is broadcast to the shape of the places. Of several values for
// one place the last one stays.
#include "kernels/tensor/index_put.h"

#include <complex>

#include "kernels/util/arithmetic.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/copy.h"
#include "kernels/util/infer_like.h"

namespace interp::index_put {
namespace {

constexpr int kX = 0;
constexpr int kIndices = 1;
constexpr int kValue = 2;
constexpr int kOut = 0;

struct Attrs {
  bool accumulate = false;
};

Attrs ReadAttrs(AttrReader& reader) { return {reader.Bool("accumulate", false)}; }

template <typename T>
absl::Status IndexPut(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const Tensor& value = ctx.input(kValue);
  INTERP_ASSIGN_OR_RETURN(const Places places, ResolvePlaces(ctx.inputs(kIndices), x.shape));
  INTERP_ASSIGN_OR_RETURN(const Strides steps, BroadcastStridesTo(places.shape, value.shape));
  CopyUnlessShared(x, ctx.output(kOut));
  const bool accumulate = ctx.attrs<Attrs>().accumulate;
  const T* const values = value.data<T>();
  T* const out = ctx.output(kOut).mutable_data<T>();
  const int64_t size = places.slice_size;
  ForEachElement(places.shape, steps, [&](int64_t n, int64_t from) {
    using C = ComputeType<T>;
    T& to = out[places.slices[n / size] * size + n % size];
    to = accumulate ? static_cast<T>(WrapAdd<C>(to, values[from])) : values[from];
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "index_put",
    .inputs = {{"x"}, {"indices", kVariadic | kAnyDType}, {"value"}},
    .outputs = {{"out"}},
    .parse = ParseAttrs<Attrs, ReadAttrs>,
    .infer = InferLike<kX, kOut>,
    .kernels = {{DType::kFloat32, IndexPut<float>},
                {DType::kFloat64, IndexPut<double>},
                {DType::kFloat16, IndexPut<float16>},
                {DType::kBFloat16, IndexPut<bfloat16>},
                {DType::kInt8, IndexPut<int8_t>},
                {DType::kUInt8, IndexPut<uint8_t>},
                {DType::kInt16, IndexPut<int16_t>},
                {DType::kInt32, IndexPut<int32_t>},
                {DType::kInt64, IndexPut<int64_t>},
                {DType::kBool, IndexPut<bool>},
                {DType::kComplex64, IndexPut<std::complex<float>>},
                {DType::kComplex128, IndexPut<std::complex<double>>}},
    .inplace = {{kX, kOut}},
    .gradient = {.inputs = {"x", "indices", "value", "out@GRAD"},
                 .outputs = {"x@GRAD", "value@GRAD"}},
});

constexpr int kOutGrad = 3;
constexpr int kXGrad = 0;
constexpr int kValueGrad = 1;

absl::Status InferIndexPutGrad(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kOutGrad, "out@GRAD", ctx.input(kX).shape));
  ctx.ShareShape(kX, kXGrad);
  ctx.ShareShape(kValue, kValueGrad);
  return absl::OkStatus();
}

// Sums in double: one value may stand at many places.
template <typename T>
void SumPlaces(const Places& places, const Strides& steps, const T* grad, std::vector<double>& sums,
               T* out) {
  const int64_t size = places.slice_size;
  ForEachElement(places.shape, steps, [&](int64_t n, int64_t to) {
    sums[to] += static_cast<double>(grad[places.slices[n / size] * size + n % size]);
  });
  for (size_t i = 0; i < sums.size(); ++i) out[i] = static_cast<T>(sums[i]);
}

// Like Paddle's, without `accumulate` the gradient of each of several values for one place.
template <typename T>
absl::Status IndexPutGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.input(kOutGrad);
  const Shape& value = ctx.input(kValue).shape;
  INTERP_ASSIGN_OR_RETURN(const Places places, ResolvePlaces(ctx.inputs(kIndices), grad.shape));
  INTERP_ASSIGN_OR_RETURN(const Strides steps, BroadcastStridesTo(places.shape, value));
  if (Tensor* const value_grad = ctx.optional_output(kValueGrad)) {
    std::vector<double> sums(static_cast<size_t>(value.numel()), 0);
    SumPlaces(places, steps, grad.data<T>(), sums, value_grad->mutable_data<T>());
  }
  if (Tensor* const x_grad = ctx.optional_output(kXGrad)) {
    CopyUnlessShared(grad, *x_grad);
    if (ctx.attrs<Attrs>().accumulate) return absl::OkStatus();
    T* const out = x_grad->mutable_data<T>();
    for (const int64_t slice : places.slices) {
      T* const at = out + slice * places.slice_size;
      std::fill(at, at + places.slice_size, T{0});
    }
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "index_put_grad",
    .inputs = {{"x", kNoNeedBuffer},
               {"indices", kVariadic | kAnyDType},
               {"value", kNoNeedBuffer},
               {"out@GRAD"}},
    .outputs = {{"x@GRAD", kOptional}, {"value@GRAD", kOptional}},
    .parse = ParseAttrs<Attrs, ReadAttrs>,
    .infer = InferIndexPutGrad,
    .kernels = {{DType::kFloat32, IndexPutGrad<float>}, {DType::kFloat64, IndexPutGrad<double>}},
});

}  // namespace
}  // namespace interp::index_put
