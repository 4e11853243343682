// MultiSlot text, the data of Paddle's programs for click-through rates (QueueDataset,
// InMemoryDataset): a line for each sample, and in it for each slot, in a fixed order, how many
// values it has and the values.
//
//   1 1.0 3 11 12 13 2 0.5 0.25      slots of one float, of any number of ids, of two floats
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/status.h"

namespace interp {

struct DataSlot {
  std::string name;
  bool is_float = false;   // else ids of 64 bits, signed or not
  int64_t width = 0;       // how many values every sample has; 0: any number but none
  bool is_unused = false;  // its values are read over, whatever they are
};

// The values of one slot, sample by sample.
struct SlotColumn {
  std::vector<int64_t> ids;
  std::vector<float> floats;          // of a slot of floats, instead of `ids`
  std::vector<int64_t> begins = {0};  // of each sample's values, and the end of the last one's
};

// By slot; all have the same number of samples.
using SlotTable = std::vector<SlotColumn>;

int64_t NumSamples(const SlotTable& table);

// Appends the samples of `text` to `table`, which has a column for each of `slots`. Errors name the
// line and the slot: InvalidArgument for what is no finite number, for another number of values
// than a slot has, for lines with too few or too many; ResourceExhausted when those of `text` take
// more than `max_bytes`. `table` is not to be used then.
absl::Status ParseMultiSlot(absl::string_view text, absl::Span<const DataSlot> slots,
                            size_t max_bytes, SlotTable& table);

}  // namespace interp
