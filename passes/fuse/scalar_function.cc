#include "passes/fuse/scalar_function.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "core/attr_reader.h"
#include "core/edit_op.h"
#include "core/fused_forms.h"
#include "passes/op_inputs.h"

namespace interp {
namespace {

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double Clip(double x, double low, double high) { return std::min(std::max(x, low), high); }

double Softplus(double x, double beta, double threshold) {
  return x * beta > threshold ? x : std::log1p(std::exp(x * beta)) / beta;
}

using Parameters = ElementFunction::Parameters;

struct Function {
  absl::string_view type;
  Parameters (*read)(AttrReader& attrs);
  double (*apply)(double x, const Parameters& p);
  bool has_kinks = false;
};

Parameters ReadNone(AttrReader&) { return {}; }

constexpr Function kFunctions[] = {
    {"scale",
     [](AttrReader& attrs) {
       const double scale = attrs.Float("scale", 1);
       const double bias = attrs.Float("bias", 0);
       return Parameters{scale, attrs.Bool("bias_after_scale", true) ? bias : bias * scale};
     },
     [](double x, const Parameters& p) { return x * p[0] + p[1]; }},
    {"pow", [](AttrReader& attrs) { return Parameters{attrs.Float("factor", 1)}; },
     [](double x, const Parameters& p) { return std::pow(x, p[0]); }},
    {"square", ReadNone, [](double x, const Parameters&) { return x * x; }},
    {"exp", ReadNone, [](double x, const Parameters&) { return std::exp(x); }},
    {"log", ReadNone, [](double x, const Parameters&) { return std::log(x); }},
    {"log1p", ReadNone, [](double x, const Parameters&) { return std::log1p(x); }},
    {"erf", ReadNone, [](double x, const Parameters&) { return std::erf(x); }},
    {"tanh", ReadNone, [](double x, const Parameters&) { return std::tanh(x); }},
    {"sigmoid", ReadNone, [](double x, const Parameters&) { return Sigmoid(x); }},
    {"relu", ReadNone, [](double x, const Parameters&) { return std::max(x, 0.0); },
     /*has_kinks=*/true},
    {"relu6", [](AttrReader& attrs) { return Parameters{attrs.Float("threshold", 6)}; },
     [](double x, const Parameters& p) { return Clip(x, 0, p[0]); }, /*has_kinks=*/true},
    {"clip",
     [](AttrReader& attrs) {
       return Parameters{attrs.Float("min", 0), attrs.Float("max", 0)};
     },
     [](double x, const Parameters& p) { return Clip(x, p[0], p[1]); }, /*has_kinks=*/true},
    {"hard_sigmoid",
     [](AttrReader& attrs) {
       return Parameters{attrs.Float("slope", 0.2F), attrs.Float("offset", 0.5F)};
     },
     [](double x, const Parameters& p) { return Clip(x * p[0] + p[1], 0, 1); },
     /*has_kinks=*/true},
    {"softplus",
     [](AttrReader& attrs) {
       return Parameters{attrs.Float("beta", 1), attrs.Float("threshold", 20)};
     },
     [](double x, const Parameters& p) { return Softplus(x, p[0], p[1]); }, /*has_kinks=*/true},
};

double Gelu(double x) { return x * (0.5 + 0.5 * std::erf(x / std::numbers::sqrt2)); }

double GeluByTanh(double x) {
  const double inner = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  return x * (0.5 + 0.5 * std::tanh(inner));
}

double HardSwish(double x) { return x * Clip(x + 3, 0, 6) / 6; }
double HardSigmoid(double x) { return Clip(x + 3, 0, 6) / 6; }
double Mish(double x) { return x * std::tanh(Softplus(x, 1, 20)); }

bool AreNear(double a, double b, bool exact) {
  return std::abs(a - b) <= (exact ? 1e-13 : 1e-6) * (1 + std::abs(b));
}

// Points `step` apart; the first ones tell most functions apart.
std::vector<double> PointsApart(double step) {
  std::vector<double> points = {1, -24, 24, 0};
  for (double x = -24; x <= 24; x += step) points.push_back(x);
  for (double x = 27; x < 1e30; x *= 2.1) points.insert(points.end(), {x, -x});
  return points;
}

const std::vector<double>& Points(bool many) {
  static const auto& few = *new std::vector<double>(PointsApart(0.37));
  static const auto& all = *new std::vector<double>(PointsApart(0.01));
  return many ? all : few;
}

// How functions are compared.
struct Comparison {
  bool many = false;
  bool exact = false;
};

using NumberFunction = absl::FunctionRef<double(double)>;

bool AreSame(NumberFunction f, NumberFunction known, Comparison how) {
  return absl::c_all_of(Points(how.many),
                        [&](double x) { return AreNear(f(x), known(x), how.exact); });
}

// x times the sigmoid of beta x: the beta that the value at 1 tells.
std::optional<KnownFunction> RecognizeSwish(NumberFunction f, Comparison how) {
  const double gate = f(1);
  if (!(gate > 0 && gate < 1) || gate == 0.5) return std::nullopt;
  auto beta = static_cast<float>(std::log(gate / (1 - gate)));
  const float rounded = std::round(beta);
  if (std::abs(beta - rounded) < 1e-6F) beta = rounded;
  const auto swish = [beta](double x) { return x * Sigmoid(beta * x); };
  if (!AreSame(f, swish, how)) return std::nullopt;
  return KnownFunction{"swish", {{"beta", beta}}};
}

}  // namespace

std::optional<ElementFunction> FunctionOf(const Op& op) {
  const auto* const function =
      std::find_if(std::begin(kFunctions), std::end(kFunctions),
                   [&](const Function& known) { return known.type == op.type; });
  if (function == std::end(kFunctions) || !OnlyInput(op).has_value()) return std::nullopt;
  AttrReader attrs(op);
  const ElementFunction made = {function->apply, function->read(attrs), function->has_kinks};
  return attrs.status().ok() && CheckNothingFused(op).ok() ? std::optional(made) : std::nullopt;
}

BinaryFunction BinaryFunctionOf(const Op& op) {
  if (op.type == "elementwise_add") return [](double x, double y) { return x + y; };
  if (op.type == "elementwise_sub") return [](double x, double y) { return x - y; };
  if (op.type == "elementwise_mul") return [](double x, double y) { return x * y; };
  if (op.type == "elementwise_div") return [](double x, double y) { return x / y; };
  return nullptr;
}

std::optional<double> ConstantOf(const Op& op, DType dtype) {
  const auto given = [](const Slot& slot) { return !slot.args.empty(); };
  if (op.type != "fill_constant" || absl::c_any_of(op.inputs, given)) return std::nullopt;
  AttrReader attrs(op);
  const std::vector<int64_t> shape = attrs.Ints("shape");
  const bool one = shape.empty() || (shape.size() == 1 && shape[0] == 1);
  double value = attrs.Float("value", 0);
  const std::string text = attrs.String("str_value", "");
  const bool known = text.empty() || absl::SimpleAtod(text, &value);
  const bool fits = one && known && attrs.Type("dtype", DType::kFloat32) == dtype;
  return fits && attrs.status().ok() ? std::optional(value) : std::nullopt;
}

std::optional<KnownFunction> RecognizeActivation(NumberFunction f, bool has_kinks, bool exact) {
  const Comparison how = {.many = has_kinks, .exact = exact};
  if (AreSame(f, HardSwish, how)) {
    return KnownFunction{"hard_swish", {{"threshold", 6.0F}, {"scale", 6.0F}, {"offset", 3.0F}}};
  }
  if (AreSame(f, HardSigmoid, how)) {
    return KnownFunction{"hard_sigmoid", {{"slope", 1.0F / 6}, {"offset", 0.5F}}};
  }
  if (AreSame(f, Gelu, how)) return KnownFunction{"gelu", {{"approximate", false}}};
  if (AreSame(f, GeluByTanh, how)) return KnownFunction{"gelu", {{"approximate", true}}};
  if (AreSame(f, Mish, how)) return KnownFunction{"mish", {{"threshold", 20.0F}}};
  return RecognizeSwish(f, how);
}

}  // namespace interp
