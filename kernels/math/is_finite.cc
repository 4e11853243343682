// isfinite_v2, isinf_v2, isnan_v2: Out[i] is bool. The older isinf, isnan: Out is one bool, whether
// any element is so; isfinite: whether all are.
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
  def.infer = InferUnaryWithoutLod;
  def.inplace = {};
  def.gradient = {.none = true};
  return def;
}

// Whether Op gives `wanted` for any element.
template <typename Op, bool wanted, typename T>
bool Any(const Tensor& x) {
  bool any = false;
  for (int64_t i = 0; i < x.numel(); ++i) any |= Op()(x.data<T>()[i]) == wanted;
  return any;
}

template <typename Op, typename T>
absl::Status IsAny(KernelContext& ctx) {
  *ctx.output(unary::kOut).mutable_data<bool>() = Any<Op, true, T>(ctx.input(unary::kX));
  return absl::OkStatus();
}

template <typename Op, typename T>
absl::Status AreAll(KernelContext& ctx) {
  *ctx.output(unary::kOut).mutable_data<bool>() = !Any<Op, false, T>(ctx.input(unary::kX));
  return absl::OkStatus();
}

template <typename Op>
OpDef OneBoolDef(absl::string_view type, std::vector<KernelDef> kernels) {
  OpDef def = ClassifyDef<Op>(type);
  def.infer = [](InferContext& ctx) {
    ctx.SetShape(unary::kOut, {1});
    return absl::OkStatus();
  };
  def.layout = LayoutRule::kPlain;
  def.kernels = std::move(kernels);
  return def;
}

template <typename Op>
OpDef IsAnyDef(absl::string_view type) {
  return OneBoolDef<Op>(type, {{DType::kFloat32, IsAny<Op, float>},
                               {DType::kFloat64, IsAny<Op, double>},
                               {DType::kInt32, IsAny<Op, int32_t>},
                               {DType::kInt64, IsAny<Op, int64_t>}});
}

template <typename Op>
OpDef AreAllDef(absl::string_view type) {
  return OneBoolDef<Op>(type, {{DType::kFloat32, AreAll<Op, float>},
                               {DType::kFloat64, AreAll<Op, double>},
                               {DType::kInt32, AreAll<Op, int32_t>},
                               {DType::kInt64, AreAll<Op, int64_t>}});
}

INTERP_REGISTER_OP(ClassifyDef<IsFinite>("isfinite_v2"));
INTERP_REGISTER_OP(ClassifyDef<IsInf>("isinf_v2"));
INTERP_REGISTER_OP(ClassifyDef<IsNan>("isnan_v2"));
INTERP_REGISTER_OP(IsAnyDef<IsInf>("isinf"));
INTERP_REGISTER_OP(IsAnyDef<IsNan>("isnan"));
INTERP_REGISTER_OP(AreAllDef<IsFinite>("isfinite"));

}  // namespace
}  // namespace interp
