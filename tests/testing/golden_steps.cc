#include "tests/testing/golden_steps.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <memory>
#include <set>
#include <utility>

#include "core/device/device_heap.h"

namespace interp::testing {
namespace {

// Parameters whose gradients are zero but for rounding, which Adam makes steps of full length: the
// bias of keys in front of a softmax, that of a convolution in front of a batch_norm, whose moving
// mean follows it. "program/variable".
const std::set<std::string>& Noise() {
  static const auto& noise = *new std::set<std::string>{
      "attention_block/fc_1.b_0",
      "depthwise_convnet/depthwise_conv2d_0.b_0",
      "depthwise_convnet/batch_norm_0.w_1",
  };
  return noise;
}

void Compare(const NamedTensor& want, const Tensor& got, const GoldenProgram& golden,
             std::vector<std::string>& errors) {
  const std::string difference = Difference(got, want.second, golden.rtol, golden.atol);
  if (!difference.empty()) errors.push_back(absl::StrCat("'", want.first, "' ", difference));
}

absl::Status RunStep(InterpreterCore& core, const GoldenProgram& golden,
                     const GoldenProgram::Step& step, std::vector<std::string>& errors) {
  std::vector<Tensor> feeds;
  for (const std::string& name : golden.feed_order) feeds.push_back(FindValue(step.feeds, name));
  INTERP_ASSIGN_OR_RETURN(const std::vector<Tensor> results, core.Run(feeds));
  for (size_t i = 0; i < results.size(); ++i) {
    const std::string& name = golden.fetch_order[i];
    Compare({name, FindValue(step.fetches, name)}, results[i], golden, errors);
  }
  return absl::OkStatus();
}

absl::Status RunSteps(const GoldenProgram& golden, Program program, const CoreOptions& options,
                      const std::shared_ptr<Scope>& scope, std::vector<std::string>& errors) {
  INTERP_RETURN_IF_ERROR(FillScope(golden.initial, *scope));
  INTERP_ASSIGN_OR_RETURN(const std::unique_ptr<InterpreterCore> core,
                          InterpreterCore::Create(std::move(program), golden.feed_order,
                                                  golden.fetch_order, scope, options));
  for (const GoldenProgram::Step& step : golden.steps) {
    INTERP_RETURN_IF_ERROR(FillScope(step.set, *scope));
    const size_t known = errors.size();
    INTERP_RETURN_IF_ERROR(RunStep(*core, golden, step, errors));
    for (size_t i = known; i < errors.size(); ++i) {
      absl::StrAppend(&errors[i], " in step ", &step - golden.steps.data());
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> AllGoldenPrograms() {
  std::vector<std::string> folders;
  for (const std::string& set : GoldenSets()) {
    for (const std::string& folder : GoldenProgramFolders(set)) folders.push_back(folder);
  }
  return folders;
}

std::string NameOfGoldenProgram(const std::string& folder) {
  std::string name = std::filesystem::path(folder).filename().string();
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

absl::Status FillScope(const std::vector<NamedTensor>& values, Scope& scope) {
  for (const auto& [name, tensor] : values) {
    INTERP_ASSIGN_OR_RETURN(scope.FindOrCreate(name)->tensor, tensor.Clone(SystemAllocator()));
    ++scope.FindOrCreate(name)->version;
  }
  return absl::OkStatus();
}

std::vector<NamedTensor> ValuesInScope(const std::vector<NamedTensor>& names, Scope& scope) {
  std::vector<NamedTensor> values;
  for (const auto& [name, tensor] : names) {
    Tensor value = scope.FindOrCreate(name)->tensor;
    if (!MoveToHost(value).ok()) value = Tensor();
    values.emplace_back(name, std::move(value));
  }
  return values;
}

Tensor FindValue(const std::vector<NamedTensor>& tensors, const std::string& name) {
  for (const NamedTensor& tensor : tensors) {
    if (tensor.first == name) return tensor.second;
  }
  return Tensor();
}

std::vector<std::string> RunGoldenSteps(const GoldenProgram& golden, const std::string& name,
                                        Program program, const CoreOptions& options) {
  const auto scope = std::make_shared<Scope>();
  std::vector<std::string> errors;
  const absl::Status ran = RunSteps(golden, std::move(program), options, scope, errors);
  if (!ran.ok()) {
    errors.push_back(ran.ToString());
    return errors;
  }
  std::vector<NamedTensor> want = golden.final;
  std::erase_if(want, [&](const NamedTensor& value) {
    return Noise().contains(absl::StrCat(name, "/", value.first));
  });
  const std::vector<NamedTensor> got = ValuesInScope(want, *scope);
  for (size_t i = 0; i < want.size(); ++i) Compare(want[i], got[i].second, golden, errors);
  return errors;
}

}  // namespace interp::testing
