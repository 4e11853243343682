#include "passes/train/learning_rate.h"

#include <cmath>
#include <numbers>

#include "absl/strings/str_join.h"
#include "core/base/near_names.h"
#include "core/edit_op.h"
#include "core/op_role.h"
#include "passes/make_op.h"

namespace interp {
namespace {

constexpr absl::string_view kCounter = "@LR_DECAY_COUNTER@";

// Writes the ops of one schedule. Values are variables of one float32.
class ScheduleWriter {
 public:
  ScheduleWriter(StateWriter& writer, const OptimizerValues& values)
      : writer_(writer), values_(values), rate_(values["learning_rate"]) {}

  absl::StatusOr<VarId> Run(DType dtype) {
    if (writer_.HasName(kCounter)) {
      return InvalidArgument("the program has a learning-rate schedule already: '", kCounter, "'");
    }
    Count();
    VarId rate = Scheduled();
    if (values_.Has("start_lr")) rate = WarmUp(rate);
    return dtype == DType::kFloat32 ? rate : Cast(rate, DType::kFloat32, dtype);
  }

 private:
  // The counter starts such that the first step finds 0, or 1.
  void Count() {
    const Var like{.dtype = DType::kInt64, .dims = {1}};
    const double before = values_.schedule == "noam" ? 0 : -1;
    const VarId counter = writer_.DeclareState(std::string(kCounter), like, before).id;
    Op increment = MakeUnaryOp("increment", counter, counter);
    SetAttr(increment, "step", 1.0F);
    SetRole(increment, kLearningRateRole);
    writer_.Prepend(std::move(increment));
    step_ = Cast(counter, DType::kInt64, DType::kFloat32);
  }

  VarId Scheduled() {
    const std::string& schedule = values_.schedule;
    if (schedule == "noam") return Noam();
    if (schedule == "exponential") {
      return Scale(Binary("elementwise_pow", Constant(values_["decay_rate"]), Progress()), rate_);
    }
    if (schedule == "natural_exp") {
      return Scale(Unary("exp", Scale(Progress(), -values_["decay_rate"])), rate_);
    }
    if (schedule == "inverse_time") {
      const VarId divisor = Scale(Progress(), values_["decay_rate"], 1);
      return Binary("elementwise_div", Constant(rate_), divisor);
    }
    if (schedule == "polynomial") return Polynomial();
    if (schedule == "cosine") return Cosine();
    if (schedule == "piecewise") return Piecewise();
    return Constant(rate_);
  }

  VarId Noam() {
    const VarId falling = Binary("elementwise_pow", step_, Constant(-0.5));
    const VarId rising = Scale(step_, std::pow(values_["warmup_steps"], -1.5));
    return Scale(Binary("elementwise_min", falling, rising),
                 rate_ * std::pow(values_["d_model"], -0.5));
  }

  // s / decay_steps
  VarId Progress() {
    const VarId progress = Scale(step_, 1 / values_["decay_steps"]);
    return values_["staircase"] != 0 ? Unary("floor", progress) : progress;
  }

  VarId Polynomial() {
    const double steps = values_["decay_steps"];
    const double end = values_["end_learning_rate"];
    VarId progress = -1;
    if (values_["cycle"] != 0) {
      const VarId begun = Unary("ceil", Scale(step_, 1 / steps));
      const VarId cycles = Binary("elementwise_max", begun, Constant(1));
      progress = Binary("elementwise_div", step_, Scale(cycles, steps));
    } else {
      progress = Scale(Binary("elementwise_min", step_, Constant(steps)), 1 / steps);
    }
    const VarId left =
        Binary("elementwise_pow", Scale(progress, -1, 1), Constant(values_["power"]));
    return Scale(left, rate_ - end, end);
  }

  VarId Cosine() {
    const VarId epoch = Unary("floor", Scale(step_, 1 / values_["step_each_epoch"]));
    const VarId wave = Unary("cos", Scale(epoch, std::numbers::pi / values_["epochs"]));
    return Scale(wave, rate_ / 2, rate_ / 2);
  }

  VarId Piecewise() {
    const std::vector<double>& boundaries = values_.lists.at("boundaries");
    const std::vector<double>& rates = values_.lists.at("values");
    VarId rate = Constant(rates.back());
    for (size_t i = boundaries.size(); i-- > 0;) {
      rate = Where(Before(boundaries[i]), Constant(rates[i]), rate);
    }
    return rate;
  }

  VarId WarmUp(VarId after) {
    const double start = values_["start_lr"];
    const double slope = (values_["end_lr"] - start) / values_["warmup_steps"];
    return Where(Before(values_["warmup_steps"]), Scale(step_, slope, start), after);
  }

  VarId Before(double step) { return Binary("less_than", step_, Constant(step), DType::kBool); }

