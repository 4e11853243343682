#include "tools/summary.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_join.h"
#include "tools/table.h"
#include "tools/tensor_values.h"

namespace interp {
namespace {

constexpr int64_t kMaxValues = 16;  // tensors with more are summarised only

template <typename T>
void AddElements(const T* data, int64_t count, Summary& summary) {
  double sum = 0;
  int64_t num_finite = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double value = ToDouble(data[i]);
    if (std::isnan(value)) {
      ++summary.num_nan;
    } else if (std::isinf(value)) {
      ++summary.num_infinite;
    } else {
      summary.min = std::min(summary.min.value_or(value), value);
      summary.max = std::max(summary.max.value_or(value), value);
      sum += value;
      ++num_finite;
    }
    if (count <= kMaxValues) summary.values.push_back(ValueText(data[i]));
  }
  if (num_finite == 0) return;
  summary.mean = sum / static_cast<double>(num_finite);
  summary.min_text = ValueText(*summary.min);
  summary.max_text = ValueText(*summary.max);
  if constexpr (std::is_integral_v<T>) {
    const auto [min, max] = std::minmax_element(data, data + count);
    summary.min_text = ValueText(*min);
    summary.max_text = ValueText(*max);
  }
}

std::vector<std::string> TableRow(const Summary& summary) {
  if (!summary.has_values) return {summary.name, "no value"};
  return {summary.name,
          std::string(Name(summary.dtype)),
          ToString(summary.shape),
          summary.min_text,
          summary.max_text,
          summary.mean.has_value() ? ValueText(*summary.mean) : "-"};
}

// What a table has no column for.
std::string Details(const Summary& summary) {
  std::string text;
  if (!summary.lod.empty()) absl::StrAppend(&text, "  lod ", LodText(summary.lod), "\n");
  if (summary.num_nan > 0) absl::StrAppend(&text, "  nan ", summary.num_nan, "\n");
  if (summary.num_infinite > 0) absl::StrAppend(&text, "  infinite ", summary.num_infinite, "\n");
  if (!summary.values.empty()) {
    absl::StrAppend(&text, "  values ", absl::StrJoin(summary.values, " "), "\n");
  }
  return text;
}

}  // namespace

Summary Summarize(const NamedTensor& fetch) {
  const Tensor& tensor = fetch.second;
  Summary summary{
      .name = fetch.first, .dtype = tensor.dtype, .shape = tensor.shape, .lod = tensor.lod};
  summary.has_values = VisitElements(
      tensor, [&](const auto* data, int64_t count) { AddElements(data, count, summary); });
  return summary;
}

std::string FormatSummaries(const std::vector<Summary>& summaries) {
  std::vector<std::vector<std::string>> rows = {{"fetch", "dtype", "shape", "min", "max", "mean"}};
  for (const Summary& summary : summaries) rows.push_back(TableRow(summary));
  std::string text = FormatTable(rows);
  for (const Summary& summary : summaries) {
    const std::string details = Details(summary);
    if (!details.empty()) absl::StrAppend(&text, summary.name, "\n", details);
  }
  return text;
}

void WriteJson(const Summary& summary, JsonWriter& json) {
  json.BeginObject();
  json.Field("name", summary.name);
  json.Field("dtype", Name(summary.dtype));
  json.Values("shape", summary.shape);
  json.Array("lod", summary.lod, [&](const std::vector<int64_t>& level) {
    json.BeginArray();
    for (const int64_t offset : level) json.Value(offset);
    json.EndArray();
  });
  json.Field("has_values", summary.has_values);
  json.Field("min", summary.min);
  json.Field("max", summary.max);
  json.Field("mean", summary.mean);
  json.Field("nan", summary.num_nan);
  json.Field("infinite", summary.num_infinite);
  json.EndObject();
}

}  // namespace interp
