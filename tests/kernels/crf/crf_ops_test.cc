// Ops of kernels/crf beyond what Paddle's golden cases show: scores by counting all tags, other
// index types, threads, inputs that do not fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/kernels/op_runs.h"

namespace interp::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

const std::vector<std::string> kCrfOutputs = {"Alpha", "EmissionExps", "TransitionExps",
                                              "LogLikelihood"};
constexpr int64_t kTags = 3;
const Lod kLod = {{0, 4, 4, 5}};
constexpr int64_t kRows = 5;

// The score of tags of the rows from `first` on.
double ScoreOf(const Tensor& emission, const Tensor& transition, int64_t first,
               const std::vector<int64_t>& tags) {
  const double* x = emission.data<double>() + first * kTags;
  const double* w = transition.data<double>();
  double score = w[tags.front()] + w[kTags + tags.back()];
  for (size_t t = 0; t < tags.size(); ++t) score += x[t * kTags + tags[t]];
  for (size_t t = 1; t < tags.size(); ++t) score += w[(2 + tags[t - 1]) * kTags + tags[t]];
  return score;
}

// Calls visit with each list of `length` tags.
template <typename Visit>
void ForAllTags(int64_t length, const Visit& visit) {
  std::vector<int64_t> tags(static_cast<size_t>(length));
  for (;;) {
    visit(tags);
    size_t i = 0;
    while (i < tags.size() && ++tags[i] == kTags) tags[i++] = 0;
    if (i == tags.size()) return;
  }
}

TEST(LinearChainCrfTest, TheCostIsThatOfCountingAllTags) {
  const Tensor emission = Numbers<double>({kRows, kTags}, 1, kLod);
  const Tensor transition = Numbers<double>({kTags + 2, kTags}, 2);
  const std::vector<int64_t> labels = {2, 0, 0, 1, 2};
  const std::vector<Tensor> outputs = OutputsOf({"linear_chain_crf",
                                                 {{"Emission", emission},
                                                  {"Transition", transition},
                                                  {"Label", TensorOf({kRows, 1}, labels, kLod)}},
                                                 kCrfOutputs,
                                                 ""});
  const double* cost = outputs[3].data<double>();
  EXPECT_EQ(cost[1], 0);
  for (const int64_t i : {0, 2}) {
    const int64_t first = kLod[0][i];
    const int64_t length = kLod[0][i + 1] - first;
    double sum = 0;
    ForAllTags(length, [&](const std::vector<int64_t>& tags) {
      sum += std::exp(ScoreOf(emission, transition, first, tags));
    });
    const std::vector<int64_t> label(labels.begin() + first, labels.begin() + first + length);
    EXPECT_NEAR(cost[i], std::log(sum) - ScoreOf(emission, transition, first, label), 1e-12);
  }
}

TEST(CrfDecodingTest, ThePathHasTheBestScoreOfAllTags) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    const Tensor emission = Numbers<double>({kRows, kTags}, seed, kLod);
    const Tensor transition = Numbers<double>({kTags + 2, kTags}, seed + 100);
    const std::vector<Tensor> outputs =
        OutputsOf({"crf_decoding",
                   {{"Emission", emission}, {"Transition", transition}},
                   {"ViterbiPath"},
                   ""});
    std::vector<int64_t> best;
    double most = -std::numeric_limits<double>::infinity();
    ForAllTags(4, [&](const std::vector<int64_t>& tags) {
      const double score = ScoreOf(emission, transition, 0, tags);
      if (score > most) {
        most = score;
        best = tags;
      }
    });
    std::vector<int64_t> path = Values<int64_t>(outputs[0]);
    path.pop_back();
    EXPECT_THAT(path, ElementsAreArray(best)) << seed;
  }
}

TEST(CrfDecodingTest, ScoresThatAreNoNumbersGiveTagsInRange) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float value : {kNan, -kInfinity, kInfinity}) {
    Tensor emission = Tensor::Of<float>({4, 2}, std::vector<float>(8, value));
    emission.lod = {{0, 4}};
    const std::vector<Tensor> outputs =
        OutputsOf({"crf_decoding",
                   {{"Emission", emission}, {"Transition", Numbers({4, 2}, 1)}},
                   {"ViterbiPath"},
                   ""});
    for (const int64_t tag : Values<int64_t>(outputs[0])) EXPECT_TRUE(tag == 0 || tag == 1);
  }
}

