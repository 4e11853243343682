// Long because all ops share the statistics.
//
// Ops that draw random numbers from their stream: distributions, independence, threads, errors.
// Seeds are fixed, so a test passes always or never. Bounds are where a right generator would fail
// about once in a million seeds: 4.9 standard deviations, and as many for chi-square and
// Kolmogorov-Smirnov. With seeds of their own ops are held to Paddle's numbers by the golden cases.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "core/float16.h"
#include "core/program_parse.h"
#include "interpreter/interpreter_core.h"
#include "tests/testing/matchers.h"

namespace interp::testing::random_ops_test {
namespace {

constexpr double kDeviations = 4.9;  // two-sided probability 1e-6
constexpr int kFloat32 = 5;
constexpr int kFloat64 = 6;

struct Draws {
  std::vector<Tensor> feeds = {};
  CoreOptions options = {};
  uint64_t step = 0;
};

// Fetches `name` of a program in text form.
absl::StatusOr<Tensor> TryDraw(const std::string& text, const std::string& name,
                               const Draws& draws = {}) {
  INTERP_ASSIGN_OR_RETURN(Program program, ParseProgram(text));
  std::vector<std::string> feeds;
  if (!draws.feeds.empty()) feeds = {"x"};
  INTERP_ASSIGN_OR_RETURN(auto core, InterpreterCore::Create(std::move(program), feeds, {name},
                                                             nullptr, draws.options));
  core->SetRandomState({.seed = draws.options.random_seed, .step = draws.step});
  INTERP_ASSIGN_OR_RETURN(std::vector<Tensor> fetched, core->Run(draws.feeds));
  return fetched[0];
}

Tensor Draw(const std::string& text, const std::string& name = "out", const Draws& draws = {}) {
  absl::StatusOr<Tensor> drawn = TryDraw(text, name, draws);
  EXPECT_THAT(drawn, IsOk()) << text;
  return drawn.ok() ? *std::move(drawn) : Tensor();
}

std::string Op(const std::string& op, const std::string& attrs) {
  return absl::StrCat("block 0\n  var out float32[-1]\n  ", op, "() -> (Out=out) {", attrs, "}\n");
}
std::string OnX(const std::string& op, const std::string& attrs, const std::string& shape) {
  return absl::StrCat("block 0\n  var x float32", shape, "\n  var out float32", shape, "\n  ", op,
                      "(X=x) -> (Out=out) {", attrs, "}\n");
}

std::vector<double> Doubles(const Tensor& tensor) {
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    switch (tensor.dtype) {
      case DType::kFloat64:
        values.push_back(tensor.data<double>()[i]);
        break;
      case DType::kInt64:
        values.push_back(static_cast<double>(tensor.data<int64_t>()[i]));
        break;
      case DType::kInt32:
        values.push_back(tensor.data<int32_t>()[i]);
        break;
      case DType::kBFloat16:
        values.push_back(tensor.data<bfloat16>()[i]);
        break;
      default:
        values.push_back(tensor.data<float>()[i]);
    }
  }
  return values;
}

double Mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// The k-th moment about `mean`.
double Moment(const std::vector<double>& values, double mean, int k) {
  double sum = 0;
  for (const double v : values) sum += std::pow(v - mean, k);
  return sum / static_cast<double>(values.size());
}

// Moments 1 to 4 of values of mean 0 whose moments by theory are `m` (to the eighth): the error of
// a mean of v^k is sqrt((m[2k] - m[k]^2) / n).
void ExpectMoments(const std::vector<double>& values, const std::vector<double>& m) {
  for (int k = 1; k <= 4; ++k) {
    const double error = std::sqrt((m[2 * k] - m[k] * m[k]) / static_cast<double>(values.size()));
    EXPECT_NEAR(Moment(values, 0, k), m[k], kDeviations * error) << "moment " << k;
  }
}

// Kolmogorov-Smirnov: sqrt(n) D exceeds x with probability 2 exp(-2 x^2); 2.7 is one in a million.
void ExpectDistribution(std::vector<double> values, const std::function<double(double)>& cdf) {
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  double distance = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double p = cdf(values[i]);
    distance =
        std::max({distance, p - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - p});
  }
  EXPECT_LT(distance * std::sqrt(n), 2.7);
}

