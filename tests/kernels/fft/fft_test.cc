// Holds Fourier transforms of all kinds of lengths, numbers of lines and axes to sums in double.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include "absl/strings/str_join.h"
#include "tests/kernels/op_runs.h"

namespace interp::fft_test {
namespace {

using testing::Numbers;
using testing::OpRun;
using testing::OutputsOf;

using Number = std::complex<double>;
using Values = std::vector<Number>;

std::string Attrs(const std::vector<int>& axes, bool forward, const std::string& others = "") {
  return absl::StrCat("axes=[", absl::StrJoin(axes, ", "),
                      "], normalization=\"backward\", forward=", forward ? "true" : "false",
                      others);
}

template <typename T>
Values ValuesOf(const Tensor& tensor) {
  const T* const data = tensor.data<T>();
  return Values(data, data + tensor.numel());
}

// Complex numbers, or with T a real type those.
template <typename T>
Tensor TensorOf(const Shape& shape, const Values& values) {
  std::vector<T> elements;
  for (const Number& value : values) {
    if constexpr (std::is_floating_point_v<T>) {
      elements.push_back(static_cast<T>(value.real()));
    } else {
      elements.push_back(T(value));
    }
  }
  return Tensor::Of<T>(shape, elements);
}

Values RandomValues(int64_t count) {
  const std::vector<float> numbers = [&] {
    const Tensor tensor = Numbers({2 * count}, 3);
    return std::vector<float>(tensor.data<float>(), tensor.data<float>() + 2 * count);
  }();
  Values values;
  for (int64_t i = 0; i < count; ++i) values.emplace_back(numbers[2 * i], numbers[2 * i + 1]);
  return values;
}

// Sums over one axis as the definition has them, over their number where `forward` is not.
Values Transformed(const Values& x, const Shape& shape, int axis, bool forward) {
  const int64_t n = shape[axis];
  const int64_t inner = shape.numel(axis + 1, shape.rank());
  Values roots;
  for (int64_t k = 0; k < n; ++k) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
    roots.push_back(std::polar(1.0, forward ? -angle : angle));
  }
  Values out(x.size());
  for (int64_t at = 0; at < shape.numel(); ++at) {
    const int64_t k = at / inner % n;
    Number sum = 0;
    for (int64_t j = 0, turns = 0; j < n; ++j) {
      sum += x[at + (j - k) * inner] * roots[turns];
      turns = turns + k < n ? turns + k : turns + k - n;
    }
    out[at] = forward ? sum : sum / static_cast<double>(n);
  }
  return out;
}

void ExpectNear(const Values& got, const Values& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  double squares = 0;
  for (const Number& value : want) squares += std::norm(value);
  const double typical = std::sqrt(squares / static_cast<double>(want.size())) + 1e-30;
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_LE(std::abs(got[i] - want[i]), tolerance * typical) << "element " << i;
  }
}

// One line, few, more than a register holds; along the last axis and along others.
std::vector<std::pair<Shape, int>> Places(int64_t length) {
  return {
      {{length}, 0}, {{3, length}, 1}, {{17, length}, 1}, {{length, 20}, 0}, {{2, length, 3}, 1}};
}

constexpr int64_t kLengths[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12,  14,  15,  16,
                                17, 21, 22, 27, 32, 35, 49, 60, 64, 66, 97, 101, 128, 169, 206};

template <typename T>
void ExpectComplexLines(double tolerance) {
  for (const int64_t length : kLengths) {
    for (const auto& [shape, axis] : Places(length)) {
      for (const bool forward : {true, false}) {
        SCOPED_TRACE(absl::StrCat(ToString(shape), " axis ", axis, " forward ", forward));
        const Tensor x = TensorOf<std::complex<T>>(shape, RandomValues(shape.numel()));
        const Tensor out = OutputsOf({"fft_c2c", {{"X", x}}, {"Out"}, Attrs({axis}, forward)})[0];
        ExpectNear(ValuesOf<std::complex<T>>(out),
                   Transformed(ValuesOf<std::complex<T>>(x), shape, axis, forward), tolerance);
      }
    }
  }
}

