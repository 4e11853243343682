#include "tools/tensor_statistics.h"

#include <algorithm>
#include <cmath>

#include "tools/tensor_values.h"

namespace interp {
namespace {

constexpr int kNumBins = 32;

template <typename T>
void AddMoments(const T* data, int64_t count, TensorStatistics& statistics) {
  double min = INFINITY;
  double max = -INFINITY;
  double sum = 0;
  int64_t num_finite = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double value = ToDouble(data[i]);
    statistics.num_nan += std::isnan(value) ? 1 : 0;
    statistics.num_infinite += std::isinf(value) ? 1 : 0;
    statistics.num_zero += value == 0 ? 1 : 0;
    if (!std::isfinite(value)) continue;
    min = std::min(min, value);
    max = std::max(max, value);
    sum += value;
    ++num_finite;
  }
  statistics.count = count;
  if (num_finite == 0) return;
  statistics.min = min;
  statistics.max = max;
  statistics.mean = sum / static_cast<double>(num_finite);
}

// Halves, as the difference of two large values may be no finite one.
int BinOf(double value, double min, double max) {
  if (max <= min) return 0;
  const double share = (value / 2 - min / 2) / (max / 2 - min / 2);
  return std::clamp(static_cast<int>(share * kNumBins), 0, kNumBins - 1);
}

template <typename T>
void AddSpread(const T* data, int64_t count, TensorStatistics& statistics) {
  const double min = *statistics.min;
  const double max = *statistics.max;
  const double mean = *statistics.mean;
  statistics.histogram.assign(min < max ? kNumBins : 1, 0);
  double squares = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double value = ToDouble(data[i]);
    if (!std::isfinite(value)) continue;
    squares += (value - mean) * (value - mean);
    ++statistics.histogram[BinOf(value, min, max)];
  }
  const int64_t num_finite = count - statistics.num_nan - statistics.num_infinite;
  statistics.deviation = std::sqrt(squares / static_cast<double>(num_finite));
}

}  // namespace

TensorStatistics StatisticsOf(const Tensor& tensor) {
  TensorStatistics statistics;
  statistics.type = DescribeType(tensor);
  VisitElements(tensor, [&](const auto* data, int64_t count) {
    AddMoments(data, count, statistics);
    if (statistics.mean.has_value()) AddSpread(data, count, statistics);
  });
  return statistics;
}

std::vector<std::pair<std::string, TensorStatistics>> ParameterStatistics(const Program& program,
                                                                          const Scope& scope) {
  std::vector<std::pair<std::string, TensorStatistics>> all;
  if (program.blocks.empty()) return all;
  for (const Var& var : program.blocks[0].vars) {
    if (!var.persistable) continue;
    const Variable* variable = scope.Find(program.NameOf(var.id));
    if (variable == nullptr || !variable->tensor.has_memory()) continue;
    all.emplace_back(program.NameOf(var.id), StatisticsOf(variable->tensor));
  }
  return all;
}

}  // namespace interp
