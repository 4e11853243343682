// lstmp and lstm_unit, which Paddle 2.6.2 no longer has, against their formulas, written out one
// number at a time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "tests/kernels/op_runs.h"

namespace interp::testing {
namespace {

template <typename T>
std::vector<double> Doubles(const Tensor& tensor) {
  return std::vector<double>(tensor.data<T>(), tensor.data<T>() + tensor.numel());
}

// Sequences of 3, 0, 5, 1, 3 and 0 rows.
const Lod kRagged = {{0, 3, 3, 8, 9, 12, 12}};
constexpr int64_t kSequences = 6;
constexpr int64_t kRows = 12;

using Activation = double (*)(double);
double Identity(double x) { return x; }
double Logistic(double x) { return 1 / (1 + std::exp(-x)); }
double HyperbolicTangent(double x) { return std::tanh(x); }
double Rectifier(double x) { return x > 0 ? x : 0; }

double Limited(double x, double limit) {
  return limit > 0 ? std::min(std::max(x, -limit), limit) : x;
}

// One variant of lstmp: its attributes, and what they mean.
struct Lstmp {
  std::string attrs;
  bool peepholes = true;
  bool reverse = false;
  bool states = false;
  Activation gate = Logistic;
  Activation cell = HyperbolicTangent;
  Activation candidate = HyperbolicTangent;
  Activation projection = HyperbolicTangent;
  double cell_clip = 0;
  double projection_clip = 0;
};

// Rows of all outputs, in the order of the input.
struct LstmpRows {
  std::vector<double> projection, cell, gate, active, hidden;
};

constexpr int64_t kSize = 5;
constexpr int64_t kWidth = 3;

// The inputs of lstmp as numbers.
struct LstmpInputs {
  std::vector<double> x, weight, bias, projection_weight, h0, c0;
};

// The state of one sequence.
struct LstmpState {
  std::vector<double> r, c;
};

// One step by the formula, one number at a time. Writes row `row` of `rows`.
void StepByFormula(const Lstmp& op, const LstmpInputs& in, int64_t row, LstmpState& state,
                   LstmpRows& rows) {
  const auto sum = [&](int64_t gate, int64_t j) {
    const int64_t column = gate * kSize + j;
    double s = in.x[row * 4 * kSize + column] + in.bias[column];
    for (int64_t p = 0; p < kWidth; ++p) s += state.r[p] * in.weight[p * 4 * kSize + column];
    return s;
  };
  const auto peephole = [&](int64_t k, int64_t j) {
    return op.peepholes ? in.bias[(4 + k) * kSize + j] : 0;
  };
  std::vector<double> h(kSize);
  std::vector<double> next = state.c;
  for (int64_t j = 0; j < kSize; ++j) {
    const double a = op.candidate(sum(0, j));
    const double i = op.gate(sum(1, j) + peephole(0, j) * state.c[j]);
    const double f = op.gate(sum(2, j) + peephole(1, j) * state.c[j]);
    next[j] = Limited(a * i + state.c[j] * f, op.cell_clip);
    const double o = op.gate(sum(3, j) + peephole(2, j) * next[j]);
    const double active = op.cell(next[j]);
    h[j] = o * active;
    for (const auto& [gate, value] : {std::pair(0, a), {1, i}, {2, f}, {3, o}}) {
      rows.gate[(row * 4 + gate) * kSize + j] = value;
    }
    rows.active[row * kSize + j] = active;
    rows.hidden[row * kSize + j] = h[j];
    rows.cell[row * kSize + j] = next[j];
  }
  state.c = next;
  for (int64_t p = 0; p < kWidth; ++p) {
    double s = 0;
    for (int64_t j = 0; j < kSize; ++j) s += h[j] * in.projection_weight[j * kWidth + p];
    state.r[p] = Limited(op.projection(s), op.projection_clip);
    rows.projection[row * kWidth + p] = state.r[p];
  }
}

LstmpRows ByFormula(const Lstmp& op, const LstmpInputs& in) {
  const auto zeros = [](int64_t columns) { return std::vector<double>(kRows * columns); };
  LstmpRows rows = {zeros(kWidth), zeros(kSize), zeros(4 * kSize), zeros(kSize), zeros(kSize)};
  for (int64_t s = 0; s < kSequences; ++s) {
    LstmpState state = {std::vector<double>(kWidth), std::vector<double>(kSize)};
    if (op.states) {
      std::copy_n(in.h0.begin() + s * kWidth, kWidth, state.r.begin());
      std::copy_n(in.c0.begin() + s * kSize, kSize, state.c.begin());
    }
    const int64_t begin = kRagged[0][s];
    const int64_t end = kRagged[0][s + 1];
    for (int64_t t = 0; t < end - begin; ++t) {
      StepByFormula(op, in, op.reverse ? end - 1 - t : begin + t, state, rows);
    }
  }
  return rows;
}

// The rows of kRagged in the order of steps, the longest sequences first.
std::vector<int64_t> BatchRows(bool reverse) {
  return reverse ? std::vector<int64_t>{7, 2, 11, 8, 6, 1, 10, 5, 0, 9, 4, 3}
                 : std::vector<int64_t>{3, 0, 9, 8, 4, 1, 10, 5, 2, 11, 6, 7};
}

std::vector<double> InBatchRows(const std::vector<double>& values, bool reverse) {
  const auto columns = static_cast<int64_t>(values.size()) / kRows;
  std::vector<double> sorted;
  for (const int64_t row : BatchRows(reverse)) {
    sorted.insert(sorted.end(), values.begin() + row * columns,
                  values.begin() + (row + 1) * columns);
  }
  return sorted;
}

template <typename T>
void ExpectNear(const Tensor& tensor, const std::vector<double>& want, const char* name) {
  const double tolerance = std::is_same_v<T, double> ? 1e-13 : 2e-6;
  EXPECT_THAT(Doubles<T>(tensor), ::testing::Pointwise(::testing::DoubleNear(tolerance), want))
      << name;
}

template <typename T>
void ExpectLstmp(const Lstmp& op) {
  SCOPED_TRACE(op.attrs);
  const Tensor x = Numbers<T>({kRows, 4 * kSize}, 1, kRagged);
  const Tensor weight = Numbers<T>({kWidth, 4 * kSize}, 2);
  const Tensor bias = Numbers<T>({1, (op.peepholes ? 7 : 4) * kSize}, 3);
  const Tensor projection = Numbers<T>({kSize, kWidth}, 4);
  const Tensor h0 = Numbers<T>({kSequences, kWidth}, 5);
  const Tensor c0 = Numbers<T>({kSequences, kSize}, 6);
  OpRun run = {"lstmp",
               {{"Input", x}, {"Weight", weight}, {"Bias", bias}, {"ProjWeight", projection}},
               {"Projection", "Cell", "BatchGate", "BatchCellPreAct", "BatchHidden"},
               op.attrs};
  if (op.states) run.inputs.insert(run.inputs.end(), {{"H0", h0}, {"C0", c0}});
  const std::vector<Tensor> got = OutputsOf(run);
  const LstmpRows want = ByFormula(op, {Doubles<T>(x), Doubles<T>(weight), Doubles<T>(bias),
                                        Doubles<T>(projection), Doubles<T>(h0), Doubles<T>(c0)});
  EXPECT_EQ(got[0].lod, kRagged);
  EXPECT_EQ(got[1].lod, kRagged);
  ExpectNear<T>(got[0], want.projection, "Projection");
  ExpectNear<T>(got[1], want.cell, "Cell");
  ExpectNear<T>(got[2], InBatchRows(want.gate, op.reverse), "BatchGate");
  ExpectNear<T>(got[3], InBatchRows(want.active, op.reverse), "BatchCellPreAct");
  ExpectNear<T>(got[4], InBatchRows(want.hidden, op.reverse), "BatchHidden");
}

TEST(LstmpTest, FollowsItsFormula) {
  const std::vector<Lstmp> variants = {
      {.attrs = ""},
      {.attrs = "is_reverse=true", .reverse = true},
      {.attrs = "use_peepholes=false", .peepholes = false, .states = true},
      {.attrs = "is_reverse=true, cell_clip=0.3",
       .reverse = true,
       .states = true,
       .cell_clip = 0.3f},
      {.attrs = "proj_clip=0.2", .states = true, .projection_clip = 0.2f},
      {.attrs = "proj_activation=\"identity\"", .projection = Identity},
      {.attrs = "gate_activation=\"relu\", candidate_activation=\"identity\"",
       .gate = Rectifier,
       .candidate = Identity},
  };
  for (const Lstmp& variant : variants) {
    ExpectLstmp<float>(variant);
    ExpectLstmp<double>(variant);
  }
}

// As Paddle computes it.
TEST(LstmpTest, TheProjectionIsActivatedLikeTheCell) {
  ExpectLstmp<double>({.attrs = "cell_activation=\"sigmoid\", proj_activation=\"relu\"",
                       .cell = Logistic,
                       .projection = Logistic});
}

template <typename T>
void ExpectLstmUnit(double forget_bias, const std::string& attrs) {
  constexpr int64_t kBatch = 3;
  const Tensor x = Numbers<T>({kBatch, 4 * kSize}, 1);
  const Tensor before = Numbers<T>({kBatch, kSize}, 2);
  const std::vector<Tensor> got =
      OutputsOf({"lstm_unit", {{"X", x}, {"C_prev", before}}, {"C", "H"}, attrs});
  std::vector<double> c, h;
  for (int64_t n = 0; n < kBatch; ++n) {
    for (int64_t j = 0; j < kSize; ++j) {
      const auto gate = [&](int64_t k) -> double { return x.data<T>()[(n * 4 + k) * kSize + j]; };
      const double forget = Logistic(gate(1) + forget_bias);
      c.push_back(forget * before.data<T>()[n * kSize + j] +
                  Logistic(gate(0)) * std::tanh(gate(3)));
      h.push_back(Logistic(gate(2)) * std::tanh(c.back()));
    }
  }
  ExpectNear<T>(got[0], c, "C");
  ExpectNear<T>(got[1], h, "H");
}

TEST(LstmUnitTest, FollowsItsFormula) {
  ExpectLstmUnit<float>(0, "");
  ExpectLstmUnit<float>(0.75, "forget_bias=0.75");
  ExpectLstmUnit<double>(0, "");
  ExpectLstmUnit<double>(0.75, "forget_bias=0.75");
}

}  // namespace
}  // namespace interp::testing
