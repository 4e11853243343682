// The largest values of each row of a result: what a classifier says.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/base/json_writer.h"
#include "core/program.h"
#include "core/status.h"
#include "core/tensor.h"

namespace interp {

struct TopValue {
  int64_t index = 0;  // along the last dim
  double value = 0;
  std::string label = {};  // empty: there is none for the index
};

struct TopRow {
  std::string name;              // of the variable
  std::string row;               // "[0]": index along the other dims
  std::vector<TopValue> values;  // largest first, equal ones in the order of their indices
};

// One label a line, blanks at its ends dropped. Errors: those of reading, with the path.
absl::StatusOr<std::vector<std::string>> ReadLabels(const std::string& path);

// InvalidArgument for a fetch that the program declares complex: such values have no order.
absl::Status CheckTop(const Program& program, const std::vector<std::string>& fetches);

// The `count` largest of each row along the last dim, of the first kMaxTopRows rows; NaN counts as
// the smallest. Nothing for tensors of rank 0 and for those whose elements have no order.
inline constexpr int64_t kMaxTopRows = 16;
std::vector<TopRow> FindTop(const NamedTensor& tensor, int64_t count,
                            absl::Span<const std::string> labels);

std::string FormatTop(absl::Span<const TopRow> rows);
void WriteJson(const TopRow& row, JsonWriter& json);

}  // namespace interp
