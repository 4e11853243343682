// Text tables.
#pragma once

#include <string>
#include <vector>

namespace interp {

// Rows of cells in aligned columns, two blanks apart, with no blanks at line ends. The first row is
// the head. Columns whose cells all look like numbers below the head are set flush right.
std::string FormatTable(const std::vector<std::vector<std::string>>& rows);

}  // namespace interp
