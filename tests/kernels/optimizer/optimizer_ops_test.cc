// Optimizers beyond what golden cases show: 16-bit parameters with a master, ops that Paddle 2.6.2
// lacks, threads, and refusals.
#include <cmath>

#include "tests/kernels/op_runs.h"

namespace interp::testing::optimizer_ops_test {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

// The parameter has so many elements that several threads share it, and pieces are cut.
constexpr int64_t kLarge = 70001;

Tensor One(float value) { return VectorOf<float>({value}); }

Tensor Positive(const Shape& shape, uint32_t seed) {
  Tensor tensor = Numbers(shape, seed);
  for (float& value : absl::MakeSpan(tensor.mutable_data<float>(), tensor.numel())) {
    value = std::abs(value) + 0.1f;
  }
  return tensor;
}

template <typename To>
Tensor Converted(const Tensor& tensor) {
  std::vector<To> values;
  for (const float value : Values<float>(tensor)) values.push_back(static_cast<To>(value));
  return Tensor::Of<To>(tensor.shape, values);
}

// An op with the slots that its kernel needs, states and outputs in the same order.
struct Optimizer {
  std::string type;
  std::vector<std::pair<std::string, std::string>> states;  // and their outputs
  std::vector<std::pair<std::string, std::string>> pows = {};
  std::string attrs = "";
  std::string plural = "";  // at the end of "Param" and the like
};

std::vector<Optimizer> AllOptimizers() {
  const std::vector<std::pair<std::string, std::string>> moments = {{"Moment1", "Moment1Out"},
                                                                    {"Moment2", "Moment2Out"}};
  const std::vector<std::pair<std::string, std::string>> pows = {{"Beta1Pow", "Beta1PowOut"},
                                                                 {"Beta2Pow", "Beta2PowOut"}};
  return {
      {"sgd", {}},
      {"momentum", {{"Velocity", "VelocityOut"}}, {}, "mu=0.9, use_nesterov=true"},
      {"lars_momentum", {{"Velocity", "VelocityOut"}}, {}, "mu=0.9"},
      {"merged_momentum", {{"Velocity", "VelocityOut"}}, {}, "mu=0.9"},
      {"adagrad", {{"Moment", "MomentOut"}}},
      {"decayed_adagrad", {{"Moment", "MomentOut"}}},
      {"adam", moments, pows},
      {"adamw", moments, pows, "coeff=0.1, with_decay=true"},
      {"merged_adam", moments, pows},
      {"lamb", moments, pows, "weight_decay=0.1"},
      {"adamax", {{"Moment", "MomentOut"}, {"InfNorm", "InfNormOut"}}, {{"Beta1Pow", ""}}},
      {"adadelta",
       {{"AvgSquaredGrad", "AvgSquaredGradOut"}, {"AvgSquaredUpdate", "AvgSquaredUpdateOut"}}},
      {"rmsprop",
       {{"MeanSquare", "MeanSquareOut"}, {"Moment", "MomentOut"}},
       {},
       "momentum=0.5, decay=0.9"},
      {"ftrl",
       {{"SquaredAccumulator", "SquaredAccumOut"}, {"LinearAccumulator", "LinearAccumOut"}},
       {},
       "l1=0.1, l2=0.1"},
      {"proximal_gd", {}, {}, "l1=0.1, l2=0.1"},
      {"proximal_adagrad", {{"Moment", "MomentOut"}}, {}, "l1=0.1, l2=0.1"},
      {"dpsgd", {}, {}, "sigma=0.0, clip=1.0"},
      {"fused_adam",
       {{"Moments1", "Moments1Out"}, {"Moments2", "Moments2Out"}},
       {{"Beta1Pows", "Beta1PowsOut"}, {"Beta2Pows", "Beta2PowsOut"}},
       "weight_decay=0.1, use_adamw=true",
       "s"},
  };
}

OpRun RunOf(const Optimizer& op, const Shape& shape) {
  OpRun run{.type = op.type,
            .inputs = {{"Param" + op.plural, Numbers(shape, 1)},
                       {"Grad" + op.plural, Numbers(shape, 2)},
                       {"LearningRate", One(0.1f)}},
            .outputs = {"Param" + op.plural + "Out"},
            .attrs = op.attrs};
  for (const auto& [in, out] : op.states) {
    run.inputs.emplace_back(in, Positive(shape, static_cast<uint32_t>(run.inputs.size())));
    run.outputs.push_back(out);
  }
  for (const auto& [in, out] : op.pows) {
    run.inputs.emplace_back(in, One(in.starts_with("Beta1") ? 0.729f : 0.997f));
    if (!out.empty()) run.outputs.push_back(out);
  }
  return run;
}

// The same with values that 16 bits hold exactly and a parameter of those, beside its master.
template <typename Half>
OpRun WithMaster(OpRun run) {
  const Tensor param = Converted<Half>(run.inputs[0].second);
  const Tensor grad = Converted<Half>(run.inputs[1].second);
  const std::string master = "Master" + run.inputs[0].first;
  run.inputs.emplace_back(master, run.inputs[0].second);
  run.inputs[0].second = param;
  run.inputs[1].second = grad;
  run.outputs.push_back(master + "Out");
  return run;
}

template <typename Half>
OpRun Rounded(OpRun run) {
  std::vector<float> values;
  for (const Half value : Values<Half>(Converted<Half>(run.inputs[1].second))) {
    values.push_back(value);
  }
  run.inputs[1].second = Tensor::Of<float>(run.inputs[1].second.shape, values);
  return run;
}

template <typename Half>
void ExpectMasterIsExact(const OpRun& run) {
  const std::vector<Tensor> exact = OutputsOf(Rounded<Half>(run));
  const std::vector<Tensor> mixed = OutputsOf(WithMaster<Half>(run));
  EXPECT_TRUE(SameBits(mixed.back(), exact[0])) << run.type;
  EXPECT_TRUE(SameBits(mixed[0], Converted<Half>(exact[0]))) << run.type;
  for (size_t i = 1; i < exact.size(); ++i) {
    EXPECT_TRUE(SameBits(mixed[i], exact[i])) << run.type << " " << run.outputs[i];
  }
}

// By three of the five rows, of which one repeats.
OpRun SparseMomentum() {
  return {.type = "sparse_momentum",
          .inputs = {{"Param", Numbers({5, 700}, 1)},
                     {"Grad", Numbers({3, 700}, 2)},
                     {"LearningRate", One(0.1f)},
                     {"Velocity", Numbers({5, 700}, 3)},
                     {"Index", Tensor::Of<int64_t>({3}, {4, 1, 4})}},
          .outputs = {"ParamOut", "VelocityOut"},
          .attrs = "mu=0.9"};
}

TEST(OptimizerOpsTest, SixteenBitParametersFollowTheirMaster) {
  std::vector<OpRun> runs = {SparseMomentum()};
  for (const Optimizer& op : AllOptimizers()) runs.push_back(RunOf(op, {3, 700}));
  for (const OpRun& run : runs) {
    ExpectMasterIsExact<float16>(run);
    ExpectMasterIsExact<bfloat16>(run);
  }
}

TEST(OptimizerOpsTest, SixteenBitParametersWithoutMasterAreUpdatedInFloat) {
  const Tensor param = Converted<bfloat16>(VectorOf<float>({1, 2}));
  const Tensor grad = VectorOf<float>({0.5f, 0.25f});
  const auto outputs = OutputsOf(
      {"sgd", {{"Param", param}, {"Grad", grad}, {"LearningRate", One(2)}}, {"ParamOut"}});
  EXPECT_EQ(outputs[0].dtype, DType::kBFloat16);
  EXPECT_EQ(Values<bfloat16>(outputs[0])[1], 1.5f);
}

TEST(OptimizerOpsTest, ThreadsGiveTheSameBits) {
  for (const Optimizer& op : AllOptimizers()) {
    const OpRun run = RunOf(op, {kLarge});
    CoreOptions two;
    two.num_threads = 2;
    CoreOptions one;
    one.num_threads = 1;
    EXPECT_TRUE(SameBits(OutputsOf(run, one), OutputsOf(run, two))) << op.type;
  }
}

TEST(OptimizerOpsTest, DevicesGiveTheSameBits) {
  for (const Optimizer& op : AllOptimizers()) {
    const OpRun run = RunOf(op, {3, 700});
    CoreOptions device;
    device.plan.place = {PlaceKind::kSim, 0};
    EXPECT_TRUE(SameBits(OutputsOf(run), OutputsOf(run, device))) << op.type;
  }
}

TEST(OptimizerOpsTest, DoubleAgreesWithFloat) {
  for (const Optimizer& op : AllOptimizers()) {
    const OpRun run = RunOf(op, {4, 5});
    OpRun wide = run;
    for (auto& [slot, tensor] : wide.inputs) tensor = Converted<double>(tensor);
    const std::vector<Tensor> want = OutputsOf(run);
    const std::vector<Tensor> got = OutputsOf(wide);
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_EQ(got[i].dtype, DType::kFloat64) << op.type;
      for (int64_t k = 0; k < want[i].numel(); ++k) {
        EXPECT_NEAR(got[i].data<double>()[k], want[i].data<float>()[k], 1e-5) << op.type;
      }
    }
  }
}