// Chi-square with k degrees of freedom: the cube root of chi2 / k is nearly normal (Wilson and
// Hilferty, 1931).
void ExpectFrequencies(const std::vector<double>& counts, const std::vector<double>& expected) {
  double chi2 = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    chi2 += (counts[i] - expected[i]) * (counts[i] - expected[i]) / expected[i];
  }
  const auto k = static_cast<double>(counts.size() - 1);
  const double spread = std::sqrt(2 / (9 * k));
  EXPECT_LT((std::cbrt(chi2 / k) - (1 - 2 / (9 * k))) / spread, kDeviations) << "chi2 " << chi2;
  EXPECT_GT((std::cbrt(chi2 / k) - (1 - 2 / (9 * k))) / spread, -kDeviations) << "chi2 " << chi2;
}

std::vector<double> Count(const std::vector<double>& values, size_t categories) {
  std::vector<double> counts(categories, 0);
  for (const double v : values) ++counts.at(static_cast<size_t>(v));
  return counts;
}

double NormalCdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

double Correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const double mean_a = Mean(a);
  const double mean_b = Mean(b);
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - mean_a) * (b[i] - mean_b);
  return sum / static_cast<double>(a.size()) /
         std::sqrt(Moment(a, mean_a, 2) * Moment(b, mean_b, 2));
}

class RandomDTypeTest : public ::testing::TestWithParam<int> {
 protected:
  std::string DTypeAttr() const { return absl::StrCat("dtype=", GetParam()); }
};

TEST_P(RandomDTypeTest, UniformNumbersAreEvenlySpread) {
  std::vector<double> values = Doubles(
      Draw(Op("uniform_random", absl::StrCat("shape=[200000], min=-1.0, max=1.0, ", DTypeAttr()))));
  ASSERT_EQ(values.size(), 200000u);
  ExpectMoments(values, {1, 0, 1.0 / 3, 0, 1.0 / 5, 0, 1.0 / 7, 0, 1.0 / 9});
  EXPECT_GE(*std::min_element(values.begin(), values.end()), -1);
  EXPECT_LE(*std::max_element(values.begin(), values.end()), 1);
  ExpectDistribution(std::move(values), [](double x) { return (x + 1) / 2; });
}

TEST_P(RandomDTypeTest, GaussianNumbersAreNormal) {
  std::vector<double> values = Doubles(Draw(
      Op("gaussian_random", absl::StrCat("shape=[200000], mean=3.0, std=2.0, ", DTypeAttr()))));
  for (double& v : values) v = (v - 3) / 2;
  ExpectMoments(values, {1, 0, 1, 0, 3, 0, 15, 0, 105});
  ExpectDistribution(std::move(values), NormalCdf);
}

TEST_P(RandomDTypeTest, TruncatedNumbersAreNormalBetweenTheBounds) {
  std::vector<double> values =
      Doubles(Draw(Op("truncated_gaussian_random",
                      absl::StrCat("shape=[200000], mean=3.0, std=2.0, ", DTypeAttr()))));
  for (double& v : values) v = (v - 3) / 2;
  EXPECT_GT(*std::min_element(values.begin(), values.end()), -2.000001);
  EXPECT_LT(*std::max_element(values.begin(), values.end()), 2.000001);
  const double within = NormalCdf(2) - NormalCdf(-2);
  const double variance = 1 - 4 * std::exp(-2.0) / std::sqrt(2 * M_PI) / within;
  EXPECT_NEAR(Moment(values, 0, 2), variance, kDeviations * std::sqrt(0.9 / 200000));
  ExpectDistribution(std::move(values),
                     [=](double x) { return (NormalCdf(x) - NormalCdf(-2)) / within; });
}

INSTANTIATE_TEST_SUITE_P(Floats, RandomDTypeTest, ::testing::Values(kFloat32, kFloat64));

TEST(RandomOpsTest, UniformNumbersInBFloat16) {
  const std::vector<double> values =
      Doubles(Draw(Op("uniform_random", "shape=[20000], min=0.0, max=1.0, dtype=22")));
  EXPECT_NEAR(Mean(values), 0.5, kDeviations * std::sqrt(1.0 / 12 / 20000));
}

TEST(RandomOpsTest, TheDiagonalIsSet) {
  const Tensor out =
      Draw(Op("uniform_random", "shape=[3,3], diag_num=3, diag_step=3, diag_val=9.0, dtype=5"));
  for (int64_t i = 0; i < 9; ++i) EXPECT_EQ(out.data<float>()[i] == 9.0F, i % 4 == 0) << i;
}

