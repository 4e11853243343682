// Any bytes as MultiSlot text: an error, or a table whose columns fit each other and the limit.
#include <cstdint>
#include <cstdlib>

#include "core/io/multi_slot.h"

namespace {

void Check(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace interp;  // NOLINT(google-build-using-namespace)
  constexpr size_t kMaxBytes = 4096;
  const std::vector<DataSlot> slots = {{.name = "label", .is_float = true, .width = 1},
                                       {.name = "user", .is_unused = true},
                                       {.name = "ids"}};
  SlotTable table(slots.size());
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  if (!ParseMultiSlot(text, slots, kMaxBytes, table).ok()) return 0;
  size_t bytes = 0;
  for (const SlotColumn& column : table) {
    Check(std::ssize(column.begins) - 1 == NumSamples(table));
    const size_t values = column.ids.size() + column.floats.size();
    Check(column.begins.back() == static_cast<int64_t>(values));
    for (size_t i = 1; i < column.begins.size(); ++i) {
      Check(column.begins[i - 1] <= column.begins[i]);
    }
    bytes += column.ids.size() * sizeof(int64_t) + column.floats.size() * sizeof(float);
  }
  Check(bytes <= kMaxBytes);
  return 0;
}