TEST(OptimizerOpsTest, ParametersWithoutElementsAreAllowed) {
  for (const Optimizer& op : AllOptimizers()) {
    EXPECT_EQ(OutputsOf(RunOf(op, {0, 3}))[0].shape, Shape({0, 3})) << op.type;
  }
}

// What clipping by a global norm makes of the gradient of a parameter of shape [].
TEST(OptimizerOpsTest, AGradientOfOneElementFitsAParameterWithoutDims) {
  OpRun run{"sgd",
            {{"Param", Tensor::Of<float>({}, std::vector<float>{3})},
             {"Grad", One(2)},
             {"LearningRate", One(0.5f)}},
            {"ParamOut"}};
  const auto outputs = OutputsOf(run);
  EXPECT_EQ(outputs[0].shape, Shape({}));
  EXPECT_EQ(Values<float>(outputs[0])[0], 2);
}

// m = 1 + 2^2 = 5, q = 1 - 0.1 * 2 / sqrt(5), p = (q - 0.1 * 0.5) / (1 + 0.1 * 0.2)
TEST(OptimizerOpsTest, ProximalAdagradFollowsItsFormula) {
  const OpRun run{
      "proximal_adagrad",
      {{"Param", One(1)}, {"Grad", One(2)}, {"LearningRate", One(0.1f)}, {"Moment", One(1)}},
      {"ParamOut", "MomentOut"},
      "l1=0.5, l2=0.2"};
  const auto outputs = OutputsOf(run);
  EXPECT_FLOAT_EQ(Values<float>(outputs[0])[0], (1 - 0.2f / std::sqrt(5.0f) - 0.05f) / 1.02f);
  EXPECT_FLOAT_EQ(Values<float>(outputs[1])[0], 5);
}

