#include "passes/optimizer_kind.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/near_names.h"

namespace interp {
namespace {

constexpr double kRequired = std::numeric_limits<double>::quiet_NaN();

OptimizerOption Rate(double fallback) { return {"learning_rate", fallback}; }
OptimizerOption Beta1() { return {"beta1", 0.9, "beta1"}; }
OptimizerOption Beta2() { return {"beta2", 0.999, "beta2"}; }
OptimizerOption Epsilon(double fallback) { return {"epsilon", fallback, "epsilon"}; }

std::vector<OptimizerState> AdamStates() {
  return {{"Moment1", "Moment1Out", "moment1"},
          {"Moment2", "Moment2Out", "moment2"},
          {"Beta1Pow", "Beta1PowOut", "beta1_pow_acc", "beta1", /*scalar=*/true},
          {"Beta2Pow", "Beta2PowOut", "beta2_pow_acc", "beta2", /*scalar=*/true}};
}

// Defaults are those of the constructors of Paddle 2.6; of fluid's where that has no such class.
std::vector<OptimizerKind> MakeKinds() {
  return {
      {.type = "sgd", .options = {Rate(0.001)}, .states = {}, .multi_precision = true},
      {.type = "momentum",
       .options = {Rate(0.001),
                   {"momentum", 0.9, "mu"},
                   {"use_nesterov", 0, "use_nesterov", /*flag=*/true},
                   {"rescale_grad", 1, "rescale_grad"}},
       .states = {{"Velocity", "VelocityOut", "velocity"}},
       .multi_precision = true},
      {.type = "lars_momentum",
       .options = {Rate(kRequired),
                   {"momentum", kRequired, "mu"},
                   {"lars_coeff", 0.001, "lars_coeff"},
                   {"lars_weight_decay", 0.0005, "lars_weight_decay"},
                   Epsilon(0),
                   {"rescale_grad", 1, "rescale_grad"}},
       .states = {{"Velocity", "VelocityOut", "velocity"}}},
      {.type = "adagrad",
       .options = {Rate(kRequired), Epsilon(1e-6), {"initial_accumulator_value", 0}},
       .states = {{"Moment", "MomentOut", "moment", "initial_accumulator_value"}}},
      {.type = "decayed_adagrad",
       .options = {Rate(kRequired), {"decay", 0.95, "decay"}, Epsilon(1e-6)},
       .states = {{"Moment", "MomentOut", "moment"}}},
      {.type = "adam",
       .options = {Rate(0.001),
                   Beta1(),
                   Beta2(),
                   Epsilon(1e-8),
                   {"lazy_mode", 0, "lazy_mode", /*flag=*/true}},
       .states = AdamStates(),
       .multi_precision = true},
      {.type = "adamw",
       .options = {Rate(0.001),
                   Beta1(),
                   Beta2(),
                   Epsilon(1e-8),
                   {"weight_decay", 0.01, "coeff"},
                   {"lr_ratio", 1, "lr_ratio"},
                   {"lazy_mode", 0, "lazy_mode", /*flag=*/true}},
       .states = AdamStates(),
       .multi_precision = true,
       .own_decay = true},
      {.type = "adamax",
       .options = {Rate(0.001), Beta1(), Beta2(), Epsilon(1e-8)},
       .states = {{"Moment", "MomentOut", "moment"},
                  {"InfNorm", "InfNormOut", "inf_norm"},
                  {"Beta1Pow", "", "beta1_pow_acc", "beta1", /*scalar=*/true}}},
      {.type = "adadelta",
       .options = {Rate(0.001), Epsilon(1e-6), {"rho", 0.95, "rho"}},
       .states = {{"AvgSquaredGrad", "AvgSquaredGradOut", "_avg_squared_grad"},
                  {"AvgSquaredUpdate", "AvgSquaredUpdateOut", "_avg_squared_update"}}},
      {.type = "rmsprop",
       .options = {Rate(kRequired),
                   {"rho", 0.95, "decay"},
                   Epsilon(1e-6),
                   {"momentum", 0, "momentum"},
                   {"centered", 0, "centered", /*flag=*/true}},
       .states = {{"Moment", "MomentOut", "momentum"},
                  {"MeanSquare", "MeanSquareOut", "mean_square"},
                  {"MeanGrad", "MeanGradOut", "mean_grad"}}},
      {.type = "ftrl",
       .options =
           {Rate(kRequired), {"l1", 0, "l1"}, {"l2", 0, "l2"}, {"lr_power", -0.5, "lr_power"}},
       .states = {{"SquaredAccumulator", "SquaredAccumOut", "squared"},
                  {"LinearAccumulator", "LinearAccumOut", "linear"}}},
      {.type = "lamb",
       .options = {Rate(0.001),
                   {"lamb_weight_decay", 0.01, "weight_decay"},
                   Beta1(),
                   Beta2(),
                   Epsilon(1e-6),
                   {"always_adapt", 0, "always_adapt", /*flag=*/true}},
       .states = AdamStates(),
       .multi_precision = true,
       .own_decay = true},
      {.type = "dpsgd",
       .options = {Rate(0.001),
                   {"clip", 0.9, "clip"},
                   {"batch_size", 0.999, "batch_size"},
                   {"sigma", 1e-8, "sigma"}},
       .states = {}},
  };
}

const std::vector<OptimizerKind>& Kinds() {
  static const auto* const kinds = new std::vector<OptimizerKind>(MakeKinds());
  return *kinds;
}

absl::StatusOr<const OptimizerKind*> FindKind(absl::string_view type) {
  std::vector<absl::string_view> known;
  for (const OptimizerKind& kind : Kinds()) {
    if (kind.type == type) return &kind;
    known.push_back(kind.type);
  }
  return InvalidArgument("no optimizer '", type, "'", NearNamesHint(type, known),
                         "; there are: ", absl::StrJoin(known, " "));
}

// All options of an optimizer that are numbers. Those that are absent unless given have the
// fallback NaN and `optional`.
struct KnownOption {
  OptimizerOption option;
  bool optional = false;
};
std::vector<KnownOption> KnownOptions(const OptimizerKind& kind) {
  std::vector<KnownOption> known;
  for (const OptimizerOption& option : kind.options) known.push_back({option});
  if (!kind.own_decay) known.push_back({{"weight_decay"}, /*optional=*/true});
  for (const absl::string_view name :
       {"l1_decay", "grad_clip_value", "grad_clip_norm", "grad_clip_global_norm"}) {
    known.push_back({{name}, /*optional=*/true});
  }
  if (kind.multi_precision) {
    known.push_back({{"multi_precision", 0, "multi_precision", /*flag=*/true}});
  }
  return known;
}

absl::StatusOr<double> ReadNumber(const OptimizerOption& option, const std::string& text) {
  double number = 0;
  bool flag = false;
  if (option.flag) {
    if (absl::SimpleAtob(text, &flag)) return flag ? 1.0 : 0.0;
    return InvalidArgument("option '", option.name, "' is '", text, "', expected true or false");
  }
  if (absl::SimpleAtod(text, &number) && std::isfinite(number)) return number;
  return InvalidArgument("option '", option.name, "' is '", text, "', expected a number");
}

absl::Status UnknownOption(const OptimizerKind& kind, absl::string_view name) {
  std::vector<absl::string_view> known;
  for (const KnownOption& option : KnownOptions(kind)) known.push_back(option.option.name);
  return InvalidArgument("optimizer '", kind.type, "' has no option '", name, "'",
                         NearNamesHint(name, known), "; there are: ", absl::StrJoin(known, " "));
}

absl::Status CheckTogether(const OptimizerValues& values) {
  std::vector<absl::string_view> clips;
  for (const absl::string_view name :
       {"grad_clip_value", "grad_clip_norm", "grad_clip_global_norm"}) {
    if (!values.Has(name)) continue;
    clips.push_back(name);
    if (values[name] > 0) continue;
    return InvalidArgument("option '", name, "' is ", values[name], ", expected more than 0");
  }
  if (clips.size() > 1) {
    return InvalidArgument("options '", clips[0], "' and '", clips[1], "' are given, expected one");
  }
  if (values.Has("weight_decay") && values.Has("l1_decay")) {
    return InvalidArgument("options 'weight_decay' and 'l1_decay' are given, expected one");
  }
  return absl::OkStatus();
}

absl::Status ReadOption(const std::string& name, const std::string& text, OptimizerValues& values) {
  const std::vector<KnownOption> known = KnownOptions(*values.kind);
  const auto found = std::find_if(known.begin(), known.end(), [&](const KnownOption& option) {
    return option.option.name == name;
  });
  if (found == known.end()) return UnknownOption(*values.kind, name);
  INTERP_ASSIGN_OR_RETURN(const double number, ReadNumber(found->option, text));
  if (values.numbers.emplace(name, number).second) return absl::OkStatus();
  return InvalidArgument("option '", name, "' is given twice");
}

}  // namespace

absl::StatusOr<OptimizerValues> ReadOptimizer(const OptimizerSpec& spec) {
  OptimizerValues values;
  INTERP_ASSIGN_OR_RETURN(values.kind, FindKind(spec.type));
  for (const auto& [name, text] : spec.options) {
    INTERP_RETURN_IF_ERROR(ReadOption(name, text, values));
  }
  for (const KnownOption& known : KnownOptions(*values.kind)) {
    if (known.optional || values.Has(known.option.name)) continue;
    if (std::isnan(known.option.fallback)) {
      return InvalidArgument("optimizer '", spec.type, "' needs option '", known.option.name, "'");
    }
    values.numbers.emplace(known.option.name, known.option.fallback);
  }
  INTERP_RETURN_IF_ERROR(CheckTogether(values));
  return values;
}

absl::StatusOr<OptimizerSpec> ParseOptimizerSpec(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> halves =
      absl::StrSplit(text, absl::MaxSplits(':', 1));
  OptimizerSpec spec{.type = std::string(absl::StripAsciiWhitespace(halves.first)), .options = {}};
  for (const absl::string_view part : absl::StrSplit(halves.second, ',', absl::SkipWhitespace())) {
    const std::vector<absl::string_view> sides = absl::StrSplit(part, absl::MaxSplits('=', 1));
    if (sides.size() != 2) {
      return InvalidArgument("optimizer option '", part, "', expected NAME=VALUE");
    }
    spec.options.emplace_back(absl::StripAsciiWhitespace(sides[0]),
                              absl::StripAsciiWhitespace(sides[1]));
  }
  INTERP_RETURN_IF_ERROR(ReadOptimizer(spec).status());
  return spec;
}

}  // namespace interp
