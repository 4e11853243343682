// exp, expm1, log, log2, log10, log1p, erf, logit. Integers give float32 where Paddle takes them.
#include <cmath>
#include <numbers>

#include "kernels/math/activation_attrs.h"
#include "kernels/math/unary.h"
#include "kernels/util/erf_rows.h"
#include "kernels/util/vector_math.h"

namespace interp {
namespace {

struct ExpOp {
  template <typename T>
  T operator()(T x) const {
    return Exp(x);
  }
};

struct Expm1Op {
  template <typename T>
  T operator()(T x) const {
    return Expm1(x);
  }
};

struct LogOp {
  template <typename T>
  T operator()(T x) const {
    return Log(x);
  }
};

struct Log2Op {
  template <typename T>
  T operator()(T x) const {
    return Log(x) * std::numbers::log2e_v<T>;
  }
};

struct Log10Op {
  template <typename T>
  T operator()(T x) const {
    return Log(x) * std::numbers::log10e_v<T>;
  }
};

struct Log1pOp {
  template <typename T>
  T operator()(T x) const {
    return Log1p(x);
  }
};

struct ErfOp {
  template <typename T>
  T operator()(T x) const {
    return Erf(x);
  }
};

absl::Status RunErfOfFloats(KernelContext& ctx) {
  MapUnaryRows(ctx, ErfRow);
  return absl::OkStatus();
}

// log(x / (1 - x)) of x brought into [eps, 1 - eps]; without eps, NaN outside [0, 1].
struct Logit : LogitAttrs {
  template <typename T>
  T operator()(T x) const {
    const T low = static_cast<T>(eps);
    const T high = T{1} - low;
    const bool clips = eps > 0;
    x = clips && x < low ? low : x;
    x = clips && x > high ? high : x;
    return Log(x / (T{1} - x));
  }
};

// A function of floats that takes integers too.
template <typename Op>
OpDef NumberUnaryDef(absl::string_view type, UnaryGradient gradient) {
  std::vector<KernelDef> kernels = UnaryKernels<Op, float, double, float16>();
  kernels.push_back({DType::kInt32, Unary<Op, int32_t, float>});
  kernels.push_back({DType::kInt64, Unary<Op, int64_t, float>});
  OpDef def = UnaryDef<Op>(type, std::move(kernels), gradient);
  def.infer_dtype = [](DTypeContext& ctx) {
    const bool integral = ctx.kernel() == DType::kInt32 || ctx.kernel() == DType::kInt64;
    if (integral) ctx.Set(unary::kOut, DType::kFloat32);
  };
  return def;
}

INTERP_REGISTER_OP(NumberUnaryDef<ExpOp>("exp", UnaryGradient::kOfOut));
INTERP_REGISTER_OP(NumberUnaryDef<Expm1Op>("expm1", UnaryGradient::kOfOut));
INTERP_REGISTER_OP(NumberUnaryDef<LogOp>("log", UnaryGradient::kOfX));
INTERP_REGISTER_OP(NumberUnaryDef<Log2Op>("log2", UnaryGradient::kOfX));
INTERP_REGISTER_OP(NumberUnaryDef<Log10Op>("log10", UnaryGradient::kOfX));
INTERP_REGISTER_OP(NumberUnaryDef<Log1pOp>("log1p", UnaryGradient::kOfX));
INTERP_REGISTER_OP(UnaryDef<ErfOp>("erf",
                                   {{DType::kFloat32, RunErfOfFloats},
                                    {DType::kFloat64, Unary<ErfOp, double>},
                                    {DType::kFloat16, Unary<ErfOp, float16>}},
                                   UnaryGradient::kOfX));
INTERP_REGISTER_OP(FloatUnaryDef<Logit>("logit", UnaryGradient::kOfX));

}  // namespace
}  // namespace interp
