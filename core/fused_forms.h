// Attributes by which Paddle's oneDNN passes say, on an op of plain type, what they have fused into
// it. Kernels that do not compute that refuse such ops, and passes that swallow an op must not lose
// it.
#pragma once

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/program.h"
#include "core/status.h"

namespace interp {

// OK when no such attribute of the op changes what the op computes, else InvalidArgument with the
// first that does. Scales of int8 do so where `use_mkldnn` is set. `read`: attributes that the
// caller reads itself.
absl::Status CheckNothingFused(const Op& op, absl::Span<const absl::string_view> read = {});

// Whether a convolution, which reads all that such passes have for it, has an activation or a sum
// of theirs already, or attributes that cannot be read.
bool IsFusedConv(const Op& op);

}  // namespace interp
