#include "passes/scalar_function.h"

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
#include "passes/variable_view.h"

namespace interp {
namespace {

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double Clip(double x, double low, double high) { return std::min(std::max(x, low), high); }

double Softplus(double x, double beta, double threshold) {
  return x * beta > threshold ? x : std::log1p(std::exp(x * beta)) / beta;
}

double Scaled(double x, AttrReader& attrs) {
  const double scale = attrs.Float("scale", 1);
  const double bias = attrs.Float("bias", 0);
  return attrs.Bool("bias_after_scale", true) ? x * scale + bias : (x + bias) * scale;
}

struct Function {
  absl::string_view type;
  double (*apply)(double x, AttrReader& attrs);
};

constexpr Function kFunctions[] = {
    {"scale", Scaled},
    {"pow", [](double x, AttrReader& attrs) { return std::pow(x, attrs.Float("factor", 1)); }},
    {"square", [](double x, AttrReader&) { return x * x; }},
    {"exp", [](double x, AttrReader&) { return std::exp(x); }},
    {"log", [](double x, AttrReader&) { return std::log(x); }},
    {"log1p", [](double x, AttrReader&) { return std::log1p(x); }},
    {"erf", [](double x, AttrReader&) { return std::erf(x); }},
    {"tanh", [](double x, AttrReader&) { return std::tanh(x); }},
    {"sigmoid", [](double x, AttrReader&) { return Sigmoid(x); }},
    {"relu", [](double x, AttrReader&) { return std::max(x, 0.0); }},
    {"relu6", [](double x, AttrReader& attrs) { return Clip(x, 0, attrs.Float("threshold", 6)); }},
    {"clip",
     [](double x, AttrReader& attrs) {
       return Clip(x, attrs.Float("min", 0), attrs.Float("max", 0));
     }},
    {"hard_sigmoid",
     [](double x, AttrReader& attrs) {
       return Clip(x * attrs.Float("slope", 0.2F) + attrs.Float("offset", 0.5F), 0, 1);
     }},
    {"softplus",
     [](double x, AttrReader& attrs) {
       return Softplus(x, attrs.Float("beta", 1), attrs.Float("threshold", 20));
     }},
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

// The first ones tell most functions apart.
const std::vector<double>& Points() {
  static const auto& points = *new std::vector<double>([] {
    std::vector<double> made = {1, -24, 24, 0};
    for (double x = -24; x <= 24; x += 0.01) made.push_back(x);
    for (double x = 27; x < 1e30; x *= 2.1) made.insert(made.end(), {x, -x});
    return made;
  }());
  return points;
}

using NumberFunction = absl::FunctionRef<double(double)>;

bool AreSame(NumberFunction f, NumberFunction known, bool exact) {
  return absl::c_all_of(Points(), [&](double x) { return AreNear(f(x), known(x), exact); });
}

// x times the sigmoid of beta x: the beta that the value at 1 tells.
std::optional<KnownFunction> RecognizeSwish(NumberFunction f, bool exact) {
  const double gate = f(1);
  if (!(gate > 0 && gate < 1) || gate == 0.5) return std::nullopt;
  auto beta = static_cast<float>(std::log(gate / (1 - gate)));
  const float rounded = std::round(beta);
  if (std::abs(beta - rounded) < 1e-6F) beta = rounded;
  const auto swish = [beta](double x) { return x * Sigmoid(beta * x); };
  if (!AreSame(f, swish, exact)) return std::nullopt;
  return KnownFunction{"swish", {{"beta", beta}}};
}

}  // namespace

std::optional<double> ApplyFunction(const Op& op, double x) {
  const auto* const function =
      std::find_if(std::begin(kFunctions), std::end(kFunctions),
                   [&](const Function& known) { return known.type == op.type; });
  if (function == std::end(kFunctions) || !OnlyInput(op).has_value()) return std::nullopt;
  AttrReader attrs(op);
  const double value = function->apply(x, attrs);
  return attrs.status().ok() && CheckNothingFused(op).ok() ? std::optional(value) : std::nullopt;
}

std::optional<double> ApplyBinary(const Op& op, double x, double y) {
  if (op.type == "elementwise_add") return x + y;
  if (op.type == "elementwise_sub") return x - y;
  if (op.type == "elementwise_mul") return x * y;
  if (op.type == "elementwise_div") return x / y;
  return std::nullopt;
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

std::optional<KnownFunction> RecognizeActivation(NumberFunction f, bool exact) {
  if (AreSame(f, HardSwish, exact)) {
    return KnownFunction{"hard_swish", {{"threshold", 6.0F}, {"scale", 6.0F}, {"offset", 3.0F}}};
  }
  if (AreSame(f, HardSigmoid, exact)) {
    return KnownFunction{"hard_sigmoid", {{"slope", 1.0F / 6}, {"offset", 0.5F}}};
  }
  if (AreSame(f, Gelu, exact)) return KnownFunction{"gelu", {{"approximate", false}}};
  if (AreSame(f, GeluByTanh, exact)) return KnownFunction{"gelu", {{"approximate", true}}};
  if (AreSame(f, Mish, exact)) return KnownFunction{"mish", {{"threshold", 20.0F}}};
  return RecognizeSwish(f, exact);
}

}  // namespace interp