// Programs of Paddle before 1.7 advance the powers by ops of their own.
TEST(OptimizerOpsTest, AdamWithoutOutputsForThePowersLeavesThem) {
  const Optimizer op = AllOptimizers()[6];
  OpRun run = RunOf(op, {3});
  const Tensor with = OutputsOf(run)[0];
  run.outputs.resize(3);
  EXPECT_TRUE(SameBits(OutputsOf(run)[0], with));
}

TEST(OptimizerOpsTest, AdadeltaWithoutRateHasOne) {
  const Optimizer op = AllOptimizers()[11];
  OpRun run = RunOf(op, {3});
  const Tensor with = OutputsOf(With(run, 2, One(1)))[0];
  run.inputs.erase(run.inputs.begin() + 2);
  EXPECT_TRUE(SameBits(OutputsOf(run)[0], with));
}

TEST(OptimizerOpsTest, DpsgdDrawsOneNumberForAllElements) {
  const OpRun run{"dpsgd",
                  {{"Param", VectorOf<float>({0, 0, 0})},
                   {"Grad", VectorOf<float>({0, 0, 0})},
                   {"LearningRate", One(1)}},
                  {"ParamOut"},
                  "sigma=1.0, batch_size=2.0"};
  const std::vector<float> values = Values<float>(OutputsOf(run)[0]);
  EXPECT_NE(values[0], 0);
  EXPECT_THAT(values, ElementsAre(values[0], values[0], values[0]));
}

TEST(OptimizerOpsTest, SixteenBitGradientsAreUnscaled) {
  const Tensor x = Converted<float16>(VectorOf<float>({2, -4}));
  const Tensor y = Converted<bfloat16>(VectorOf<float>({2, -4}));
  for (const Tensor& grad : {x, y}) {
    const auto outputs = OutputsOf(
        {"check_finite_and_unscale", {{"X", grad}, {"Scale", One(2)}}, {"Out", "FoundInfinite"}});
    EXPECT_EQ(outputs[0].dtype, grad.dtype);
    EXPECT_FALSE(*outputs[1].data<bool>());
  }
  const Tensor infinite = Converted<float16>(VectorOf<float>({1e6f}));
  const auto outputs = OutputsOf(
      {"check_finite_and_unscale", {{"X", infinite}, {"Scale", One(2)}}, {"Out", "FoundInfinite"}});
  EXPECT_TRUE(*outputs[1].data<bool>());
}