TEST(RandomOpsTest, RandintIsEven) {
  for (const int dtype : {2, 3}) {
    const std::vector<double> values =
        Doubles(Draw(Op("randint", absl::StrCat("shape=[100000], low=0, high=37, dtype=", dtype))));
    ExpectFrequencies(Count(values, 37), std::vector<double>(37, 100000.0 / 37));
  }
}

TEST(RandomOpsTest, RandintReachesAllIntegers) {
  const std::vector<double> values =
      Doubles(Draw(Op("randint", "shape=[100000], low=-2147483648, high=2147483647, dtype=2")));
  std::vector<double> units;
  for (const double v : values) units.push_back((v + 2147483648.0) / 4294967295.0);
  ExpectDistribution(std::move(units), [](double x) { return x; });
}

TEST(RandomOpsTest, RandpermIsAPermutation) {
  for (const int dtype : {2, 3, 5, 6}) {
    std::vector<double> values =
        Doubles(Draw(Op("randperm", absl::StrCat("n=1000, dtype=", dtype))));
    std::sort(values.begin(), values.end());
    for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], static_cast<double>(i));
  }
}

TEST(RandomOpsTest, AllPermutationsAreEquallyLikely) {
  std::map<std::vector<double>, double> seen;
  constexpr int kRuns = 12000;
  absl::StatusOr<Program> program = ParseProgram(Op("randperm", "n=4, dtype=3"));
  ASSERT_THAT(program, IsOk());
  auto core = InterpreterCore::Create(*program, {}, {"out"}, nullptr);
  ASSERT_THAT(core, IsOk());
  for (int run = 0; run < kRuns; ++run) ++seen[Doubles((*(*core)->Run({}))[0])];
  ASSERT_EQ(seen.size(), 24u);
  std::vector<double> counts;
  for (const auto& [order, count] : seen) counts.push_back(count);
  ExpectFrequencies(counts, std::vector<double>(24, kRuns / 24.0));
}

TEST(RandomOpsTest, BernoulliTakesItsProbabilities) {
  constexpr int kEach = 50000;
  const std::vector<float> probabilities = {0, 0.01F, 0.3F, 0.5F, 0.97F, 1};
  std::vector<float> x;
  for (const float p : probabilities) x.insert(x.end(), kEach, p);
  const std::vector<double> values =
      Doubles(Draw(OnX("bernoulli", "", "[-1]"), "out", {.feeds = {VectorOf<float>(x)}}));
  for (size_t i = 0; i < probabilities.size(); ++i) {
    const double p = probabilities[i];
    const double ones =
        std::accumulate(values.begin() + i * kEach, values.begin() + (i + 1) * kEach, 0.0);
    EXPECT_NEAR(ones, p * kEach, kDeviations * std::sqrt(p * (1 - p) * kEach)) << p;
  }
}

TEST(RandomOpsTest, MultinomialWithReplacement) {
  const Tensor x = Tensor::Of<float>({2, 4}, std::vector<float>{1, 0, 3, 6, 5, 5, 0, 0});
  const Tensor out = Draw(OnX("multinomial", "num_samples=50000, replacement=true", "[-1,4]"),
                          "out", {.feeds = {x}});
  ASSERT_EQ(out.shape, (Shape{2, 50000}));
  const std::vector<double> values = Doubles(out);
  const std::vector<double> counts = Count({values.begin(), values.begin() + 50000}, 4);
  EXPECT_EQ(counts[1], 0);
  ExpectFrequencies({counts[0], counts[2], counts[3]}, {5000, 15000, 30000});
  const std::vector<double> second = Count({values.begin() + 50000, values.end()}, 4);
  ExpectFrequencies({second[0], second[1]}, {25000, 25000});
}

// P(a, then b) = w_a / W * w_b / (W - w_a).
TEST(RandomOpsTest, MultinomialWithoutReplacement) {
  const std::vector<double> weights = {1, 2, 3, 4};
  constexpr int kRows = 60000;
  std::vector<float> x;
  for (int i = 0; i < kRows; ++i) x.insert(x.end(), {1, 2, 3, 4});
  const Tensor out = Draw(OnX("multinomial", "num_samples=2", "[-1,4]"), "out",
                          {.feeds = {Tensor::Of<float>({kRows, 4}, x)}});
  std::vector<double> counts(16, 0);
  for (int i = 0; i < kRows; ++i) {
    ++counts[out.data<int64_t>()[2 * i] * 4 + out.data<int64_t>()[2 * i + 1]];
  }
  std::vector<double> seen;
  std::vector<double> expected;
  for (int a = 0; a < 4; ++a) {
    EXPECT_EQ(counts[a * 4 + a], 0);
    for (int b = 0; b < 4; ++b) {
      if (a == b) continue;
      seen.push_back(counts[a * 4 + b]);
      expected.push_back(kRows * weights[a] / 10 * weights[b] / (10 - weights[a]));
    }
  }
  ExpectFrequencies(seen, expected);
}

