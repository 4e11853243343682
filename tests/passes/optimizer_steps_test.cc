// Runs what AppendOptimizer appends, against the parameters that Paddle gets in three steps on the
// same gradients (tests/passes/optimizer/steps.json, by tests/goldens/make_optimizer_steps.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/io/file.h"
#include "core/program_parse.h"
#include "interpreter/interpreter_core.h"
#include "passes/train/optimizer.h"
#include "tests/testing/matchers.h"

namespace interp {
namespace {

using testing::IsOk;
using Json = nlohmann::json;

constexpr char kParameters[] = R"(block 0
  var w float32[3,2] param
  var b float32[2] param
  var w@GRAD float32[3,2]
  var b@GRAD float32[2]
)";

Json ReadSteps() {
  const auto text = ReadFile(INTERP_SOURCE_DIR "/tests/passes/optimizer/steps.json");
  EXPECT_THAT(text, IsOk());
  return Json::parse(text.value_or("{}"));
}

// Nested lists have their numbers in row-major order.
void Flatten(const Json& json, std::vector<float>& values) {
  if (json.is_number()) {
    values.push_back(json.get<float>());
    return;
  }
  for (const Json& part : json) Flatten(part, values);
}

Tensor TensorOf(const Json& json, const Shape& shape) {
  std::vector<float> values;
  Flatten(json, values);
  return Tensor::Of<float>(shape, values);
}

class Training {
 public:
  Training(const std::string& spec_text, const Json& start) : scope_(std::make_shared<Scope>()) {
    absl::StatusOr<Program> main = ParseProgram(kParameters);
    Program startup;
    startup.blocks.emplace_back();
    const absl::StatusOr<OptimizerSpec> spec = ParseOptimizerSpec(spec_text);
    EXPECT_THAT(spec, IsOk());
    const std::vector<SourceGradient> gradients = {{main->Intern("w"), main->Intern("w@GRAD")},
                                                   {main->Intern("b"), main->Intern("b@GRAD")}};
    EXPECT_THAT(AppendOptimizer(*main, startup, gradients, *spec), IsOk());
    for (const Var& var : startup.blocks[0].vars) states_.push_back(startup.NameOf(var.id));
    std::sort(states_.begin(), states_.end());
    Run(startup, {}, {}, {});
    scope_->FindOrCreate("w")->tensor = TensorOf(start["w"], {3, 2});
    scope_->FindOrCreate("b")->tensor = TensorOf(start["b"], {2});
    main_ = *std::move(main);
    for (const Op& op : main_.blocks[0].ops) {
      const Slot* rate = op.FindInput("LearningRate");
      if (rate != nullptr) rate_name_ = main_.NameOf(rate->args[0]);
    }
  }

  void Step(const Json& gradients) {
    const std::vector<Tensor> fetched =
        Run(main_, {"w@GRAD", "b@GRAD"},
            {TensorOf(gradients["w"], {3, 2}), TensorOf(gradients["b"], {2})}, {rate_name_});
    if (!fetched.empty()) rate_ = *fetched[0].data<float>();
  }

  std::vector<float> Parameter(const std::string& name) const {
    return testing::Values<float>(scope_->Find(name)->tensor);
  }
  const std::vector<std::string>& states() const { return states_; }
  float last_rate() const { return rate_; }

 private:
  std::vector<Tensor> Run(const Program& program, const std::vector<std::string>& names,
                          const std::vector<Tensor>& feeds,
                          const std::vector<std::string>& fetches) {
    CoreOptions options;
    options.passes.disable = {"prune"};
    auto core = InterpreterCore::Create(program, names, fetches, scope_, options);
    EXPECT_THAT(core, IsOk());
    if (!core.ok()) return {};
    const auto fetched = (*core)->Run(feeds);
    EXPECT_THAT(fetched, IsOk());
    return fetched.value_or(std::vector<Tensor>());
  }

  std::shared_ptr<Scope> scope_;
  Program main_;
  std::string rate_name_;
  std::vector<std::string> states_;
  float rate_ = 0;
};

TEST(OptimizerStepsTest, ParametersGoWherePaddleTakesThem) {
  const Json doc = ReadSteps();
  for (const Json& expected : doc["cases"]) {
    SCOPED_TRACE(expected["spec"].get<std::string>());
    Training training(expected["spec"].get<std::string>(), doc["start"]);
    EXPECT_EQ(training.states(), expected["states"].get<std::vector<std::string>>());
    for (size_t step = 0; step < doc["gradients"].size(); ++step) {
      training.Step(doc["gradients"][step]);
      for (const std::string name : {"w", "b"}) {
        std::vector<float> want;
        Flatten(expected["steps"][step][name], want);
        EXPECT_THAT(training.Parameter(name),
                    ::testing::Pointwise(::testing::FloatNear(2e-5f), want))
            << name << " after step " << step;
      }
    }
  }
}

TEST(OptimizerStepsTest, RatesAreThoseOfPaddle) {
  const Json doc = ReadSteps();
  for (const Json& expected : doc["schedules"]) {
    const auto options = expected["spec"].get<std::string>();
    SCOPED_TRACE(options);
    Training training(absl::StrCat("sgd:learning_rate=0.1,", options), doc["start"]);
    for (const Json& want : expected["rates"]) {
      training.Step(doc["gradients"][0]);
      EXPECT_NEAR(training.last_rate(), want.get<float>(), 1e-6f);
    }
  }
}

}  // namespace
}  // namespace interp
