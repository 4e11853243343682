#include "core/kvstore/store_optimizer.h"

#include <algorithm>
#include <utility>

#include "core/array/array_runtime.h"
#include "core/array/filled.h"
#include "core/base/near_names.h"

namespace interp {
namespace {

bool IsGiven(absl::string_view slot) {
  return slot == "Param" || slot == "Grad" || slot == "LearningRate";
}

}  // namespace

absl::StatusOr<std::shared_ptr<StoreOptimizer>> StoreOptimizer::Make(
    ArrayRuntime& runtime, const StoreOptimizerOptions& options) {
  const OpDef* def = runtime.ops().Find(options.type);
  if (def == nullptr) {
    return NotFound("no op named '", options.type, "' is registered",
                    NearNamesHint(options.type, runtime.ops().Types()));
  }
  std::shared_ptr<StoreOptimizer> made(new StoreOptimizer(runtime, *def, options));
  INTERP_RETURN_IF_ERROR(made->FindStates());
  return made;
}

absl::Status StoreOptimizer::FindStates() {
  for (const absl::string_view slot : {"Param", "Grad", "LearningRate"}) {
    if (def_.InputIndex(slot) < 0 || def_.OutputIndex("ParamOut") < 0) {
      return InvalidArgument("'", def_.type, "' is no optimizer: expected an op with the inputs ",
                             "Param, Grad and LearningRate and the output ParamOut");
    }
  }
  for (const SlotDef& slot : def_.inputs) {
    if (IsGiven(slot.name) || (slot.flags & kOptional) != 0) continue;
    const int output = def_.OutputIndex(absl::StrCat(slot.name, "Out"));
    if (output < 0) {
      return Unimplemented("the optimizer '", def_.type, "' needs '", slot.name,
                           "', which is no state of its own");
    }
    states_.push_back({slot.name, def_.outputs[output].name});
  }
  return absl::OkStatus();
}

absl::StatusOr<Array> StoreOptimizer::Scalar(double value, const Array& like) {
  return Filled(runtime_, {1}, like.dtype(), value, like.place());
}

absl::StatusOr<ArraySlots> StoreOptimizer::MakeStates(const Array& parameter) {
  ArraySlots inputs;
  INTERP_ASSIGN_OR_RETURN(Array rate, Scalar(options_.learning_rate, parameter));
  inputs.emplace_back("LearningRate", std::vector<Array>{std::move(rate)});
  for (const State& state : states_) {
    const auto scalar = std::find_if(options_.scalars.begin(), options_.scalars.end(),
                                     [&](const auto& named) { return named.first == state.input; });
    Array value;
    if (scalar != options_.scalars.end()) {
      INTERP_ASSIGN_OR_RETURN(value, Scalar(scalar->second, parameter));
    } else {
      INTERP_ASSIGN_OR_RETURN(
          value, Filled(runtime_, parameter.shape(), parameter.dtype(), 0, parameter.place()));
    }
    inputs.emplace_back(state.input, std::vector<Array>{std::move(value)});
  }
  return inputs;
}

absl::Status StoreOptimizer::Update(absl::string_view key, const Array& gradient,
                                    const Array& parameter) {
  std::shared_ptr<const ArraySlots> states;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    std::shared_ptr<const ArraySlots>& known = of_keys_[key];
    if (known == nullptr) {
      INTERP_ASSIGN_OR_RETURN(ArraySlots made, MakeStates(parameter));
      known = std::make_shared<const ArraySlots>(std::move(made));
    }
    states = known;
  }
  Array rescaled = gradient;
  if (options_.rescale != 1) {
    InvokeOptions scaling{.property = engine::Property::kDeviceUrgent};
    if (gradient.is_rows()) {
      INTERP_ASSIGN_OR_RETURN(Array rows, runtime_.NewRows(gradient.shape(), gradient.dtype()));
      scaling.into = {{"Out", {std::move(rows)}}};
    }
    INTERP_ASSIGN_OR_RETURN(
        rescaled, First(Invoke(runtime_, "scale", {{"X", {gradient}}},
                               {{"scale", static_cast<float>(options_.rescale)}}, scaling)));
  }
  ArraySlots inputs = *states;
  inputs.emplace_back("Param", std::vector<Array>{parameter});
  inputs.emplace_back("Grad", std::vector<Array>{rescaled});
  // Beside what a device computes, as sums are.
  InvokeOptions options{.property = engine::Property::kDeviceUrgent,
                        .into = {{"ParamOut", {parameter}}}};
  for (const State& state : states_) {
    const auto value = std::find_if(states->begin(), states->end(),
                                    [&](const auto& slot) { return slot.first == state.input; });
    options.into.emplace_back(state.output, value->second);
  }
  return Invoke(runtime_, def_, inputs, options_.attrs, options).status();
}

}  // namespace interp
