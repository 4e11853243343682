// isfinite_v2, isinf_v2, isnan_v2: Out[i] is bool. The older isinf, isnan: Out is one bool, whether
// any element is so.
#include <cmath>
#include <limits>

#include "kernels/math/unary.h"

namespace interp {
namespace {

struct IsFinite {
  template <typename T>
  bool operator()(T x) const {
    return std::is_integral_v<T> || std::abs(x) <= std::numeric_limits<T>::max();
  }
};

struct IsInf {
  template <typename T>
  bool operator()(T x) const {
    return !std::is_integral_v<T> && std::abs(x) > std::numeric_limits<T>::max();
  }
};

struct IsNan {
  template <typename T>
  bool operator()(T x) const {
    return x != x;
  }
};

template <typename Op, typename... Ts>
std::vector<KernelDef> Rows() {
  return {{DTypeOf<Ts>, Unary<Op, Ts, bool>}...};
}

template <typename Op>
OpDef ClassifyDef(absl::string_view type) {
  OpDef def = PlainUnaryDef(type, Rows<Op, float, double, float16, int32_t, int64_t>());
  def.infer_dtype = [](DTypeContext& ctx) { ctx.Set(unary::kOut, DType::kBool); };
  def.inplace = {};
  def.gradient = {.none = true};
  return def;
}

template <typename Op, typename T>
absl::Status Any(KernelContext& ctx) {
  const T* const x = ctx.input(unary::kX).data<T>();
  const int64_t count = ctx.input(unary::kX).numel();
  bool any = false;
  for (int64_t i = 0; i < count; ++i) any |= Op()(static_cast<ComputeType<T>>(x[i]));
  *ctx.output(unary::kOut).mutable_data<bool>() = any;
  return absl::OkStatus();
}

template <typename Op>
OpDef AnyDef(absl::string_view type) {
  OpDef def = ClassifyDef<Op>(type);
  def.infer = [](InferContext& ctx) {
    ctx.SetShape(unary::kOut, {1});
    return absl::OkStatus();
  };
  def.layout = LayoutRule::kPlain;
  def.kernels = {{DType::kFloat32, Any<Op, float>}, {DType::kFloat64, Any<Op, double>}};
  return def;
}

INTERP_REGISTER_OP(ClassifyDef<IsFinite>("isfinite_v2"));
INTERP_REGISTER_OP(ClassifyDef<IsInf>("isinf_v2"));
INTERP_REGISTER_OP(ClassifyDef<IsNan>("isnan_v2"));
INTERP_REGISTER_OP(AnyDef<IsInf>("isinf"));
INTERP_REGISTER_OP(AnyDef<IsNan>("isnan"));

}  // namespace
}  // namespace interp
