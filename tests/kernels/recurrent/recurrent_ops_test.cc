// Ops of kernels/recurrent beyond what Paddle's golden cases show: constant weights, threads, runs
// with other sequences, inputs that do not fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/recurrent/step_order.h"
#include "tests/kernels/op_runs.h"

namespace interp::testing::recurrent_ops_test {
namespace {

using recurrent::MakeStepOrder;
using recurrent::StepOrder;
using ::testing::ElementsAre;

// Sequences of 3, 0, 5, 1, 3 and 0 rows.
const Lod kRagged = {{0, 3, 3, 8, 9, 12, 12}};
constexpr int64_t kRows = 12;

TEST(StepOrderTest, LongSequencesAreFirstAndEqualOnesKeepTheirOrder) {
  const StepOrder order = MakeStepOrder(kRagged[0], /*reverse=*/false);
  EXPECT_THAT(order.sequences, ElementsAre(2, 0, 4, 3, 1, 5));
  EXPECT_THAT(order.starts, ElementsAre(0, 4, 7, 10, 11, 12));
  EXPECT_EQ(order.rows(), 4);
  EXPECT_EQ(order.row(1, 0), 4);
  EXPECT_EQ(order.row(2, 2), 11);
}

TEST(StepOrderTest, InReverseSequencesStartAtTheirEnds) {
  const StepOrder order = MakeStepOrder(kRagged[0], /*reverse=*/true);
  EXPECT_THAT(order.starts, ElementsAre(0, 4, 7, 10, 11, 12));
  EXPECT_EQ(order.row(0, 0), 7);
  EXPECT_EQ(order.row(2, 2), 9);
}

TEST(StepOrderTest, EmptySequencesHaveNoSteps) {
  const StepOrder order = MakeStepOrder({0, 0, 0}, /*reverse=*/false);
  EXPECT_EQ(order.steps(), 0);
  EXPECT_EQ(order.rows(), 0);
  EXPECT_THAT(order.sequences, ElementsAre(0, 1));
}

OpRun LstmRun(const std::string& attrs, const Lod& lod = kRagged, int64_t size = 5) {
  return {"lstm",
          {{"Input", Numbers<float>({lod[0].back(), 4 * size}, 1, lod)},
           {"Weight", Numbers<float>({size, 4 * size}, 2)},
           {"Bias", Numbers<float>({1, 7 * size}, 3)}},
          {"Hidden", "Cell", "BatchGate", "BatchCellPreAct"},
          attrs};
}

OpRun GruRun(const std::string& attrs, const Lod& lod = kRagged, int64_t size = 5) {
  return {"gru",
          {{"Input", Numbers<float>({lod[0].back(), 3 * size}, 1, lod)},
           {"Weight", Numbers<float>({size, 3 * size}, 2)},
           {"Bias", Numbers<float>({1, 3 * size}, 3)}},
          {"Hidden", "BatchGate", "BatchResetHiddenPrev", "BatchHidden"},
          attrs};
}

// Programs of old releases lack attributes.
TEST(RecurrentOpsTest, MissingAttributesTakeTheirDefaults) {
  EXPECT_TRUE(SameBits(OutputsOf(LstmRun("")),
                       OutputsOf(LstmRun("use_peepholes=true, is_reverse=false, is_test=false, "
                                         "gate_activation=\"sigmoid\", cell_activation=\"tanh\", "
                                         "candidate_activation=\"tanh\""))));
  EXPECT_TRUE(SameBits(OutputsOf(GruRun("")),
                       OutputsOf(GruRun("is_reverse=false, origin_mode=false, is_test=false, "
                                        "gate_activation=\"sigmoid\", activation=\"tanh\""))));
}

TEST(RecurrentOpsTest, TestModeLeavesOutWhatOnlyGradientsRead) {
  for (const auto& [make, kept] : {std::pair(&LstmRun, 2), {&GruRun, 1}}) {
    const std::vector<Tensor> train = OutputsOf(make("", kRagged, 5));
    const std::vector<Tensor> test = OutputsOf(make("is_test=true", kRagged, 5));
    for (int i = 0; i < 4; ++i) {
      if (i < kept) {
        EXPECT_TRUE(SameBits(train[i], test[i]));
      } else {
        EXPECT_EQ(train[i].shape[0], kRows);
        EXPECT_EQ(test[i].numel(), 0);
      }
    }
  }
}

TEST(RecurrentOpsTest, OutputsThatOnlyGradientsReadMayBeAbsent) {
  for (OpRun run : {LstmRun(""), GruRun("")}) {
    const Tensor hidden = OutputsOf(run)[0];
    run.outputs = {"Hidden"};
    EXPECT_TRUE(SameBits(OutputsOf(run)[0], hidden));
  }
}

TEST(RecurrentOpsTest, TensorsWithoutRowsGiveNone) {
  const std::vector<Tensor> lstm = OutputsOf(LstmRun("", {{0, 0, 0}}));
  EXPECT_EQ(lstm[0].shape, Shape({0, 5}));
  EXPECT_EQ(lstm[0].lod, Lod({{0, 0, 0}}));
  EXPECT_EQ(OutputsOf(GruRun("", {{0, 0}}))[3].shape, Shape({0, 5}));
}

TEST(RecurrentOpsTest, AnyNumberOfThreadsGivesTheSameBits) {
  std::vector<int64_t> level = {0};
  for (int64_t i = 0; i < 40; ++i) level.push_back(level.back() + i * 7 % 9);
  for (const OpRun& run : {LstmRun("", {level}, 19), GruRun("is_reverse=true", {level}, 19)}) {
    const std::vector<Tensor> alone = OutputsOf(run, {.num_threads = 1});
    for (const int threads : {2, 3, 5}) {
      EXPECT_TRUE(SameBits(OutputsOf(run, {.num_threads = threads}), alone)) << threads;
    }
  }
}

// The program of `run` with its second input, the weight, as a parameter.
std::unique_ptr<InterpreterCore> CoreWithParameter(const OpRun& run, std::shared_ptr<Scope> scope) {
  std::string text = ProgramText(run);
  const std::string declared = absl::StrCat("float32", ToString(run.inputs[1].second.shape), "\n");
  const size_t at = text.find(declared, text.find("var in1")) + declared.size() - 1;
  text.insert(at, " persistable");
  scope->FindOrCreate("in1")->tensor = run.inputs[1].second;
  absl::StatusOr<Program> program = ParseProgram(text);
  EXPECT_THAT(program, IsOk()) << text;
  auto core = InterpreterCore::Create(*std::move(program), {"in0", "in2"}, run.outputs,
                                      std::move(scope), {.check_feed_shapes = false});
  EXPECT_THAT(core, IsOk());
  return *std::move(core);
}

absl::StatusOr<std::vector<Tensor>> RunFed(InterpreterCore& core, const OpRun& run) {
  return core.Run({run.inputs[0].second, run.inputs[2].second});
}

// Weights are packed once then, and clones share them.
TEST(RecurrentOpsTest, ParametersGiveTheBitsOfFedWeights) {
  for (const OpRun& run : {LstmRun(""), GruRun("")}) {
    const std::vector<Tensor> fed = OutputsOf(run);
    const auto core = CoreWithParameter(run, std::make_shared<Scope>());
    const auto clone = core->Clone();
    for (InterpreterCore* one : {core.get(), core.get(), clone.get()}) {
      const absl::StatusOr<std::vector<Tensor>> outputs = RunFed(*one, run);
      ASSERT_THAT(outputs, IsOk());
      EXPECT_TRUE(SameBits(*outputs, fed)) << run.type;
    }
  }
}

TEST(RecurrentOpsTest, NewParametersArePackedAgain) {
  const auto scope = std::make_shared<Scope>();
  OpRun run = LstmRun("");
  const auto core = CoreWithParameter(run, scope);
  ASSERT_THAT(RunFed(*core, run), IsOk());
  run.inputs[1].second = Numbers<float>(run.inputs[1].second.shape, 77);
  scope->FindOrCreate("in1")->tensor = run.inputs[1].second;
  const absl::StatusOr<std::vector<Tensor>> outputs = RunFed(*core, run);
  ASSERT_THAT(outputs, IsOk());
  EXPECT_TRUE(SameBits(*outputs, OutputsOf(run)));
}

TEST(RecurrentOpsTest, EveryRunMayHaveOtherSequences) {
  for (const bool lstm : {true, false}) {
    const auto make = [&](const Lod& lod) { return lstm ? LstmRun("", lod) : GruRun("", lod); };
    const auto core = CoreWithParameter(make(kRagged), std::make_shared<Scope>());
    for (const Lod& lod : {kRagged, Lod{{0, 12}}, Lod{{0, 5, 12}}, Lod{{0, 1}}, kRagged}) {
      const absl::StatusOr<std::vector<Tensor>> outputs = RunFed(*core, make(lod));
      ASSERT_THAT(outputs, IsOk());
      EXPECT_TRUE(SameBits(*outputs, OutputsOf(make(lod))));
    }
  }
}

OpRun And(OpRun run, const std::string& slot, const Tensor& tensor) {
  run.inputs.emplace_back(slot, tensor);
  return run;
}

Tensor Ones(const Shape& shape, const Lod& lod = {}) { return Numbers<float>(shape, 9, lod); }

TEST(RecurrentOpsTest, InputsThatDoNotFitAreRefused) {
  const OpRun lstm = LstmRun("");
  const OpRun gru = GruRun("");
  ExpectRefusals({
      {With(lstm, 0, Ones({12, 20})), "input 'Input' is float32[12,20] without LoD"},
      {With(lstm, 0, Ones({12, 20}, {{0, 1, 2}, {0, 3, 12}})), "2 levels"},
      {With(lstm, 0, Ones({12, 18}, kRagged)),
       "'Input' has shape [12,18], expected [rows, columns] with a multiple of 4"},
      {With(lstm, 0, Ones({12}, kRagged)), "'Input' has shape [12], expected [rows, columns]"},
      {With(lstm, 1, Ones({5, 16})), "'Weight' has shape [5,16], expected [5,20]"},
      {With(lstm, 2, Ones({1, 20})), "'Bias' has shape [1,20], expected [1,35]"},
      {LstmRun("use_peepholes=false"), "'Bias' has shape [1,35], expected [1,20]"},
      {And(lstm, "H0", Ones({6, 5})), "'H0' is given without 'C0'"},
      {And(lstm, "C0", Ones({5, 5})), "'C0' has shape [5,5], expected [6,5]"},
      {LstmRun("cell_activation=\"gelu\""), "'cell_activation' is \"gelu\", expected identity"},
      {With(gru, 0, Ones({12, 16}, kRagged)),
       "'Input' has shape [12,16], expected [rows, columns] with a multiple of 3"},
      {With(gru, 1, Ones({6, 15})), "'Weight' has shape [6,15], expected [5,15]"},
      {With(gru, 2, Ones({15})), "'Bias' has shape [15], expected [1,15]"},
      {And(gru, "H0", Ones({6, 4})), "'H0' has shape [6,4], expected [6,5]"},
  });
}

TEST(RecurrentOpsTest, InputsOfUnitsThatDoNotFitAreRefused) {
  const OpRun gru = {
      "gru_unit",
      {{"Input", Ones({2, 15})}, {"HiddenPrev", Ones({2, 5})}, {"Weight", Ones({5, 15})}},
      {"Gate", "ResetHiddenPrev", "Hidden"},
      ""};
  OpRun wrong = gru;
  wrong.attrs = "activation=4";
  const OpRun lstm = {
      "lstm_unit", {{"X", Ones({2, 20})}, {"C_prev", Ones({2, 5})}}, {"C", "H"}, ""};
  ExpectRefusals({
      {wrong, "'activation' is 4, expected 0 (identity)"},
      {With(gru, 0, Ones({2, 16})), "multiple of 3 columns"},
      {With(gru, 1, Ones({3, 5})), "'HiddenPrev' has shape [3,5], expected [2,5]"},
      {With(gru, 2, Ones({5, 5})), "'Weight' has shape [5,5], expected [5,15]"},
      {With(lstm, 0, Ones({2, 21})), "multiple of 4 columns"},
      {With(lstm, 1, Ones({2, 4})), "'C_prev' has shape [2,4], expected [2,5]"},
  });
}

TEST(RecurrentOpsTest, InputsOfLstmpThatDoNotFitAreRefused) {
  const OpRun lstmp = {"lstmp",
                       {{"Input", Ones({12, 20}, kRagged)},
                        {"Weight", Ones({3, 20})},
                        {"Bias", Ones({1, 35})},
                        {"ProjWeight", Ones({5, 3})}},
                       {"Projection", "Cell"},
                       ""};
  ExpectRefusals({
      {With(lstmp, 3, Ones({4, 3})), "'ProjWeight' has shape [4,3], expected [5,P]"},
      {With(lstmp, 1, Ones({5, 20})), "'Weight' has shape [5,20], expected [3,20]"},
      {And(And(lstmp, "C0", Ones({6, 5})), "H0", Ones({6, 5})), "'H0' has shape [6,5]"},
  });
}

}  // namespace
}  // namespace interp::testing::recurrent_ops_test