// Paddle before 2.0 declares it as float32.
TEST(CrfDecodingTest, ThePathIsCastWhateverItIsDeclaredAs) {
  absl::StatusOr<Program> program = ParseProgram(R"(block 0
  var emission float32[-1,3]
  var transition float32[5,3]
  var path float32[-1,1]
  var cast_path float32[-1,1]
  var one float32[1]
  var next float32[-1,1]
  crf_decoding(Emission=emission, Transition=transition) -> (ViterbiPath=path)
  cast(X=path) -> (Out=cast_path) {in_dtype=5, out_dtype=5}
  fill_constant() -> (Out=one) {shape=[1], value=1.0, dtype=5}
  elementwise_add(X=cast_path, Y=one) -> (Out=next)
)");
  ASSERT_THAT(program, IsOk());
  const auto core = InterpreterCore::Create(*std::move(program), {"emission", "transition"},
                                            {"path", "next"}, nullptr, {});
  ASSERT_THAT(core, IsOk());
  const auto fetched =
      (*core)->Run({Numbers({kRows, kTags}, 1, kLod), Numbers({kTags + 2, kTags}, 2)});
  ASSERT_THAT(fetched, IsOk());
  ASSERT_EQ((*fetched)[0].dtype, DType::kInt64);
  ASSERT_EQ((*fetched)[1].dtype, DType::kFloat32);
  std::vector<float> expected;
  for (const int64_t tag : Values<int64_t>((*fetched)[0])) {
    expected.push_back(static_cast<float>(tag + 1));
  }
  EXPECT_EQ(Values<float>((*fetched)[1]), expected);
}

TEST(CrfOpsTest, IndicesMayBeOf32Bits) {
  OpRun run = {"linear_chain_crf",
               {{"Emission", Numbers({kRows, kTags}, 1, kLod)},
                {"Transition", Numbers({kTags + 2, kTags}, 2)},
                {"Label", TensorOf<int64_t>({kRows, 1}, {2, 0, 0, 1, 2}, kLod)}},
               kCrfOutputs,
               ""};
  const Tensor narrow = TensorOf<int32_t>({kRows, 1}, {2, 0, 0, 1, 2}, kLod);
  EXPECT_TRUE(SameBits(OutputsOf(run), OutputsOf(With(run, 2, narrow))));
  run.type = "crf_decoding";
  run.outputs = {"ViterbiPath"};
  EXPECT_TRUE(SameBits(OutputsOf(run), OutputsOf(With(run, 2, narrow))));
}

OpRun CtcRun(const Tensor& logits, const std::vector<int64_t>& rows) {
  const auto count = static_cast<int64_t>(rows.size());
  std::vector<int64_t> labels;
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < count; ++i) {
    labels.insert(labels.end(), {1 + i % 3, 2, 2});
    lengths.push_back(i % 4);
  }
  return {"warpctc",
          {{"Logits", logits},
           {"Label", TensorOf({count, 3}, labels)},
           {"LogitsLength", TensorOf({count}, rows)},
           {"LabelLength", TensorOf({count}, lengths)}},
          {"Loss", "WarpCTCGrad"},
          ""};
}

TEST(WarpCtcTest, AnyNumberOfThreadsGivesTheSameBits) {
  const OpRun run = CtcRun(Numbers({9, 7, 4}, 1), {9, 3, 0, 6, 7, 1, 9});
  const std::vector<Tensor> alone = OutputsOf(run, {.num_threads = 1});
  for (const int threads : {2, 3, 9}) {
    EXPECT_TRUE(SameBits(OutputsOf(run, {.num_threads = threads}), alone)) << threads;
  }
}

TEST(WarpCtcTest, TheGradientMayBeAbsent) {
  OpRun run = CtcRun(Numbers({9, 3, 4}, 1), {9, 3, 6});
  const Tensor loss = OutputsOf(run)[0];
  run.outputs = {"Loss"};
  EXPECT_TRUE(SameBits(OutputsOf(run)[0], loss));
}