TEST(RandomOpsTest, DropoutKeepsAndScales) {
  constexpr int64_t kElements = 100000;
  const Tensor ones = VectorOf<float>(std::vector<float>(kElements, 1));
  for (const bool upscale : {true, false}) {
    const std::string text = absl::StrCat(
        "block 0\n  var x float32[-1]\n  var out float32[-1]\n  var mask uint8[-1]\n"
        "  dropout(X=x) -> (Out=out, Mask=mask) {dropout_prob=0.3, dropout_implementation=\"",
        upscale ? "upscale_in_train" : "downgrade_in_infer", "\"}\n");
    const Tensor out = Draw(text, "out", {.feeds = {ones}});
    const Tensor mask = Draw(text, "mask", {.feeds = {ones}});
    int64_t kept = 0;
    const float value = upscale ? 1 / (1.0F - 0.3F) : 1.0F;
    for (int64_t i = 0; i < kElements; ++i) {
      const bool keep = mask.data<uint8_t>()[i] != 0;
      kept += keep ? 1 : 0;
      ASSERT_EQ(out.data<float>()[i], keep ? value : 0.0F);
    }
    EXPECT_NEAR(kept, 0.7 * kElements, kDeviations * std::sqrt(0.21 * kElements));
  }
}

TEST(RandomOpsTest, DropoutOfAllAndOfNothing) {
  const Tensor x = VectorOf<float>({1, 2, 3});
  for (const float p : {0.0F, 1.0F}) {
    const std::string attrs =
        absl::StrCat("dropout_prob=", p, ".0, dropout_implementation=\"upscale_in_train\"");
    const Tensor out = Draw(OnX("dropout", attrs, "[-1]"), "out", {.feeds = {x}});
    EXPECT_EQ(Values<float>(out),
              p == 0 ? std::vector<float>({1, 2, 3}) : std::vector<float>(3, 0));
  }
}

// With a seed as Paddle 2.6.2 does; a seed that is not fixed does not count.
TEST(RandomOpsTest, DropoutNdDrawsBySeedsThatAreFixed) {
  const Tensor ones = VectorOf<float>(std::vector<float>(16, 1));
  const auto draw = [&](bool fixed, const std::string& name) {
    std::string text = "block 0\n  var x float32[-1]\n";
    for (const char* number : {"1", "2"}) {
      absl::StrAppend(&text, "  var out", number, " float32[-1]\n  var mask", number,
                      " uint8[-1]\n");
    }
    for (const char* number : {"1", "2"}) {
      absl::StrAppend(&text, "  dropout_nd(X=x) -> (Out=out", number, ", Mask=mask", number,
                      ") {axis=[0], dropout_prob=0.5, seed=5, fix_seed=", fixed ? "true" : "false",
                      ", dropout_implementation=\"upscale_in_train\"}\n");
    }
    return Values<float>(Draw(text, name, {.feeds = {ones}}));
  };
  EXPECT_THAT(draw(true, "out1"),
              ::testing::ElementsAre(2, 0, 0, 2, 0, 0, 0, 2, 2, 0, 0, 2, 0, 2, 0, 0));
  EXPECT_EQ(draw(true, "out2"), draw(true, "out1"));
  EXPECT_NE(draw(false, "out2"), draw(false, "out1"));
}

TEST(RandomOpsTest, BatchSizeLikeTakesOneDimension) {
  const Tensor x = Tensor::Of<float>({3, 2}, std::vector<float>(6, 0));
  for (const std::string op : {"uniform_random", "gaussian_random"}) {
    for (const std::string dtype : {"5", "6"}) {
      const std::string text = absl::StrCat(
          "block 0\n  var x float32[-1,2]\n  var out float32[-1,4]\n  ", op,
          "_batch_size_like(Input=x) -> (Out=out) {shape=[-1,4], dtype=", dtype, "}\n");
      EXPECT_EQ(Draw(text, "out", {.feeds = {x}}).shape, (Shape{3, 4}));
    }
  }
}

