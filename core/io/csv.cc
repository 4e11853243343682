#include "core/io/csv.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace interp {
namespace {

constexpr double kExactIntegers = 9007199254740992.0;  // 2^53: a double holds all integers below

struct Column {
  std::string name;
  int64_t element = 0;
};

struct CsvArray {
  std::string name;
  std::vector<size_t> columns;  // by element
};

absl::StatusOr<Column> ParseHeaderCell(absl::string_view cell, size_t column) {
  cell = absl::StripAsciiWhitespace(cell);
  Column parsed{.name = std::string(cell), .element = 0};
  if (cell.empty()) return InvalidArgument("column ", column + 1, " has no name");
  if (!absl::ConsumeSuffix(&cell, "]")) return parsed;
  const size_t open = cell.rfind('[');
  if (open == absl::string_view::npos || open == 0 ||
      !absl::SimpleAtoi(cell.substr(open + 1), &parsed.element)) {
    return InvalidArgument("column ", column + 1, " is '", parsed.name,
                           "', expected NAME or NAME[i]");
  }
  parsed.name = std::string(cell.substr(0, open));
  return parsed;
}

absl::StatusOr<std::vector<CsvArray>> ParseHeader(absl::string_view line) {
  const std::vector<absl::string_view> cells = absl::StrSplit(line, ',');
  std::vector<CsvArray> arrays;
  absl::flat_hash_map<std::string, size_t> positions;  // in `arrays`
  for (size_t i = 0; i < cells.size(); ++i) {
    INTERP_ASSIGN_OR_RETURN(const Column column, ParseHeaderCell(cells[i], i));
    const auto [position, added] = positions.try_emplace(column.name, arrays.size());
    if (added) arrays.push_back({.name = column.name, .columns = {}});
    CsvArray* const array = &arrays[position->second];
    if (column.element != static_cast<int64_t>(array->columns.size())) {
      return InvalidArgument("column ", i + 1, " is element ", column.element, " of '", column.name,
                             "', expected element ", array->columns.size());
    }
    array->columns.push_back(i);
  }
  return arrays;
}

absl::Status ParseLine(absl::string_view line, size_t number, size_t num_columns,
                       std::vector<double>& values) {
  size_t column = 0;
  for (const absl::string_view cell : absl::StrSplit(line, ',')) {
    double value = 0;
    if (!absl::SimpleAtod(cell, &value)) {
      return InvalidArgument("line ", number, ", column ", column + 1, ": '", cell.substr(0, 40),
                             "' is no number");
    }
    values.push_back(value);
    ++column;
  }
  if (column == num_columns) return absl::OkStatus();
  return InvalidArgument("line ", number, " has ", column, " cells, the header has ", num_columns);
}

bool IsInteger(double value) {
  return std::abs(value) <= kExactIntegers && value == std::trunc(value);
}

absl::StatusOr<Tensor> Take(const CsvArray& array, const std::vector<double>& values,
                            size_t num_columns) {
  const size_t num_samples = values.size() / num_columns;
  const auto at = [&](size_t sample, size_t element) {
    return values[sample * num_columns + array.columns[element]];
  };
  std::vector<double> taken;
  taken.reserve(num_samples * array.columns.size());
  for (size_t i = 0; i < num_samples; ++i) {
    for (size_t j = 0; j < array.columns.size(); ++j) taken.push_back(at(i, j));
  }
  const Shape shape = {static_cast<int64_t>(num_samples),
                       static_cast<int64_t>(array.columns.size())};
  if (!std::all_of(taken.begin(), taken.end(), IsInteger)) return Tensor::Of<double>(shape, taken);
  const std::vector<int64_t> integers(taken.begin(), taken.end());
  return Tensor::Of<int64_t>(shape, integers);
}

}  // namespace

absl::StatusOr<std::vector<NamedTensor>> ParseCsv(absl::string_view text, size_t max_bytes) {
  absl::ConsumePrefix(&text, "\xef\xbb\xbf");  // of spreadsheets that mark UTF-8
  std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  while (!lines.empty() && absl::StripAsciiWhitespace(lines.back()).empty()) lines.pop_back();
  if (lines.empty()) return InvalidArgument("is empty, expected a line of names");
  absl::StatusOr<std::vector<CsvArray>> arrays = ParseHeader(lines[0]);
  if (!arrays.ok()) return Annotate(arrays.status(), "line 1");
  size_t num_columns = 0;
  for (const CsvArray& array : *arrays) num_columns += array.columns.size();
  const size_t claimed = (lines.size() - 1) * num_columns * sizeof(double);
  if (claimed > max_bytes) {
    return ResourceExhausted("the arrays would take ", claimed, " bytes, the limit is ", max_bytes);
  }
  std::vector<double> values;
  for (size_t i = 1; i < lines.size(); ++i) {
    const absl::string_view line = absl::StripSuffix(lines[i], "\r");
    INTERP_RETURN_IF_ERROR(ParseLine(line, i + 1, num_columns, values));
  }
  std::vector<NamedTensor> tensors;
  for (const CsvArray& array : *arrays) {
    INTERP_ASSIGN_OR_RETURN(Tensor tensor, Take(array, values, num_columns));
    tensors.emplace_back(array.name, std::move(tensor));
  }
  return tensors;
}

}  // namespace interp