// The gradient of each row sums up to 0, and moving the logits against it lowers the loss by as
// much as it says.
TEST(WarpCtcTest, TheGradientIsTheDerivativeOfTheLoss) {
  const std::vector<int64_t> rows = {2, 4};
  const Tensor logits = Numbers<double>({4, 2, 3}, 3);
  const std::vector<Tensor> outputs = OutputsOf(CtcRun(logits, rows));
  const std::vector<double> grad = Values<double>(outputs[1]);
  constexpr double kStep = 1e-6;
  for (int64_t i = 0; i < logits.numel(); ++i) {
    double loss[2] = {};
    for (const int side : {0, 1}) {
      std::vector<double> moved = Values<double>(logits);
      moved[i] += side == 0 ? -kStep : kStep;
      for (const double l :
           Values<double>(OutputsOf(CtcRun(Tensor::Of<double>({4, 2, 3}, moved), rows))[0])) {
        loss[side] += l;
      }
    }
    EXPECT_NEAR(grad[i], (loss[1] - loss[0]) / (2 * kStep), 1e-8) << i;
  }
}

TEST(WarpCtcTest, ALabelOfProbabilityZeroHasAnInfiniteLoss) {
  std::vector<float> values(12, 0.0f);
  for (int64_t t = 0; t < 4; ++t) values[t * 3 + 2] = -std::numeric_limits<float>::infinity();
  Tensor logits = Tensor::Of<float>({4, 3}, values);
  logits.lod = {{0, 4}};
  const std::vector<Tensor> outputs =
      OutputsOf({"warpctc",
                 {{"Logits", logits}, {"Label", TensorOf<int32_t>({1, 1}, {2}, {{0, 1}})}},
                 {"Loss", "WarpCTCGrad"},
                 ""});
  EXPECT_THAT(Values<float>(outputs[0]), ElementsAre(std::numeric_limits<float>::infinity()));
  for (const float g : Values<float>(outputs[1])) EXPECT_TRUE(std::isfinite(g));
}

TEST(CrfOpsTest, InputsThatDoNotFitAreRefused) {
  const Tensor label = TensorOf<int64_t>({kRows, 1}, {2, 0, 0, 1, 2}, kLod);
  const OpRun crf = {"linear_chain_crf",
                     {{"Emission", Numbers({kRows, kTags}, 1, kLod)},
                      {"Transition", Numbers({kTags + 2, kTags}, 2)},
                      {"Label", label}},
                     kCrfOutputs,
                     ""};
  OpRun decoding = crf;
  decoding.type = "crf_decoding";
  decoding.outputs = {"ViterbiPath"};
  for (const OpRun& run : {crf, decoding}) {
    ExpectRefusals({
        {With(run, 0, Numbers({kRows, 1, kTags}, 1, kLod)), "expected [rows, tags]"},
        {With(run, 1, Numbers({kTags, kTags}, 1)), "expected [tags + 2, tags] with 3 tags"},
        {With(run, 2, TensorOf<int64_t>({4, 1}, {0, 1, 2, 0}, {{0, 4}})),
         "expected a tag for each"},
        {With(run, 2, Numbers({kRows, 1}, 1, kLod)), "expected int32 or int64"},
    });
  }
  ExpectRefusals({
      {With(crf, 2, TensorOf<int64_t>({kRows, 1}, {0, 1, 2, 3, 0}, kLod)), "the value 3"},
      {With(crf, 2, TensorOf<int64_t>({kRows, 1}, {0, -1, 2, 0, 0}, kLod)), "the value -1"},
      {With(crf, 2, TensorOf<int64_t>({kRows, 1}, {0, 1, 2, 0, 0})),
       "'Label' is int64[5,1] without"},
      {With(decoding, 0, Numbers({kRows, kTags}, 1)), "'Emission' is float32[5,3] without LoD"},
      {With(crf, 1,
            Tensor::Of<float>({kTags + 2, kTags},
                              std::vector<float>(15, std::numeric_limits<float>::quiet_NaN()))),
       "sequence 0 has scores whose exponentials have no positive sum"},
  });
}

TEST(CrfOpsTest, LengthsThatDoNotFitAreRefused) {
  const OpRun decoding = {"crf_decoding",
                          {{"Emission", Numbers({2, 4, kTags}, 1)},
                           {"Transition", Numbers({kTags + 2, kTags}, 2)},
                           {"Length", TensorOf<int64_t>({2, 1}, {1, 4})}},
                          {"ViterbiPath"},
                          ""};
  OpRun crf = decoding;
  crf.type = "linear_chain_crf";
  crf.outputs = kCrfOutputs;
  crf.inputs.emplace_back("Label", TensorOf({2, 4}, std::vector<int64_t>(8)));
  for (const OpRun& run : {crf, decoding}) {
    EXPECT_THAT(RunOp(run), IsOk());
    ExpectRefusals({
        {With(run, 2, TensorOf<int64_t>({2, 1}, {1, 5})),
         "'Length' gives sequence 1 the length 5, expected 0 to 4"},
        {With(run, 2, TensorOf<int64_t>({2, 1}, {-1, 4})),
         "sequence 0 the length -1, expected 0 to 4"},
        {With(run, 2, TensorOf<int64_t>({3, 1}, {1, 2, 3})), "expected 2 elements"},
        {With(run, 0, Numbers({8, kTags}, 1)), "[batch, steps, tags] with 'Length'"},
    });
  }
}

