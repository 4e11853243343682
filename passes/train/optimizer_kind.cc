#include "passes/train/optimizer_kind.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/near_names.h"
#include "passes/train/learning_rate.h"

namespace interp {
namespace {

OptimizerOption Rate(double fallback) { return {"learning_rate", fallback}; }
OptimizerOption Beta1() { return {"beta1", 0.9, "beta1", OptionForm::kDecay}; }
OptimizerOption Beta2() { return {"beta2", 0.999, "beta2", OptionForm::kDecay}; }
OptimizerOption Epsilon(double fallback) { return {"epsilon", fallback, "epsilon"}; }

std::vector<OptimizerState> AdamStates() {
  return {{"Moment1", "Moment1Out", "moment1"},
          {"Moment2", "Moment2Out", "moment2"},
          {"Beta1Pow", "Beta1PowOut", "beta1_pow_acc", "beta1", /*scalar=*/true},
          {"Beta2Pow", "Beta2PowOut", "beta2_pow_acc", "beta2", /*scalar=*/true}};
}

// Defaults are those of the constructors of Paddle 2.6; of fluid's where that has no such class.

// One rate for all elements.
std::vector<OptimizerKind> KindsOfOneRate() {
  return {
      {.type = "sgd", .options = {Rate(0.001)}, .states = {}, .multi_precision = true},
      {.type = "momentum",
       .options = {Rate(0.001),
                   {"momentum", 0.9, "mu"},
                   {"use_nesterov", 0, "use_nesterov", OptionForm::kFlag},
                   {"rescale_grad", 1, "rescale_grad"}},
       .states = {{"Velocity", "VelocityOut", "velocity"}},
       .multi_precision = true},
      {.type = "lars_momentum",
       .options = {Rate(kRequiredOption),
                   {"momentum", kRequiredOption, "mu"},
                   {"lars_coeff", 0.001, "lars_coeff"},
                   {"lars_weight_decay", 0.0005, "lars_weight_decay"},
                   Epsilon(0),
                   {"rescale_grad", 1, "rescale_grad"}},
       .states = {{"Velocity", "VelocityOut", "velocity"}}},
      {.type = "dpsgd",
       .options = {Rate(0.001),
                   {"clip", 0.9, "clip"},
                   {"batch_size", 0.999, "batch_size"},
                   {"sigma", 1e-8, "sigma"}},
       .states = {}},
  };
}

// A rate for each element, from its gradients so far.
std::vector<OptimizerKind> AdaptiveKinds() {
  return {
      {.type = "adagrad",
       .options = {Rate(kRequiredOption), Epsilon(1e-6), {"initial_accumulator_value", 0}},
       .states = {{"Moment", "MomentOut", "moment", "initial_accumulator_value"}}},
      {.type = "decayed_adagrad",
       .options = {Rate(kRequiredOption), {"decay", 0.95, "decay"}, Epsilon(1e-6)},
       .states = {{"Moment", "MomentOut", "moment"}}},
      {.type = "adadelta",
       .options = {Rate(0.001), Epsilon(1e-6), {"rho", 0.95, "rho"}},
       .states = {{"AvgSquaredGrad", "AvgSquaredGradOut", "_avg_squared_grad"},
                  {"AvgSquaredUpdate", "AvgSquaredUpdateOut", "_avg_squared_update"}}},
      {.type = "rmsprop",
       .options = {Rate(kRequiredOption),
                   {"rho", 0.95, "decay"},
                   Epsilon(1e-6),
                   {"momentum", 0, "momentum"},
                   {"centered", 0, "centered", OptionForm::kFlag}},
       .states = {{"Moment", "MomentOut", "momentum"},
                  {"MeanSquare", "MeanSquareOut", "mean_square"},
                  {"MeanGrad", "MeanGradOut", "mean_grad"}}},
      {.type = "ftrl",
       .options = {Rate(kRequiredOption),
                   {"l1", 0, "l1"},
                   {"l2", 0, "l2"},
                   {"lr_power", -0.5, "lr_power"}},
       .states = {{"SquaredAccumulator", "SquaredAccumOut", "squared"},
                  {"LinearAccumulator", "LinearAccumOut", "linear"}}},
  };
}

std::vector<OptimizerKind> KindsLikeAdam() {
  return {
      {.type = "adam",
       .options = {Rate(0.001),
                   Beta1(),
                   Beta2(),
                   Epsilon(1e-8),
                   {"lazy_mode", 0, "lazy_mode", OptionForm::kFlag}},
       .states = AdamStates(),
       .multi_precision = true},
      {.type = "adamw",
       .options = {Rate(0.001),
                   Beta1(),
                   Beta2(),
                   Epsilon(1e-8),
                   {"weight_decay", 0.01, "coeff"},
                   {"lr_ratio", 1, "lr_ratio"},
                   {"lazy_mode", 0, "lazy_mode", OptionForm::kFlag}},
       .states = AdamStates(),
       .multi_precision = true,
       .own_decay = true},
      {.type = "adamax",
       .options = {Rate(0.001), Beta1(), Beta2(), Epsilon(1e-8)},
       .states = {{"Moment", "MomentOut", "moment"},
                  {"InfNorm", "InfNormOut", "inf_norm"},
                  {"Beta1Pow", "", "beta1_pow_acc", "beta1", /*scalar=*/true}}},
      {.type = "lamb",
       .options = {Rate(0.001),
                   {"lamb_weight_decay", 0.01, "weight_decay"},
                   Beta1(),
                   Beta2(),
                   Epsilon(1e-6),
                   {"always_adapt", 0, "always_adapt", OptionForm::kFlag}},
       .states = AdamStates(),
       .multi_precision = true,
       .own_decay = true},
  };
}

std::vector<OptimizerKind> AllKinds() {
  std::vector<OptimizerKind> all = KindsOfOneRate();
  for (const auto& kinds : {AdaptiveKinds(), KindsLikeAdam()}) {
    all.insert(all.end(), kinds.begin(), kinds.end());
  }
  return all;
}

const std::vector<OptimizerKind>& Kinds() {
  static const auto* const kKinds = new std::vector<OptimizerKind>(AllKinds());
  return *kKinds;
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

// All options but lr_schedule.
absl::StatusOr<std::vector<OptimizerOption>> KnownOptions(const OptimizerValues& values) {
  std::vector<OptimizerOption> known = values.kind->options;
  if (!values.kind->own_decay) known.push_back({"weight_decay", kAbsentOption});
  for (const absl::string_view name :
       {"l1_decay", "grad_clip_value", "grad_clip_norm", "grad_clip_global_norm"}) {
    known.push_back({name, kAbsentOption});
  }
  if (values.kind->multi_precision) {
    known.push_back({"multi_precision", 0, "multi_precision", OptionForm::kFlag});
  }
  INTERP_ASSIGN_OR_RETURN(const std::vector<OptimizerOption> schedule,
                          ScheduleOptions(values.schedule));
  known.insert(known.end(), schedule.begin(), schedule.end());
  return known;
}

absl::StatusOr<double> ReadNumber(absl::string_view name, absl::string_view text) {
  double number = 0;
  if (absl::SimpleAtod(text, &number) && std::isfinite(number)) return number;
  return InvalidArgument("option '", name, "' is '", text, "', expected a number");
}

// From 1 on the mean would grow without bound or stay what it was at first.
absl::Status CheckDecay(absl::string_view name, absl::string_view text, double number) {
  if (number >= 0 && number < 1) return absl::OkStatus();
  return InvalidArgument("option '", name, "' is '", text,
                         "', expected a number from 0 on and below 1");
}

absl::Status ReadValue(const OptimizerOption& option, const std::string& text,
                       OptimizerValues& values) {
  const std::string name(option.name);
  if (values.Has(name)) return InvalidArgument("option '", name, "' is given twice");
  bool flag = false;
  switch (option.form) {
    case OptionForm::kFlag:
      if (!absl::SimpleAtob(text, &flag)) {
        return InvalidArgument("option '", name, "' is '", text, "', expected true or false");
      }
      values.numbers[name] = flag ? 1 : 0;
      return absl::OkStatus();
    case OptionForm::kList:
      for (const absl::string_view part : absl::StrSplit(text, ';')) {
        INTERP_ASSIGN_OR_RETURN(const double number, ReadNumber(name, part));
        values.lists[name].push_back(number);
      }
      return absl::OkStatus();
    default:
      INTERP_ASSIGN_OR_RETURN(values.numbers[name], ReadNumber(name, text));
      if (option.form != OptionForm::kDecay) return absl::OkStatus();
      return CheckDecay(name, text, values.numbers[name]);
  }
}

absl::Status UnknownOption(const std::vector<OptimizerOption>& options, absl::string_view type,
                           absl::string_view name) {
  std::vector<absl::string_view> known = {"lr_schedule"};
  for (const OptimizerOption& option : options) known.push_back(option.name);
  return InvalidArgument("optimizer '", type, "' has no option '", name, "'",
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

absl::Status ReadSchedule(const OptimizerSpec& spec, OptimizerValues& values) {
  for (const auto& [name, text] : spec.options) {
    if (name != "lr_schedule") continue;
    if (text.empty()) return InvalidArgument("option 'lr_schedule' is empty");
    if (!values.schedule.empty()) return InvalidArgument("option 'lr_schedule' is given twice");
    values.schedule = text;
  }
  return absl::OkStatus();
}

absl::Status FillIn(const std::vector<OptimizerOption>& options, OptimizerValues& values) {
  for (const OptimizerOption& option : options) {
    if (option.fallback == kAbsentOption || values.Has(option.name)) continue;
    if (option.fallback == kRequiredOption) {
      return InvalidArgument("option '", option.name, "' is missing");
    }
    values.numbers.emplace(option.name, option.fallback);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<OptimizerValues> ReadOptimizer(const OptimizerSpec& spec) {
  OptimizerValues values;
  INTERP_ASSIGN_OR_RETURN(values.kind, FindKind(spec.type));
  INTERP_RETURN_IF_ERROR(ReadSchedule(spec, values));
  INTERP_ASSIGN_OR_RETURN(const std::vector<OptimizerOption> options, KnownOptions(values));
  for (const auto& [name, text] : spec.options) {
    if (name == "lr_schedule") continue;
    const auto found = std::find_if(
        options.begin(), options.end(),
        [&, &wanted = name](const OptimizerOption& option) { return option.name == wanted; });
    if (found == options.end()) return UnknownOption(options, spec.type, name);
    INTERP_RETURN_IF_ERROR(ReadValue(*found, text, values));
  }
  // Its values are the rates.
  if (values.schedule == "piecewise") values.numbers.emplace("learning_rate", 0);
  INTERP_RETURN_IF_ERROR(
      Annotate(FillIn(options, values), absl::StrCat("optimizer '", spec.type, "'")));
  INTERP_RETURN_IF_ERROR(CheckTogether(values));
  INTERP_RETURN_IF_ERROR(CheckSchedule(values));
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
