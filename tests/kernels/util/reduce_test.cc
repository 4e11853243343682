// Reductions against a definition by index, for every set of dimensions, in both layouts, and the
// accuracy of ops that sum.
#include "kernels/util/reduce.h"

#include <cmath>
#include <string>
#include <vector>

#include "core/program_parse.h"
#include "gtest/gtest.h"
#include "tests/testing/kernel_runner.h"

namespace interp::testing::reduce_test {
namespace {

struct SumOf {
  using Acc = double;
  Acc Init() const { return 0; }
  Acc Map(float x, int64_t) const { return x; }
  Acc Fold(Acc a, Acc b) const { return a + b; }
};

float AsFloat(double total, int64_t) { return static_cast<float>(total); }

Tensor Zeros(const Shape& shape, Layout layout = Layout::kPlain) {
  Tensor tensor = Tensor::Of<float>(shape, std::vector<float>(shape.numel(), 0));
  tensor.layout = layout;
  return tensor;
}

// Small integers: sums are exact in any order.
Tensor Digits(const Shape& shape, Layout layout = Layout::kPlain) {
  Tensor tensor = Zeros(shape, layout);
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    tensor.mutable_data<float>()[i] = static_cast<float>((i * 7 + i / 10) % 10);
  }
  return tensor;
}

// Adds every element to its output, found by logical index.
Tensor SumByIndex(const Tensor& x, const DimSet& reduced, bool keep_dim, Layout out_layout) {
  Tensor out = Zeros(ReducedShape(x.shape, reduced, keep_dim), out_layout);
  const Strides x_strides = StridesOf(x);
  const Strides out_strides = StridesOf(out);
  for (int64_t n = 0; n < x.numel(); ++n) {
    int64_t from = 0, to = 0, rest = n;
    for (int d = x.shape.rank() - 1, o = out.shape.rank() - 1; d >= 0; --d) {
      const int64_t index = rest % x.shape[d];
      rest /= x.shape[d];
      from += index * x_strides[d];
      if (!reduced[d]) to += index * out_strides[o];
      if (!reduced[d] || keep_dim) --o;
    }
    out.mutable_data<float>()[to] += x.data<float>()[from];
  }
  return out;
}

void ExpectSumByIndex(const Tensor& x, const DimSet& reduced, bool keep_dim, int num_threads) {
  const bool same_rank = keep_dim || reduced.none();
  const Layout out_layout = same_rank ? x.layout : Layout::kPlain;
  const Tensor want = SumByIndex(x, reduced, keep_dim, out_layout);
  Tensor got = Zeros(want.shape, out_layout);
  RunReduce(PlanReduce(x, reduced, got), num_threads, x.data<float>(), got.mutable_data<float>(),
            SumOf(), AsFloat);
  int wrong = 0;
  for (int64_t i = 0; i < want.numel(); ++i) {
    wrong += got.data<float>()[i] != want.data<float>()[i];
  }
  EXPECT_EQ(wrong, 0) << DescribeType(x) << " " << Name(x.layout) << ", dims " << reduced
                      << (keep_dim ? ", kept" : "") << ", " << num_threads << " threads";
}

TEST(ReduceTest, SumsOverEverySetOfDimensions) {
  for (const Layout layout : {Layout::kPlain, Layout::kChannelsLast}) {
    for (const Shape& shape : {Shape{2, 3, 4, 5}, Shape{3, 1, 70, 1}, Shape{2, 3, 2, 4, 3},
                               Shape{2, 130, 3, 3}, Shape{1, 2, 1, 40}, Shape{5, 6, 13, 7},
                               Shape{3, 31, 5, 3}, Shape{2, 64, 3, 3}, Shape{2, 65, 3, 3}}) {
      const Tensor x = Digits(shape, layout);
      for (unsigned long set = 0; set < 1ul << shape.rank(); ++set) {
        ExpectSumByIndex(x, DimSet(set), /*keep_dim=*/true, 1);
        ExpectSumByIndex(x, DimSet(set), /*keep_dim=*/false, 3);
      }
    }
  }
}

TEST(ReduceTest, SumsTensorsOfManyTasks) {
  const Tensor x = Digits({5, 300, 401});
  for (unsigned long set = 0; set < 8; ++set) ExpectSumByIndex(x, DimSet(set), false, 4);
}

TEST(ReduceTest, GivesInitForNoElements) {
  const Tensor x = Zeros({3, 0, 2});
  for (const unsigned long set : {2ul, 3ul, 6ul, 7ul}) ExpectSumByIndex(x, DimSet(set), false, 2);
}

TEST(ReduceTest, LargeSumsStayAccurate) {
  constexpr int64_t kCount = 10'000'000;
  Tensor x = Zeros({kCount});
  for (int64_t i = 0; i < kCount; ++i) x.mutable_data<float>()[i] = 0.1f;
  Tensor out = Zeros({});
  RunReduce(PlanReduce(x, DimSet().set(), out), 1, x.data<float>(), out.mutable_data<float>(),
            SumOf(), AsFloat);
  EXPECT_FLOAT_EQ(*out.data<float>(), static_cast<float>(double{0.1f} * kCount));
}

// What normalisation written by hand begins with: the mean of an image far from zero. No sum in
// float32 gives all of these to the last bit.
void ExpectExactMeans(const std::string& op, Layout layout) {
  const Shape shape{1, 3, 256, 256};
  Tensor x = Zeros(shape);
  std::vector<double> sums(3);
  for (int64_t i = 0; i < x.numel(); ++i) {
    x.mutable_data<float>()[i] = 1000.1f + 60.0f * std::sin(static_cast<float>(i) / 40.0f);
    sums[i / (256 * 256)] += x.data<float>()[i];
  }
  const auto program =
      ParseProgram("block 0\n  var x float32[1,3,256,256]\n  var y float32[1,3,1,1]\n  " + op);
  ASSERT_TRUE(program.ok()) << program.status();
  const auto results =
      testing::RunKernel(*program, program->blocks[0].ops[0], {{"x", x}}, {.layout = layout});
  ASSERT_TRUE(results.ok()) << results.status();
  const double scale = op.starts_with("reduce_mean") ? 1.0 / (256 * 256) : 1.0;
  for (int c = 0; c < 3; ++c) {
    EXPECT_EQ((*results)[0].second.data<float>()[c], static_cast<float>(sums[c] * scale))
        << op << ", " << Name(layout) << ", channel " << c;
  }
}

TEST(ReduceTest, MeansAndSumsOfImagesAreThoseOfFloat64) {
  for (const Layout layout : {Layout::kPlain, Layout::kChannelsLast}) {
    for (const std::string type : {"reduce_mean", "reduce_sum"}) {
      ExpectExactMeans(type + "(X=x) -> (Out=y) {dim=[2,3], keep_dim=true}", layout);
    }
  }
}

TEST(ReduceTest, ResultsDoNotDependOnTheNumberOfThreads) {
  Tensor x = Zeros({1'000'003});
  for (int64_t i = 0; i < x.numel(); ++i) {
    x.mutable_data<float>()[i] = std::sin(static_cast<float>(i)) * 1e3f;
  }
  std::vector<double> sums;
  for (const int num_threads : {1, 2, 5}) {
    Tensor out = Zeros({});
    double& sum = sums.emplace_back();
    RunReduce(PlanReduce(x, DimSet().set(), out), num_threads, x.data<float>(), &sum, SumOf(),
              [](double total, int64_t) { return total; });
  }
  EXPECT_EQ(sums[0], sums[1]);
  EXPECT_EQ(sums[0], sums[2]);
}

// Lines of `length` elements with ties and, in one of five, NaN; one line is NaN alone.
Tensor LinesWithNan(int64_t lines, int64_t length) {
  Tensor x = Digits({lines, length});
  for (int64_t i = 0; i < x.numel(); ++i) {
    if (i % 5 == 0 || i / length == 1) x.mutable_data<float>()[i] = NAN;
  }
  return x;
}

// The first largest element; NaN only where there is nothing else.
int64_t FirstLargest(const float* line, int64_t length) {
  int64_t best = 0;
  for (int64_t i = 1; i < length; ++i) {
    if (line[i] > line[best] || (std::isnan(line[best]) && !std::isnan(line[i]))) best = i;
  }
  return best;
}

TEST(ArgMaxTest, FindsTheFirstLargestInLinesOfAnyLength) {
  for (const int64_t length : {1, 2, 3, 4, 21, 63, 64, 100}) {
    const std::string shape = "[67," + std::to_string(length) + "]";
    const absl::StatusOr<Program> program =
        ParseProgram("block 0\n  var x float32" + shape +
                     "\n  var y int64[67]\n  arg_max(X=x) -> (Out=y) {axis=-1}\n");
    ASSERT_TRUE(program.ok()) << program.status();
    const Tensor x = LinesWithNan(67, length);
    for (const int num_threads : {1, 3}) {
      const auto results = testing::RunKernel(*program, program->blocks[0].ops[0], {{"x", x}},
                                              {.num_threads = num_threads});
      ASSERT_TRUE(results.ok()) << results.status();
      for (int64_t line = 0; line < 67; ++line) {
        EXPECT_EQ((*results)[0].second.data<int64_t>()[line],
                  FirstLargest(x.data<float>() + line * length, length))
            << "line " << line << " of " << length;
      }
    }
  }
}

TEST(ReducedDimsTest, NormalisesAxes) {
  EXPECT_EQ(ReducedDims({-1, 0}, 3)->to_ulong(), 0b101u);
  EXPECT_TRUE(ReducedDims({}, 3)->all());
  EXPECT_TRUE(ReducedDims({-1}, 0).ok());
  EXPECT_FALSE(ReducedDims({3}, 3).ok());
  EXPECT_FALSE(ReducedDims({-4}, 3).ok());
}

}  // namespace
}  // namespace interp::testing::reduce_test
