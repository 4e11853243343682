#include "tools/table.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace interp {
namespace {

bool LooksLikeNumber(absl::string_view cell) {
  absl::ConsumeSuffix(&cell, "%");
  double ignored;
  return cell.empty() || cell == "-" || absl::SimpleAtod(cell, &ignored);
}

}  // namespace

std::string FormatTable(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  std::vector<bool> numeric;
  for (size_t r = 0; r < rows.size(); ++r) {
    widths.resize(std::max(widths.size(), rows[r].size()), 0);
    numeric.resize(widths.size(), true);
    for (size_t c = 0; c < rows[r].size(); ++c) {
      widths[c] = std::max(widths[c], rows[r][c].size());
      if (r > 0 && !LooksLikeNumber(rows[r][c])) numeric[c] = false;
    }
  }
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) {
      const std::string padding(widths[c] - row[c].size(), ' ');
      absl::StrAppend(&line, c > 0 ? "  " : "", numeric[c] ? padding : "", row[c],
                      numeric[c] ? "" : padding);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    absl::StrAppend(&text, line, "\n");
  }
  return text;
}

}  // namespace interp
