// isfinite_v2, isinf_v2, isnan_v2: Out[i] is bool.
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

INTERP_REGISTER_OP(ClassifyDef<IsFinite>("isfinite_v2"));
INTERP_REGISTER_OP(ClassifyDef<IsInf>("isinf_v2"));
INTERP_REGISTER_OP(ClassifyDef<IsNan>("isnan_v2"));

}  // namespace
}  // namespace interp
