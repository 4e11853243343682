#include "kernels/fft/transform.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <unsupported/Eigen/FFT>
#include <vector>

#include "core/catching.h"
#include "kernels/util/lines.h"

namespace interp::fft {
namespace {

using Number = std::complex<double>;

// The time for a prime factor p grows with its square; beyond this a convolution takes less.
constexpr int64_t kLargestFactor = 64;

bool HasLargeFactor(int64_t n) {
  for (int64_t p = 2; p <= kLargestFactor; ++p) {
    while (n % p == 0) n /= p;
  }
  return n > 1;
}

int64_t PowerOfTwoFrom(int64_t n) {
  int64_t power = 1;
  while (power < n) power *= 2;
  return power;
}

}  // namespace

struct LineTransform::State {
  int64_t length = 1;
  bool forward = true;
  Eigen::FFT<double> fft{Eigen::FFT<double>::impl_type(), Eigen::FFT<double>::Unscaled};
  std::vector<Number> spectrum;  // of the line, or of the convolution
  // Of a convolution: exp(-+ pi i k^2 / length), the spectrum of its conjugate, and the line.
  std::vector<Number> chirp, filter, padded;

  void MakeConvolution();
  void RunDirect(Number* line);
  void RunConvolution(Number* line);
};

// X[k] = chirp[k] sum over j of (x[j] chirp[j]) conj(chirp[k - j]), since 2jk = j^2 + k^2 -
// (k-j)^2.
void LineTransform::State::MakeConvolution() {
  const int64_t size = PowerOfTwoFrom(2 * length - 1);
  chirp.resize(length);
  padded.assign(size, Number(0));
  filter.resize(size);
  spectrum.resize(size);
  for (int64_t k = 0; k < length; ++k) {
    // k^2 modulo 2 length keeps the angle small and so exact. It is below 2^57.
    const double angle =
        std::numbers::pi * static_cast<double>(k * k % (2 * length)) / static_cast<double>(length);
    chirp[k] = std::polar(1.0, forward ? -angle : angle);
    padded[k] = std::conj(chirp[k]);
    if (k > 0) padded[size - k] = padded[k];
  }
  fft.fwd(filter.data(), padded.data(), static_cast<int>(size));
  fft.inv(spectrum.data(), filter.data(), static_cast<int>(size));
}

void LineTransform::State::RunConvolution(Number* line) {
  const int64_t size = static_cast<int64_t>(padded.size());
  for (int64_t j = 0; j < length; ++j) padded[j] = line[j] * chirp[j];
  std::fill(padded.begin() + length, padded.end(), Number(0));
  fft.fwd(spectrum.data(), padded.data(), static_cast<int>(size));
  for (int64_t k = 0; k < size; ++k) spectrum[k] *= filter[k];
  fft.inv(padded.data(), spectrum.data(), static_cast<int>(size));
  for (int64_t k = 0; k < length; ++k) {
    line[k] = padded[k] * chirp[k] / static_cast<double>(size);
  }
}

void LineTransform::State::RunDirect(Number* line) {
  const int n = static_cast<int>(length);
  forward ? fft.fwd(spectrum.data(), line, n) : fft.inv(spectrum.data(), line, n);
  std::copy(spectrum.begin(), spectrum.end(), line);
}

LineTransform::LineTransform(int64_t length, bool forward) : state_(std::make_unique<State>()) {
  state_->length = length;
  state_->forward = forward;
  if (HasLargeFactor(length)) {
    state_->MakeConvolution();
  } else {
    state_->spectrum.resize(length);
    // Eigen makes its tables in the first call.
    std::vector<Number> zeros(length);
    state_->RunDirect(zeros.data());
  }
}
LineTransform::LineTransform(LineTransform&&) noexcept = default;
LineTransform::~LineTransform() = default;

void LineTransform::Run(Number* line) {
  state_->chirp.empty() ? state_->RunDirect(line) : state_->RunConvolution(line);
}

absl::Status TransformAxis(const KernelContext& ctx, const Shape& shape, int axis, bool forward,
                           Number* data) {
  const Lines lines = LinesAlong(shape, axis);
  if (lines.length <= 1 || lines.count() == 0) return absl::OkStatus();
  const int tasks = LineTasks(lines, ctx.num_threads());
  std::vector<LineTransform> transforms;
  const absl::Status made = Catching([&]() -> absl::Status {
    for (int i = 0; i < tasks; ++i) transforms.emplace_back(lines.length, forward);
    return absl::OkStatus();
  });
  INTERP_RETURN_IF_ERROR(made);
  INTERP_ASSIGN_OR_RETURN(
      const Workspace work,
      ctx.workspace(static_cast<size_t>(tasks * lines.length) * sizeof(Number)));
  Number* const buffers = work.data<Number>();
  ForEachLine(lines, tasks, [&](int64_t task, int64_t index) {
    Number* const buffer = buffers + task * lines.length;
    Number* const line = data + lines.Start(index);
    for (int64_t i = 0; i < lines.length; ++i) buffer[i] = line[i * lines.inner];
    transforms[task].Run(buffer);
    for (int64_t i = 0; i < lines.length; ++i) line[i * lines.inner] = buffer[i];
  });
  return absl::OkStatus();
}

}  // namespace interp::fft
