// Numbers of the host, such as the offsets of a LoD, for the work of a row.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "core/op_def.h"
#include "kernels/cuda/numbers.h"

namespace interp::cuda {

// As many launches with numbers are nodes of a graph: more would make it slower than the copy of a
// run without.
inline constexpr int64_t kMostCapturedNumbers = 16 * kNumbersPerLaunch;

// Writes `numbers` to memory of the device, in the order of the row's stream; they may change at
// once. Few travel by value (numbers.h), more through pinned memory in one copy, for which the host
// waits only where too much of that is in use. All travel by value while the stream is captured.
// Errors: FailedPrecondition for more than kMostCapturedNumbers then.
absl::Status StoreNumbers(const KernelContext& ctx, absl::Span<const int64_t> numbers, int64_t* to);

// Several lists in temporary memory of the device.
class NumberLists {
 public:
  // Enqueues what brings them there; they may change at once. `ctx` runs a row and outlives it.
  static absl::StatusOr<NumberLists> Make(const KernelContext& ctx,
                                          std::initializer_list<absl::Span<const int64_t>> lists);

  // List `i` on the device.
  const int64_t* list(size_t i) const { return memory_.data<int64_t>() + begins_[i]; }

 private:
  NumberLists(Workspace memory, std::vector<int64_t> begins)
      : memory_(std::move(memory)), begins_(std::move(begins)) {}

  Workspace memory_;
  std::vector<int64_t> begins_;
};

}  // namespace interp::cuda