TEST(CrfOpsTest, InputsOfViterbiDecodeThatDoNotFitAreRefused) {
  const OpRun run = {"viterbi_decode",
                     {{"Input", Numbers({2, 4, 3}, 1)},
                      {"Transition", Numbers({3, 3}, 2)},
                      {"Length", TensorOf<int64_t>({2}, {1, 4})}},
                     {"Scores", "Path"},
                     ""};
  ExpectRefusals({
      {With(run, 0, Numbers({8, 3}, 1)), "expected [batch, steps, tags]"},
      {With(run, 0, Numbers({2, 4, 1}, 1)), "at least 1 step and 2 tags"},
      {With(run, 0, Numbers({2, 0, 3}, 1)), "at least 1 step"},
      {With(run, 1, Numbers({3, 2}, 1)), "'Transition' has shape [3,2], expected [3,3]"},
      {With(run, 2, TensorOf<int64_t>({2}, {1, 5})),
       "'Length' gives sequence 1 the length 5, expected 0 to 4"},
      {With(run, 2, TensorOf<int64_t>({1}, {1})), "expected 2 elements"},
  });
}

TEST(CrfOpsTest, InputsOfWarpCtcThatDoNotFitAreRefused) {
  const OpRun padded = CtcRun(Numbers({9, 3, 4}, 1), {9, 3, 6});
  const Lod lod = {{0, 4, 6}};
  const OpRun joined = {"warpctc",
                        {{"Logits", Numbers({6, 4}, 1, lod)},
                         {"Label", TensorOf<int32_t>({3, 1}, {1, 2, 3}, {{0, 2, 3}})}},
                        {"Loss", "WarpCTCGrad"},
                        ""};
  OpRun blank = joined;
  blank.attrs = "blank=4";
  OpRun half = padded;
  half.inputs.pop_back();
  ExpectRefusals({
      {blank, "'blank' is 4, expected 0 to 3"},
      {half, "'LogitsLength' and 'LabelLength' are not given both"},
      {With(joined, 0, Numbers({6, 4}, 1)), "'Logits' is float32[6,4] without LoD"},
      {With(joined, 1, TensorOf<int32_t>({3, 1}, {1, 2, 3}, {{0, 3}})), "2 and 1 sequences"},
      {With(joined, 1, TensorOf<int32_t>({3, 1}, {1, 2, 4}, {{0, 2, 3}})), "the value 4"},
      {With(padded, 1, TensorOf<int64_t>({2, 3}, {1, 1, 1, 1, 1, 1})), "expected [3,U]"},
      {With(padded, 2, TensorOf<int64_t>({3}, {9, 10, 1})),
       "'LogitsLength' gives sequence 1 the length 10, expected 0 to 9"},
      {With(padded, 3, TensorOf<int64_t>({3}, {1, 4, 1})),
       "'LabelLength' gives sequence 1 the length 4, expected 0 to 3"},
      {With(padded, 0, Numbers({9, 12}, 1)), "[steps, batch, tags] with 'LogitsLength'"},
  });
}

// A path through NaN is not one that is impossible.
TEST(WarpRnntTest, LossesOfNanAreNan) {
  Tensor input = Numbers<float>({2, 3, 2, 4}, 1);
  input.mutable_data<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<Tensor> outputs =
      OutputsOf({"warprnnt",
                 {{"input", input},
                  {"label", TensorOf<int32_t>({2, 1}, {1, 2})},
                  {"input_lengths", TensorOf<int32_t>({2}, {3, 3})},
                  {"label_lengths", TensorOf<int32_t>({2}, {1, 1})}},
                 {"loss", "warprnntgrad"},
                 "blank=0"});
  EXPECT_TRUE(std::isnan(outputs[0].data<float>()[0]));
  EXPECT_FALSE(std::isnan(outputs[0].data<float>()[1]));
}

}  // namespace
}  // namespace interp::testing