TEST(FftTest, LinesOfAnyLengthAndPlace) {
  ExpectComplexLines<float>(4e-6);
  ExpectComplexLines<double>(1e-14);
}

// fft_r2c of all and of half of a spectrum, and fft_c2r of that half.
template <typename T>
void ExpectRealLines(double tolerance) {
  for (const int64_t length : kLengths) {
    for (const auto& [shape, axis] : Places(length)) {
      SCOPED_TRACE(absl::StrCat(ToString(shape), " axis ", axis));
      const Tensor x = TensorOf<T>(shape, RandomValues(shape.numel()));
      const Values want = Transformed(ValuesOf<T>(x), shape, axis, true);
      const Tensor whole =
          OutputsOf({"fft_r2c", {{"X", x}}, {"Out"}, Attrs({axis}, true, ", onesided=false")})[0];
      ExpectNear(ValuesOf<std::complex<T>>(whole), want, tolerance);
      const Tensor half =
          OutputsOf({"fft_r2c", {{"X", x}}, {"Out"}, Attrs({axis}, true, ", onesided=true")})[0];
      ASSERT_EQ(half.shape[axis], length / 2 + 1);
      const Tensor back =
          OutputsOf({"fft_c2r",
                     {{"X", half}},
                     {"Out"},
                     Attrs({axis}, false, absl::StrCat(", last_dim_size=", length))})[0];
      ExpectNear(ValuesOf<T>(back), ValuesOf<T>(x), tolerance);
    }
  }
}

TEST(FftTest, RealLinesOfAnyLengthAndPlace) {
  ExpectRealLines<float>(4e-6);
  ExpectRealLines<double>(1e-14);
}

TEST(FftTest, SpectraOfSeveralAxesAreWhole) {
  const Shape shape = {5, 6, 9, 2};
  const Tensor x = TensorOf<float>(shape, RandomValues(shape.numel()));
  for (const std::vector<int>& axes :
       {std::vector<int>{0, 1, 2}, {2, 0}, {1, 3}, {3, 2, 1, 0}, {0, 2, 1}}) {
    SCOPED_TRACE(absl::StrJoin(axes, " "));
    Values want = ValuesOf<float>(x);
    for (const int axis : axes) want = Transformed(want, shape, axis, true);
    const Tensor whole =
        OutputsOf({"fft_r2c", {{"X", x}}, {"Out"}, Attrs(axes, true, ", onesided=false")})[0];
    ExpectNear(ValuesOf<std::complex<float>>(whole), want, 4e-6);
    const Tensor half =
        OutputsOf({"fft_r2c", {{"X", x}}, {"Out"}, Attrs(axes, true, ", onesided=true")})[0];
    const Tensor back =
        OutputsOf({"fft_c2r",
                   {{"X", half}},
                   {"Out"},
                   Attrs(axes, false, absl::StrCat(", last_dim_size=", shape[axes.back()]))})[0];
    ExpectNear(ValuesOf<float>(back), ValuesOf<float>(x), 4e-6);
  }
}

TEST(FftTest, ALineThatIsNotFiniteLeavesOthersAlone) {
  const Shape shape = {20, 12};
  Values values = RandomValues(shape.numel());
  const Tensor clean = TensorOf<float>(shape, values);
  for (int64_t i = 0; i < 12; ++i) values[3 * 12 + i] = std::nan("");
  const Tensor dirty = TensorOf<float>(shape, values);
  const OpRun run = {"fft_r2c", {{"X", clean}}, {"Out"}, Attrs({1}, true, ", onesided=true")};
  OpRun other = run;
  other.inputs[0].second = dirty;
  const Tensor want = OutputsOf(run)[0];
  const Tensor got = OutputsOf(other)[0];
  for (int64_t i = 0; i < want.numel(); ++i) {
    const std::complex<float> element = got.data<std::complex<float>>()[i];
    if (i / 7 == 3) {
      EXPECT_TRUE(std::isnan(element.real())) << i;
    } else {
      EXPECT_EQ(element, want.data<std::complex<float>>()[i]) << i;
    }
  }
}

}  // namespace
}  // namespace interp::fft_test
