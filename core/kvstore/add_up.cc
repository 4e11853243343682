#include "core/kvstore/add_up.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/array/array_runtime.h"
#include "core/array/invoke.h"
#include "core/array/sum_arrays.h"

namespace interp {
namespace {

// On devices beside what they compute: a sum waits for other devices.
InvokeOptions Beside(int32_t priority) {
  return {.priority = priority, .property = engine::Property::kDeviceUrgent};
}

absl::Status Join(const std::vector<Array>& values, const Array& joined) {
  RowIndex index{.rows = {}, .height = joined.shape()[0]};
  for (const Array& value : values) {
    const RowIndex& part = *ArrayAccess::chunk(value)->value.selected_rows;
    index.rows.insert(index.rows.end(), part.rows.begin(), part.rows.end());
  }
  Tensor all;
  all.dtype = joined.dtype();
  all.shape = joined.shape();
  all.shape[0] = std::ssize(index.rows);
  INTERP_RETURN_IF_ERROR(all.Allocate(joined.runtime().host_pool()));
  auto* at = static_cast<char*>(all.mutable_raw_data());
  for (const Array& value : values) {
    const Tensor& part = ArrayAccess::chunk(value)->value.tensor;
    const size_t bytes = part.has_memory() ? part.size_bytes() : 0;
    if (bytes > 0) std::memcpy(at, part.raw_data(), bytes);
    at += bytes;
  }
  Variable& result = ArrayAccess::chunk(joined)->value;
  result.tensor = std::move(all);
  result.selected_rows = std::move(index);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Array> MoveTo(const Array& array, Place place, int32_t priority) {
  if (array.place() == place) return array;
  return array.CopyTo(place, priority);
}

absl::StatusOr<Array> AddUp(absl::Span<const Array> values, Place home, int32_t priority) {
  if (values.size() == 1) return MoveTo(values[0], home, priority);
  const Place first = values[0].place();
  if (std::all_of(values.begin(), values.end(),
                  [&](const Array& value) { return value.place() == first; })) {
    INTERP_ASSIGN_OR_RETURN(
        const Array sum, First(Invoke(values[0].runtime(), SumArraysDef(),
                                      {{"X", std::vector<Array>(values.begin(), values.end())}}, {},
                                      Beside(priority))));
    return MoveTo(sum, home, priority);
  }
  const size_t half = (values.size() + 1) / 2;
  // Where a part is summed does not change its bits.
  const auto place_of = [&](absl::Span<const Array> part) {
    const bool at_home = std::any_of(part.begin(), part.end(),
                                     [&](const Array& value) { return value.place() == home; });
    return at_home ? home : part[0].place();
  };
  const Place place = place_of(values);
  const absl::Span<const Array> left = values.first(half);
  const absl::Span<const Array> right = values.subspan(half);
  INTERP_ASSIGN_OR_RETURN(Array a, AddUp(left, place_of(left), priority));
  INTERP_ASSIGN_OR_RETURN(Array b, AddUp(right, place_of(right), priority));
  INTERP_ASSIGN_OR_RETURN(a, MoveTo(a, place, priority));
  INTERP_ASSIGN_OR_RETURN(b, MoveTo(b, place, priority));
  INTERP_ASSIGN_OR_RETURN(const Array sum, First(Invoke(a.runtime(), SumArraysDef(),
                                                        {{"X", {a, b}}}, {}, Beside(priority))));
  return MoveTo(sum, home, priority);
}

absl::StatusOr<Array> JoinRows(absl::Span<const Array> values, int32_t priority) {
  if (values.size() == 1) return values[0];
  ArrayRuntime& runtime = values[0].runtime();
  INTERP_ASSIGN_OR_RETURN(const Array joined,
                          runtime.NewRows(values[0].shape(), values[0].dtype()));
  std::vector<engine::Variable> reads;
  for (const Array& value : values) reads.push_back(value.variable());
  const engine::Variable written = joined.variable();
  INTERP_RETURN_IF_ERROR(runtime.engine().Push(
      [parts = std::vector<Array>(values.begin(), values.end()), joined] {
        return Join(parts, joined);
      },
      {.reads = reads, .writes = {&written, 1}}, {.name = "join rows", .priority = priority}));
  return joined;
}

}  // namespace interp
