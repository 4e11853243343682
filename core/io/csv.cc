#include "core/io/csv.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/annotate.h"

namespace interp {
namespace {

constexpr double kExactIntegers = 9007199254740992.0;  // 2^53: a double holds all integers below

// Whether the number in the text was the same.
bool IsExactInteger(double value) {
  return std::abs(value) < kExactIntegers && value == std::trunc(value);
}

// The cells of all lines, one after another. What is written as an integer is kept as one, which a
// double may not hold.
class Cells {
 public:
  size_t size() const { return bits_.size(); }
  void AddInteger(int64_t value) {
    bits_.push_back(value);
    is_integer_.push_back(true);
  }
  void AddDouble(double value) {
    bits_.push_back(std::bit_cast<int64_t>(value));
    is_integer_.push_back(false);
  }

  bool HoldsInteger(size_t cell) const {
    return is_integer_[cell] || IsExactInteger(std::bit_cast<double>(bits_[cell]));
  }
  // REQUIRES: HoldsInteger(cell).
  int64_t Integer(size_t cell) const {
    return is_integer_[cell] ? bits_[cell]
                             : static_cast<int64_t>(std::bit_cast<double>(bits_[cell]));
  }
  double Double(size_t cell) const {
    return is_integer_[cell] ? static_cast<double>(bits_[cell])
                             : std::bit_cast<double>(bits_[cell]);
  }

 private:
  std::vector<int64_t> bits_;  // of the integer, or of the double
  std::vector<bool> is_integer_;
};

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

// What is wrong with the cell, or nothing.
std::string AddCell(absl::string_view text, bool to_be_integer, Cells& cells) {
  int64_t integer = 0;
  double value = 0;
  const bool negative_zero = text.find('-') != absl::string_view::npos;
  if (absl::SimpleAtoi(text, &integer) && !(integer == 0 && negative_zero)) {
    cells.AddInteger(integer);
    return "";
  }
  if (!absl::SimpleAtod(text, &value)) return "is no number";
  // Written as nan or inf, or too large: one of these would spoil all parameters.
  if (!std::isfinite(value)) return "is no finite number";
  if (to_be_integer && value != std::trunc(value)) return "is no integer";
  if (to_be_integer && !IsExactInteger(value)) {
    return "is no int64, which from 2^53 on is to be written with digits alone";
  }
  cells.AddDouble(value);
  return "";
}

// `to_be_integers`: by column.
absl::Status ParseLine(absl::string_view line, size_t number,
                       const std::vector<bool>& to_be_integers, Cells& cells) {
  const size_t num_columns = to_be_integers.size();
  size_t column = 0;
  for (const absl::string_view cell : absl::StrSplit(line, ',')) {
    const bool to_be_integer = column < num_columns && to_be_integers[column];
    const std::string problem = AddCell(cell, to_be_integer, cells);
    ++column;
    if (problem.empty()) continue;
    return InvalidArgument("line ", number, ", column ", column, ": '", cell.substr(0, 40), "' ",
                           problem);
  }
  if (column == num_columns) return absl::OkStatus();
  return InvalidArgument("line ", number, " has ", column, " cells, the header has ", num_columns);
}

Tensor Take(const CsvArray& array, const Cells& cells, size_t num_columns) {
  const size_t num_samples = cells.size() / num_columns;
  std::vector<size_t> taken;
  taken.reserve(num_samples * array.columns.size());
  for (size_t i = 0; i < num_samples; ++i) {
    for (const size_t column : array.columns) taken.push_back(i * num_columns + column);
  }
  const Shape shape = {static_cast<int64_t>(num_samples),
                       static_cast<int64_t>(array.columns.size())};
  const auto all = [&]<typename T>(T (Cells::*value)(size_t) const) {
    std::vector<T> values;
    values.reserve(taken.size());
    for (const size_t cell : taken) values.push_back((cells.*value)(cell));
    return Tensor::Of<T>(shape, values);
  };
  const bool integers = std::all_of(taken.begin(), taken.end(),
                                    [&](size_t cell) { return cells.HoldsInteger(cell); });
  return integers ? all(&Cells::Integer) : all(&Cells::Double);
}

}  // namespace

absl::StatusOr<std::vector<NamedTensor>> ParseCsv(
    absl::string_view text, size_t max_bytes, const absl::flat_hash_set<std::string>& integers) {
  absl::ConsumePrefix(&text, "\xef\xbb\xbf");  // of spreadsheets that mark UTF-8
  std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  while (!lines.empty() && absl::StripAsciiWhitespace(lines.back()).empty()) lines.pop_back();
  if (lines.empty()) return InvalidArgument("is empty, expected a line of names");
  INTERP_ASSIGN_OR_RETURN(std::vector<CsvArray> arrays, Annotate(ParseHeader(lines[0]), "line 1"));
  size_t num_columns = 0;
  for (const CsvArray& array : arrays) num_columns += array.columns.size();
  std::vector<bool> to_be_integers(num_columns);
  for (const CsvArray& array : arrays) {
    for (const size_t column : array.columns)
      to_be_integers[column] = integers.contains(array.name);
  }
  const size_t claimed = (lines.size() - 1) * num_columns * sizeof(double);
  if (claimed > max_bytes) {
    return ResourceExhausted("the arrays would take ", claimed, " bytes, the limit is ", max_bytes);
  }
  Cells cells;
  for (size_t i = 1; i < lines.size(); ++i) {
    const absl::string_view line = absl::StripSuffix(lines[i], "\r");
    INTERP_RETURN_IF_ERROR(ParseLine(line, i + 1, to_be_integers, cells));
  }
  std::vector<NamedTensor> tensors;
  for (const CsvArray& array : arrays) {
    tensors.emplace_back(array.name, Take(array, cells, num_columns));
  }
  return tensors;
}

}  // namespace interp