// Unlike fill_constant_batch_size_like, which counts sequences.
TEST(RandomOpsTest, BatchSizeLikeTakesTheRowsOfSequences) {
  Tensor x = Tensor::Of<float>({3, 2}, std::vector<float>(6, 0));
  x.lod = {{0, 1, 3}};
  const auto rows = [&](const std::string& op) {
    return Draw(absl::StrCat("block 0\n  var x float32[-1,2]\n  var out float32[-1,4]\n  ", op,
                             "_batch_size_like(Input=x) -> (Out=out) {shape=[-1,4], dtype=5}\n"),
                "out", {.feeds = {x}})
        .shape[0];
  };
  EXPECT_EQ(rows("uniform_random"), 3);
  EXPECT_EQ(rows("gaussian_random"), 3);
  EXPECT_EQ(rows("fill_constant"), 2);
}

// --- what numbers depend on, and what not ---

TEST(RandomStreamsTest, StepsSeedsOpsAndNeighboursAreIndependent) {
  const std::string text =
      "block 0\n  var out float32[-1]\n  var other float32[-1]\n"
      "  gaussian_random() -> (Out=out) {shape=[100000]}\n"
      "  gaussian_random() -> (Out=other) {shape=[100000]}\n";
  const std::vector<double> base = Doubles(Draw(text));
  const double bound = kDeviations / std::sqrt(100000.0);
  CoreOptions seeded;
  seeded.random_seed = 1;
  EXPECT_LT(std::fabs(Correlation(base, Doubles(Draw(text, "out", {.step = 1})))), bound);
  EXPECT_LT(std::fabs(Correlation(base, Doubles(Draw(text, "out", {.options = seeded})))), bound);
  EXPECT_LT(std::fabs(Correlation(base, Doubles(Draw(text, "other")))), bound);
  for (const int lag : {1, 2, 3, 4, 1000}) {
    const std::vector<double> early(base.begin(), base.end() - lag);
    const std::vector<double> late(base.begin() + lag, base.end());
    EXPECT_LT(std::fabs(Correlation(early, late)), bound * 1.01) << lag;
  }
}

// Programs of all random ops, large enough for several threads.
std::string EveryOp() {
  return "block 0\n  var x float32[-1]\n"
         "  var u float32[-1]\n  var g float32[-1]\n  var t float64[-1]\n  var i int64[-1]\n"
         "  var p int64[-1]\n  var b float32[-1]\n  var m int64[-1]\n  var d float32[-1]\n"
         "  uniform_random() -> (Out=u) {shape=[50001], min=0.0, max=1.0}\n"
         "  gaussian_random() -> (Out=g) {shape=[50003]}\n"
         "  truncated_gaussian_random() -> (Out=t) {shape=[40001], dtype=6}\n"
         "  randint() -> (Out=i) {shape=[40001], low=0, high=100}\n"
         "  randperm() -> (Out=p) {n=1000}\n"
         "  bernoulli(X=u) -> (Out=b)\n"
         "  multinomial(X=u) -> (Out=m) {num_samples=100}\n"
         "  dropout(X=x) -> (Out=d) {dropout_prob=0.4}\n";
}

std::vector<std::vector<Tensor>> ThreeRuns(const CoreOptions& options) {
  absl::StatusOr<Program> program = ParseProgram(EveryOp());
  EXPECT_THAT(program, IsOk());
  const std::vector<std::string> fetches = {"u", "g", "t", "i", "p", "b", "m", "d"};
  auto core = InterpreterCore::Create(*program, {"x"}, fetches, nullptr, options);
  EXPECT_THAT(core, IsOk());
  std::vector<std::vector<Tensor>> runs;
  const Tensor x = VectorOf<float>(std::vector<float>(50002, 1));
  for (int run = 0; run < 3; ++run) {
    auto fetched = (*core)->Run({x});
    EXPECT_THAT(fetched, IsOk());
    runs.push_back(*std::move(fetched));
  }
  return runs;
}

void ExpectTheSame(const std::vector<std::vector<Tensor>>& expected, const CoreOptions& options,
                   const std::string& name) {
  const std::vector<std::vector<Tensor>> runs = ThreeRuns(options);
  for (size_t run = 0; run < runs.size(); ++run) {
    EXPECT_TRUE(SameBits(runs[run], expected[run])) << name << ", run " << run;
  }
}