TEST(OptimizerOpsTest, ClipByNormKeepsDoubles) {
  const Tensor x = VectorOf<double>({3, 4});
  const auto outputs = OutputsOf({"clip_by_norm", {{"X", x}}, {"Out"}, "max_norm=0.5"});
  EXPECT_THAT(Values<double>(outputs[0]), ElementsAre(DoubleEq(0.3), DoubleEq(0.4)));
}

TEST(OptimizerOpsTest, SeedIsNeverZero) {
  EXPECT_EQ(Values<int32_t>(OutputsOf({"seed", {}, {"Out"}, "seed=7"})[0])[0], 7);
  EXPECT_NE(Values<int32_t>(OutputsOf({"seed", {}, {"Out"}, "seed=0"})[0])[0], 0);
  const auto random = OutputsOf({"seed", {}, {"Out"}, "seed=7, deterministic=true"});
  EXPECT_NE(Values<int32_t>(random[0])[0], 7);
}

TEST(OptimizerOpsTest, BadInputIsRefused) {
  const OpRun sgd = RunOf(AllOptimizers()[0], {2, 3});
  const OpRun adam = RunOf(AllOptimizers()[6], {2, 3});
  const OpRun lars = RunOf(AllOptimizers()[2], {2, 3});
  OpRun decays = lars;
  decays.attrs = "lars_weight_decay=[0.1,0.2]";
  OpRun no_out = WithMaster<float16>(sgd);
  no_out.outputs.pop_back();
  OpRun centered = RunOf(AllOptimizers()[12], {2});
  centered.attrs = "centered=true";
  OpRun skip = adam;
  skip.inputs.emplace_back("SkipUpdate", One(1));
  ExpectRefusals({
      {With(sgd, 1, Numbers({3, 2}, 1)), "'Grad' has shape [3,2], expected that of 'Param', [2,3]"},
      {With(sgd, 1, Tensor::Of<int32_t>({2, 3}, {1, 2, 3, 4, 5, 6})), "expected floats"},
      {With(sgd, 2, Numbers({2}, 1)), "'LearningRate' is float32[2], expected one element"},
      {With(adam, 3, Numbers({2}, 1)), "'Moment1' has shape [2]"},
      {With(adam, 5, Numbers({2}, 1)), "'Beta1Pow' is float32[2], expected one element"},
      {skip, "'SkipUpdate' is float32[1], expected one bool"},
      {decays, "'lars_weight_decay' has 2 values, expected 1 or 1"},
      {no_out, "'MasterParam' has 1 arguments and 'MasterParamOut' 0"},
      {centered, "'MeanGradOut' is missing"},
  });
}

// As on Paddle's host: rescale_grad scales gradients that are selected rows alone.
TEST(MomentumTest, RescalesRows) {
  for (const bool sparse : {true, false}) {
    const absl::StatusOr<Program> program = ParseProgram(absl::StrCat(
        "block 0\n  var w float32[3,2] persistable\n  var v float32[3,2] persistable\n"
        "  var lr float32[1]\n  var ids int64[2]\n  var g float32[2,2]\n  var wg ",
        sparse ? "selected_rows " : "",
        "float32[3,2]\n"
        "  lookup_table_v2_grad(Ids=ids, W=w, Out@GRAD=g) -> (W@GRAD=wg) {is_sparse=",
        sparse ? "true" : "false", "}\n",
        "  momentum(Param=w, Grad=wg, Velocity=v, LearningRate=lr) -> (ParamOut=w, VelocityOut=v)"
        " {mu=0.5, rescale_grad=0.5}\n"));
    ASSERT_THAT(program, IsOk());
    auto scope = std::make_shared<Scope>();
    for (const char* name : {"w", "v"}) {
      scope->FindOrCreate(name)->tensor = Tensor::Of<float>({3, 2}, {0, 0, 0, 0, 0, 0});
    }
    const auto core = InterpreterCore::Create(*program, {"ids", "g", "lr"}, {"v"}, scope);
    ASSERT_THAT(core, IsOk());
    const auto out =
        (*core)->Run({Tensor::Of<int64_t>({2}, {2, 0}), Tensor::Of<float>({2, 2}, {1, 2, 3, 4}),
                      Tensor::Of<float>({1}, {0.1f})});
    ASSERT_THAT(out, IsOk());
    const float by = sparse ? 0.5f : 1.0f;
    EXPECT_THAT(Values<float>((*out)[0]), ElementsAre(3 * by, 4 * by, 0, 0, by, 2 * by));
  }
}

}  // namespace
}  // namespace interp::testing::optimizer_ops_test
