// real, imag: the parts of X. angle: the angle of X as a point of the plane, 0 or pi of real
// numbers. conj: X with the other sign of the imaginary part. as_real: X with a dimension of 2
// behind, its parts; as_complex is the reverse.
#include <cmath>
#include <cstring>
#include <numbers>

#include "core/op_def.h"
#include "kernels/complex/complex_dtype.h"
#include "kernels/util/gradient_op.h"
#include "kernels/util/infer_like.h"
#include "kernels/util/parallel_for.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

// Without the LoD.
absl::Status InferPart(InferContext& ctx) {
  ctx.SetShape(kOut, ctx.input(kX).shape);
  return absl::OkStatus();
}

void InferRealDType(DTypeContext& ctx) { ctx.Set(kOut, RealDType(ctx.kernel())); }
void InferComplexDType(DTypeContext& ctx) { ctx.Set(kOut, ComplexDType(ctx.kernel())); }

template <typename T, typename R, typename Function>
absl::Status Map(KernelContext& ctx, const Function& function) {
  const T* const x = ctx.input(kX).data<T>();
  R* const out = ctx.output(kOut).mutable_data<R>();
  ParallelFor(ctx.num_threads(), ctx.input(kX).numel(), kElementwiseGrain,
              [=](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) out[i] = function(x[i]);
              });
  return absl::OkStatus();
}

template <typename T>
absl::Status Real(KernelContext& ctx) {
  return Map<std::complex<T>, T>(ctx, [](std::complex<T> x) { return x.real(); });
}

template <typename T>
absl::Status Imag(KernelContext& ctx) {
  return Map<std::complex<T>, T>(ctx, [](std::complex<T> x) { return x.imag(); });
}

template <typename T>
absl::Status Conj(KernelContext& ctx) {
  return Map<T, T>(ctx, [](T x) { return Conjugate(x); });
}

template <typename T>
absl::Status ComplexAngle(KernelContext& ctx) {
  return Map<std::complex<T>, T>(ctx, [](std::complex<T> x) { return std::arg(x); });
}

template <typename T>
absl::Status RealAngle(KernelContext& ctx) {
  return Map<T, T>(ctx, [](T x) { return x < 0 ? std::numbers::pi_v<T> : T{0}; });
}

// Complex numbers lie in memory as their two parts.
absl::Status CopyParts(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  if (x.size_bytes() == 0) return absl::OkStatus();
  std::memcpy(ctx.output(kOut).mutable_raw_data(), x.raw_data(), x.size_bytes());
  return absl::OkStatus();
}

absl::Status InferAsReal(InferContext& ctx) {
  Shape shape = ctx.input(kX).shape;
  if (shape.rank() == kMaxRank) {
    return InvalidArgument("input 'X' has shape ", ToString(shape), ", expected rank ",
                           kMaxRank - 1, " or less");
  }
  shape.push_back(2);
  ctx.SetShape(kOut, shape);
  ShareLod(ctx.input(kX), ctx.output(kOut));
  return absl::OkStatus();
}

absl::Status InferAsComplex(InferContext& ctx) {
  Shape shape = ctx.input(kX).shape;
  if (shape.rank() == 0 || shape.back() != 2) {
    return InvalidArgument("input 'X' has shape ", ToString(shape),
                           ", expected a last dimension of 2: the parts of complex numbers");
  }
  shape.resize(shape.rank() - 1);
  ctx.SetShape(kOut, shape);
  ShareLod(ctx.input(kX), ctx.output(kOut));
  return absl::OkStatus();
}

OpDef PartDef(absl::string_view type, std::vector<KernelDef> kernels) {
  return OpDef{
      .type = type,
      .inputs = {{"X"}},
      .outputs = {{"Out"}},
      .infer_dtype = InferRealDType,
      .infer = InferPart,
      .kernels = std::move(kernels),
      .gradient = {.inputs = {"Out@GRAD"}, .outputs = {"X@GRAD"}},
  };
}

OpDef AngleDef() {
  OpDef def = PartDef("angle", {{DType::kComplex64, ComplexAngle<float>},
                                {DType::kComplex128, ComplexAngle<double>},
                                {DType::kFloat32, RealAngle<float>},
                                {DType::kFloat64, RealAngle<double>}});
  def.gradient.inputs = {"X", "Out@GRAD"};
  return def;
}

// The gradient of an op that is its own inverse, or has `type` for it.
template <const char* kType>
absl::Status MakeInverse(GradientMaker& maker) {
  return AddGradientOp(maker, kType, {{"X", "Out@GRAD"}}, {{"Out", "X@GRAD"}});
}
constexpr char kConj[] = "conj";
constexpr char kAsReal[] = "as_real";
constexpr char kAsComplex[] = "as_complex";

INTERP_REGISTER_OP(PartDef("real",
                           {{DType::kComplex64, Real<float>}, {DType::kComplex128, Real<double>}}));
INTERP_REGISTER_OP(PartDef("imag",
                           {{DType::kComplex64, Imag<float>}, {DType::kComplex128, Imag<double>}}));
INTERP_REGISTER_OP(AngleDef());
INTERP_REGISTER_OP(OpDef{
    .type = kConj,
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .infer = InferLike<kX, kOut>,
    .kernels = {{DType::kComplex64, Conj<std::complex<float>>},
                {DType::kComplex128, Conj<std::complex<double>>},
                {DType::kFloat32, Conj<float>},
                {DType::kFloat64, Conj<double>},
                {DType::kInt32, Conj<int32_t>},
                {DType::kInt64, Conj<int64_t>}},
    .inplace = {{kX, kOut}},
    .gradient = {.make = MakeInverse<kConj>},
});
INTERP_REGISTER_OP(OpDef{
    .type = kAsReal,
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .infer_dtype = InferRealDType,
    .infer = InferAsReal,
    .kernels = {{DType::kComplex64, CopyParts}, {DType::kComplex128, CopyParts}},
    .gradient = {.make = MakeInverse<kAsComplex>},
});
INTERP_REGISTER_OP(OpDef{
    .type = kAsComplex,
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .infer_dtype = InferComplexDType,
    .infer = InferAsComplex,
    .kernels = {{DType::kFloat32, CopyParts}, {DType::kFloat64, CopyParts}},
    .gradient = {.make = MakeInverse<kAsReal>},
});

}  // namespace
}  // namespace interp
