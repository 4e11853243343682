#include "tools/top_values.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "core/io/file.h"
#include "tools/model.h"
#include "tools/table.h"
#include "tools/tensor_values.h"

namespace interp {
namespace {

constexpr size_t kMaxLabelBytes = size_t{64} << 20;

template <typename T>
std::vector<TopValue> TopOfRow(const T* data, int64_t size, int64_t count,
                               absl::Span<const std::string> labels) {
  const auto key = [&](int64_t i) {
    const double value = ToDouble(data[i]);
    return std::isnan(value) ? -std::numeric_limits<double>::infinity() : value;
  };
  std::vector<int64_t> order(size);
  std::iota(order.begin(), order.end(), 0);
  const auto end = order.begin() + std::min(count, size);
  std::partial_sort(order.begin(), end, order.end(), [&](int64_t a, int64_t b) {
    return key(a) != key(b) ? key(a) > key(b) : a < b;
  });
  std::vector<TopValue> top;
  for (auto it = order.begin(); it != end; ++it) {
    TopValue& value = top.emplace_back(TopValue{.index = *it, .value = ToDouble(data[*it])});
    if (*it < std::ssize(labels)) value.label = labels[*it];
  }
  return top;
}

// "[0,2]": the index of the row in the tensor, without its last dim.
std::string RowText(const Shape& shape, int64_t row) {
  Shape rows = shape;
  rows.resize(shape.rank() - 1);
  return IndexText(rows, row);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ReadLabels(const std::string& path) {
  INTERP_ASSIGN_OR_RETURN(const std::string file, ReadFile(path, kMaxLabelBytes));
  std::vector<std::string> labels;
  for (const absl::string_view line : absl::StrSplit(file, '\n')) {
    labels.emplace_back(absl::StripAsciiWhitespace(line));
  }
  if (labels.back().empty()) labels.pop_back();  // the last line ends, too
  return labels;
}

absl::Status CheckTop(const Program& program, const std::vector<std::string>& fetches) {
  for (const std::string& name : fetches) {
    const Var* const var = FindVar(program, program.Find(name));
    if (var == nullptr || !IsComplex(var->dtype)) continue;
    return InvalidArgument("--top: '", name, "' is ", DescribeVar(var),
                           ", and complex numbers have no order");
  }
  return absl::OkStatus();
}

std::vector<TopRow> FindTop(const NamedTensor& tensor, int64_t count,
                            absl::Span<const std::string> labels) {
  const Shape& shape = tensor.second.shape;
  std::vector<TopRow> rows;
  if (shape.rank() == 0 || IsComplex(tensor.second.dtype) || tensor.second.numel() == 0)
    return rows;
  const int64_t size = shape[shape.rank() - 1];
  const int64_t num_rows = std::min(tensor.second.numel() / size, kMaxTopRows);
  VisitElements(tensor.second, [&](const auto* data, int64_t /*elements*/) {
    for (int64_t row = 0; row < num_rows; ++row) {
      rows.push_back(
          {tensor.first, RowText(shape, row), TopOfRow(data + row * size, size, count, labels)});
    }
  });
  return rows;
}

std::string FormatTop(absl::Span<const TopRow> rows) {
  std::vector<std::vector<std::string>> table = {{"top of", "row", "value", "index", "label"}};
  for (const TopRow& row : rows) {
    bool first = true;
    for (const TopValue& value : row.values) {
      table.push_back({first ? row.name : "", first ? row.row : "", absl::StrCat(value.value),
                       absl::StrCat(value.index), value.label});
      first = false;
    }
  }
  return FormatTable(table);
}

void WriteJson(const TopRow& row, JsonWriter& json) {
  json.BeginObject();
  json.Field("name", row.name);
  json.Field("row", row.row);
  json.Objects("values", row.values, [&](const TopValue& value) {
    json.Field("index", value.index);
    json.Field("value", value.value);
    json.Field("label", value.label);
  });
  json.EndObject();
}

}  // namespace interp
