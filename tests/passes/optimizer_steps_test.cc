// Runs what AppendOptimizer appends, against the parameters that Paddle gets in three steps on the
// same gradients (tests/passes/optimizer/steps.json, by tests/goldens/make_optimizer_steps.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/io/file.h"
#include "core/program_parse.h"
#include "interpreter/interpreter_core.h"
#include "passes/optimizer.h"
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
    Run(startup, {}, {});
    scope_->FindOrCreate("w")->tensor = TensorOf(start["w"], {3, 2});
    scope_->FindOrCreate("b")->tensor = TensorOf(start["b"], {2});
    main_ = *std::move(main);
  }

  void Step(const Json& gradients) {
    Run(main_, {"w@GRAD", "b@GRAD"},
        {TensorOf(gradients["w"], {3, 2}), TensorOf(gradients["b"], {2})});
  }

  std::vector<float> Parameter(const std::string& name) const {
    return testing::Values<float>(scope_->Find(name)->tensor);
  }
  const std::vector<std::string>& states() const { return states_; }

 private:
  void Run(const Program& program, const std::vector<std::string>& names,
           const std::vector<Tensor>& feeds) {
    CoreOptions options;
    options.passes.disable = {"prune"};
    auto core = InterpreterCore::Create(program, names, {}, scope_, options);
    ASSERT_THAT(core, IsOk());
    EXPECT_THAT((*core)->Run(feeds), IsOk());
  }

  std::shared_ptr<Scope> scope_;
  Program main_;
  std::vector<std::string> states_;
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

}  // namespace
}  // namespace interp
