#include "core/layers/initializer.h"

#include <cmath>
#include <utility>

#include "core/base/number_text.h"
#include "core/edit_op.h"
#include "core/op_role.h"

namespace interp {
namespace {

using Dims = std::vector<int64_t>;

struct Fans {
  double in = 1;
  double out = 1;
};

// Paddle's VarInitializer._compute_fans: [in, out] for matrices, [out, in, ...] for filters.
Fans FansOf(const Dims& dims) {
  if (dims.empty()) return {};
  const auto first = static_cast<double>(dims[0]);
  if (dims.size() == 1) return {first, first};
  const auto second = static_cast<double>(dims[1]);
  if (dims.size() == 2) return {first, second};
  double receptive = 1;
  for (size_t i = 2; i < dims.size(); ++i) receptive *= static_cast<double>(dims[i]);
  return {second * receptive, first * receptive};
}

Op OpWith(const char* type, std::vector<Attr> attrs) {
  Op op;
  op.type = type;
  op.attrs = std::move(attrs);
  return op;
}

Op FillOp(float value, const Dims& dims) {
  return OpWith("fill_constant", {{"value", value},
                                  {"str_value", FloatText(value)},
                                  {"force_cpu", false},
                                  {"place_type", -1},
                                  {"shape", dims}});
}

Op UniformOp(double low, double high, const Dims& dims) {
  return OpWith("uniform_random", {{"min", static_cast<float>(low)},
                                   {"max", static_cast<float>(high)},
                                   {"seed", 0},
                                   {"diag_num", 0},
                                   {"diag_step", 0},
                                   {"diag_val", 1.0F},
                                   {"shape", dims}});
}

Op NormalOp(double mean, double deviation, const Dims& dims) {
  return OpWith("gaussian_random", {{"mean", static_cast<float>(mean)},
                                    {"std", static_cast<float>(deviation)},
                                    {"seed", 0},
                                    {"shape", dims}});
}

Op TruncatedNormalOp(const Initializer& initializer, const Dims& dims) {
  return OpWith("truncated_gaussian_random",
                {{"mean", initializer.a},
                 {"std", initializer.b},
                 {"seed", 0},
                 {"shape", std::vector<int32_t>(dims.begin(), dims.end())}});
}

// A uniform distribution of deviation d reaches sqrt(3) d to both sides.
Op UniformOfDeviation(double deviation, const Dims& dims) {
  const double limit = std::sqrt(3.0) * deviation;
  return UniformOp(-limit, limit, dims);
}

Op OpOf(const Initializer& initializer, const Dims& dims) {
  using Kind = Initializer::Kind;
  const Fans fans = FansOf(dims);
  const double xavier = std::sqrt(2.0 / (fans.in + fans.out));
  const double kaiming = std::sqrt(2.0 / fans.in);
  switch (initializer.kind) {
    case Kind::kConstant:
      return FillOp(initializer.a, dims);
    case Kind::kUniform:
      return UniformOp(initializer.a, initializer.b, dims);
    case Kind::kNormal:
      return NormalOp(initializer.a, initializer.b, dims);
    case Kind::kTruncatedNormal:
      return TruncatedNormalOp(initializer, dims);
    case Kind::kXavierUniform:
      return UniformOfDeviation(xavier, dims);
    case Kind::kXavierNormal:
      return NormalOp(0, xavier, dims);
    case Kind::kKaimingUniform:
      return UniformOfDeviation(kaiming, dims);
    case Kind::kKaimingNormal:
      return NormalOp(0, kaiming, dims);
  }
  return {};
}

}  // namespace

Op InitializerOp(const Initializer& initializer, VarId out, DType dtype,
                 const std::vector<int64_t>& dims) {
  Op op = OpOf(initializer, dims);
  AddOutput(op, "Out", {out});
  SetAttr(op, "dtype", static_cast<int32_t>(dtype));
  SetRole(op, kForwardRole);
  return op;
}

}  // namespace interp
