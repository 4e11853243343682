// Cross entropy of probabilities, for the ops that end in it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/op_def.h"
#include "kernels/util/indices.h"
#include "kernels/util/lines.h"
#include "kernels/util/vector_math.h"

namespace interp {

// The rows of a tensor whose last dimension has the probabilities.
inline Lines RowsOf(const Shape& x) { return LinesAlong(x, x.rank() - 1); }

// InvalidArgument unless Label is X but for the last dimension, which is 1 or absent, or a soft one
// has shape and dtype of X.
inline absl::Status CheckLabelShape(const Tensor& x, const Tensor& label, bool soft) {
  Shape column = x.shape;
  Shape row = x.shape;
  if (x.shape.rank() > 0) {
    column[x.shape.rank() - 1] = 1;
    row.resize(x.shape.rank() - 1);
  }
  const bool fits = soft ? label.shape == x.shape : label.shape == column || label.shape == row;
  if (x.shape.rank() == 0 || !fits) {
    return InvalidArgument("input 'Label' has shape ", ToString(label.shape), " for 'X' ",
                           ToString(x.shape), ", expected that shape",
                           soft ? "" : " with 1 in place of the last dimension");
  }
  if (soft && label.dtype != x.dtype) {
    return InvalidArgument("input 'Label' is ", DescribeType(label), ", expected ", Name(x.dtype));
  }
  return absl::OkStatus();
}

// WithIndices for labels that are positions, which may be of narrow types as well.
template <typename Body>
absl::Status WithLabels(const Tensor& label, const Body& body) {
  switch (label.dtype) {
    case DType::kUInt8:
      return body(label.data<uint8_t>());
    case DType::kInt8:
      return body(label.data<int8_t>());
    case DType::kInt16:
      return body(label.data<int16_t>());
    case DType::kInt32:
    case DType::kInt64:
      return WithIndices(label, "Label", body);
    default:
      return InvalidArgument("'Label' is ", DescribeType(label), ", expected integers");
  }
}

// log(p), but +-1e20 in place of an infinity.
template <typename T>
T BoundedLog(T p) {
  constexpr T kBound = T(1e20);
  const T log = Log(p);
  return std::isinf(log) ? (log > T{0} ? kBound : -kBound) : log;
}

// InvalidArgument unless each of the labels is `ignored` or a position of an axis of that length.
template <typename Index>
absl::Status CheckLabels(const Index* labels, int64_t count, int64_t length, int64_t ignored) {
  for (int64_t i = 0; i < count; ++i) {
    if (labels[i] == ignored || (labels[i] >= 0 && labels[i] < length)) continue;
    return InvalidArgument("input 'Label' has the value ", labels[i], " at position ", i,
                           ", expected 0 to ", length - 1, " or the ignored ", ignored);
  }
  return absl::OkStatus();
}

// loss = -log of the probability at the label of each line, 0 for ignored labels, which leave 0 in
// `matched` (may be null), too. REQUIRES: as many labels as lines; they have been checked.
template <typename T, typename Index>
void HardCrossEntropy(const Lines& lines, const T* x, const Index* labels, int64_t ignored, T* loss,
                      T* matched) {
  for (int64_t line = 0; line < lines.count(); ++line) {
    const bool counts = labels[line] != ignored;
    const T p = counts ? x[lines.Start(line) + labels[line] * lines.inner] : T{0};
    loss[line] = counts ? -BoundedLog(p) : T{0};
    if (matched != nullptr) matched[line] = p;
  }
}

// loss = -sum of label log(p) over each line.
template <typename T>
void SoftCrossEntropy(int num_threads, const Lines& lines, const T* x, const T* label, T* loss) {
  ParallelFor(num_threads, lines.count(), GrainFor(lines.length), [=](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      T sum = 0;
      int64_t at = lines.Start(line);
      for (int64_t i = 0; i < lines.length; ++i, at += lines.inner) {
        sum += label[at] * BoundedLog(x[at]);
      }
      loss[line] = -sum;
    }
  });
}

// Labels that came as floats: what is behind the point is dropped, as in Paddle. The least integer,
// which is no position and nothing to ignore, where a value is not within 2^30.
template <typename From>
std::vector<int64_t> WholeLabels(const Tensor& label) {
  const From* const values = label.data<From>();
  std::vector<int64_t> labels(static_cast<size_t>(label.numel()));
  std::transform(values, values + label.numel(), labels.begin(), [](From value) {
    constexpr From kBound = From(1 << 30);
    return value > -kBound && value < kBound ? static_cast<int64_t>(value)
                                             : std::numeric_limits<int64_t>::min();
  });
  return labels;
}

// The loss of labels that are positions on the axis. Paddle has no gradient for labels of floats.
template <typename T>
absl::Status HardLoss(const Lines& lines, const T* x, const Tensor& label, int64_t ignored, T* loss,
                      T* matched = nullptr) {
  const auto run = [&](const auto* labels) {
    INTERP_RETURN_IF_ERROR(CheckLabels(labels, lines.count(), lines.length, ignored));
    HardCrossEntropy(lines, x, labels, ignored, loss, matched);
    return absl::OkStatus();
  };
  if (label.dtype == DType::kFloat32) return run(WholeLabels<float>(label).data());
  if (label.dtype == DType::kFloat64) return run(WholeLabels<double>(label).data());
  return WithLabels(label, run);
}

}  // namespace interp
