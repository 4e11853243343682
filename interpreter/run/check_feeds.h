// CheckFeeds: whether what is fed to a run fits the program.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "core/status.h"
#include "core/tensor.h"
#include "interpreter/plan/plan.h"

namespace interp {

// InvalidArgument, with the feed's name, for a dtype, a LoD or memory that does not fit `specs`,
// and for dims other than those declared, of which -1 is any; of a feed that an op overwrites, the
// declaration may tell of the later value, and they are free. `check_shapes` false: dims are
// checked only where the program asks for it.
absl::Status CheckFeeds(absl::Span<const Tensor> feeds, const std::vector<FeedSpec>& specs,
                        bool check_shapes);

// Kernels read bools as bytes of 0 and 1, callers may have others for true: whether a bool tensor
// on the host has such. Looks at no other tensor's elements.
bool HasOtherBools(const Tensor& fed);
// A copy of it with 1 in their place.
absl::StatusOr<Tensor> WithBoolsOf0And1(const Tensor& fed);

}  // namespace interp