TEST(RandomStreamsTest, EverySchedulerDrawsTheSame) {
  const auto expected = ThreeRuns({.scheduler = SchedulerKind::kSerial, .num_threads = 1});
  for (size_t i = 0; i < expected[0].size(); ++i) {
    EXPECT_FALSE(SameBits(expected[0][i], expected[1][i])) << "fetch " << i << " repeats itself";
  }
  ExpectTheSame(expected, {.scheduler = SchedulerKind::kTrace}, "trace");
  for (const int threads : {2, 3, 8}) {
    ExpectTheSame(expected, {.num_threads = threads}, absl::StrCat(threads, " threads"));
  }
  for (int workers = 1; workers <= 8; ++workers) {
    ExpectTheSame(expected,
                  {.scheduler = SchedulerKind::kAsync, .num_workers = workers, .num_threads = 2},
                  absl::StrCat(workers, " workers"));
  }
  for (const int workers : {1, 2, 5}) {
    ExpectTheSame(expected, {.scheduler = SchedulerKind::kEngine, .num_workers = workers},
                  absl::StrCat("engine, ", workers, " workers"));
  }
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    ExpectTheSame(expected, {.scheduler = SchedulerKind::kShuffle, .schedule_seed = seed},
                  absl::StrCat("shuffled by ", seed));
  }
  CoreOptions plain;
  plain.passes.disable = {"prune", "simplify", "inplace"};
  plain.plan.optimize_layout = false;
  plain.plan.garbage_collection = false;
  ExpectTheSame(expected, plain, "without passes");
}

TEST(RandomStreamsTest, ADeviceDrawsTheSame) {
  const auto expected = ThreeRuns({});
  for (const auto execution :
       {SimOptions::Execution::kThreads, SimOptions::Execution::kInterleaved}) {
    CoreOptions options;
    options.plan.place = {PlaceKind::kSim, 0};
    options.sim.execution = execution;
    ExpectTheSame(expected, options, "sim");
  }
}

// --- errors ---

TEST(RandomOpsTest, ErrorsNameWhatIsWrong) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(TryDraw(Op("randint", "shape=[2], low=5, high=5"), "out"),
              FailsWith(kInvalid, "attribute 'low' is 5"));
  EXPECT_THAT(TryDraw(Op("randint", "shape=[-1,2], low=0, high=5"), "out"),
              FailsWith(kInvalid, "expected no negative dim"));
  EXPECT_THAT(TryDraw(Op("randint", "shape=[2], low=0, high=5, dtype=5"), "out"),
              FailsWith(absl::StatusCode::kUnimplemented, "no kernel for float32"));
  EXPECT_THAT(TryDraw(Op("randperm", "n=-1"), "out"), FailsWith(kInvalid, "attribute 'n' is -1"));
  for (const char* diagonal : {"diag_num=5, diag_step=3", "diag_num=2, diag_step=-3",
                               "diag_num=2147483647, diag_step=2147483647"}) {
    EXPECT_THAT(TryDraw(Op("uniform_random", absl::StrCat("shape=[3,3], ", diagonal)), "out"),
                FailsWith(kInvalid, "lead outside of 9 elements"));
  }
  const auto on = [](const std::string& op, const std::string& attrs, std::vector<float> x) {
    return TryDraw(OnX(op, attrs, "[-1]"), "out", {.feeds = {VectorOf<float>(std::move(x))}});
  };
  EXPECT_THAT(on("bernoulli", "", {0, 1.5}), FailsWith(kInvalid, "element 1 of 'X' is 1.5"));
  EXPECT_THAT(on("bernoulli", "", {NAN}), FailsWith(kInvalid, "expected a probability"));
  EXPECT_THAT(on("multinomial", "", {1, -1}), FailsWith(kInvalid, "a weight in 'X' is -1"));
  EXPECT_THAT(on("multinomial", "", {0, 0}), FailsWith(kInvalid, "no weight above 0"));
  EXPECT_THAT(on("multinomial", "", {}), FailsWith(kInvalid, "no weight above 0"));
  EXPECT_THAT(on("multinomial", "", {1, INFINITY}), FailsWith(kInvalid, "add up to inf"));
  EXPECT_THAT(on("multinomial", "num_samples=2", {1, 0}), FailsWith(kInvalid, "only 1 weights"));
  EXPECT_THAT(on("multinomial", "num_samples=0", {1}), FailsWith(kInvalid, "'num_samples' is 0"));
}

}  // namespace
}  // namespace interp::testing::random_ops_test