  VarId Constant(double value) {
    const Var like{.dtype = DType::kFloat32, .dims = {1}};
    const VarId out = Temporary(DType::kFloat32);
    Add(FillConstant(out, like, value));
    return out;
  }
  VarId Scale(VarId x, double factor, double bias = 0) {
    const VarId out = Temporary(DType::kFloat32);
    Add(MakeScaleOp(x, out, factor, bias));
    return out;
  }
  VarId Unary(absl::string_view type, VarId x) {
    const VarId out = Temporary(DType::kFloat32);
    Add(MakeUnaryOp(type, x, out));
    return out;
  }
  VarId Binary(absl::string_view type, VarId x, VarId y, DType dtype = DType::kFloat32) {
    const VarId out = Temporary(dtype);
    Add(MakeBinaryOp(type, x, y, out));
    return out;
  }
  VarId Where(VarId condition, VarId x, VarId y) {
    const VarId out = Temporary(DType::kFloat32);
    Add(MakeOp("where", {{"Condition", {condition}}, {"X", {x}}, {"Y", {y}}}, {{"Out", {out}}}));
    return out;
  }
  VarId Cast(VarId x, DType from, DType to) {
    const VarId out = Temporary(to);
    Add(MakeCastOp(x, out, from, to));
    return out;
  }

  VarId Temporary(DType dtype) {
    return writer_.DeclareTemporary("tmp", "", {.dtype = dtype, .dims = {1}}).id;
  }
  void Add(Op op) {
    SetRole(op, kLearningRateRole);
    writer_.Add(std::move(op));
  }

  StateWriter& writer_;
  const OptimizerValues& values_;
  const double rate_;
  VarId step_ = -1;
};

struct RateSchedule {
  absl::string_view name;
  std::vector<OptimizerOption> options;
};

const std::vector<RateSchedule>& Schedules() {
  const OptimizerOption staircase = {"staircase", 0, {}, OptionForm::kFlag};
  const OptimizerOption steps = {"decay_steps", kRequiredOption};
  const OptimizerOption rate = {"decay_rate", kRequiredOption};
  static const auto* const kSchedules = new std::vector<RateSchedule>{
      {"noam", {{"d_model", kRequiredOption}, {"warmup_steps", kRequiredOption}}},
      {"exponential", {steps, rate, staircase}},
      {"natural_exp", {steps, rate, staircase}},
      {"inverse_time", {steps, rate, staircase}},
      {"polynomial",
       {steps, {"end_learning_rate", 0.0001}, {"power", 1}, {"cycle", 0, {}, OptionForm::kFlag}}},
      {"cosine", {{"step_each_epoch", kRequiredOption}, {"epochs", kRequiredOption}}},
      {"piecewise",
       {{"boundaries", kRequiredOption, {}, OptionForm::kList},
        {"values", kRequiredOption, {}, OptionForm::kList}}},
  };
  return *kSchedules;
}

absl::Status CheckPieces(const OptimizerValues& values) {
  const std::vector<double>& boundaries = values.lists.at("boundaries");
  const std::vector<double>& rates = values.lists.at("values");
  if (rates.size() != boundaries.size() + 1) {
    return InvalidArgument("option 'values' has ", rates.size(),
                           " numbers, expected one more than ", "'boundaries', ",
                           boundaries.size() + 1);
  }
  for (size_t i = 1; i < boundaries.size(); ++i) {
    if (boundaries[i - 1] < boundaries[i]) continue;
    return InvalidArgument("option 'boundaries' is not ascending");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<OptimizerOption>> ScheduleOptions(absl::string_view schedule) {
  const OptimizerOption absent = {"", kAbsentOption};
  std::vector<OptimizerOption> warmup;
  for (const absl::string_view name : {"warmup_steps", "start_lr", "end_lr"}) {
    warmup.push_back(absent);
    warmup.back().name = name;
  }
  if (schedule.empty()) return warmup;
  std::vector<absl::string_view> known;
  for (const RateSchedule& kind : Schedules()) {
    known.push_back(kind.name);
    if (kind.name != schedule) continue;
    std::vector<OptimizerOption> options = kind.options;
    if (schedule != "noam") options.insert(options.end(), warmup.begin(), warmup.end());
    return options;
  }
  return InvalidArgument("no learning-rate schedule '", schedule, "'",
                         NearNamesHint(schedule, known),
                         "; there are: ", absl::StrJoin(known, " "));
}

absl::Status CheckSchedule(const OptimizerValues& values) {
  for (const absl::string_view name :
       {"decay_steps", "warmup_steps", "d_model", "step_each_epoch", "epochs"}) {
    if (!values.Has(name) || values[name] > 0) continue;
    return InvalidArgument("option '", name, "' is ", values[name], ", expected more than 0");
  }
  if (values.schedule == "piecewise") INTERP_RETURN_IF_ERROR(CheckPieces(values));
  if (values.schedule == "noam") return absl::OkStatus();
  const int given = values.Has("warmup_steps") + values.Has("start_lr") + values.Has("end_lr");
  if (given == 0 || given == 3) return absl::OkStatus();
  return InvalidArgument("options 'warmup_steps', 'start_lr' and 'end_lr' need each other");
}

bool HasSchedule(const OptimizerValues& values) {
  return !values.schedule.empty() || values.Has("start_lr");
}

absl::StatusOr<VarId> AppendSchedule(StateWriter& writer, const OptimizerValues& values,
                                     DType dtype) {
  return ScheduleWriter(writer, values).Run(dtype);
}

}  // namespace interp
