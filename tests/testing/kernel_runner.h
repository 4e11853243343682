// Runs the kernel of one op by itself, without a plan: in a given layout, on a given number of
// threads.
#pragma once

#include <string>
#include <vector>

#include "core/op_def.h"
#include "core/program.h"
#include "core/tensor.h"

namespace interp::testing {

struct KernelRunOptions {
  // The layout of the images among the inputs and outputs, chosen as a plan would.
  Layout layout = Layout::kPlain;
  int num_threads = 1;
  // Inputs that are not read (kNoNeedBuffer) are channels-last where they are images, and have lost
  // their memory.
  bool unread_elsewhere = false;
};

// Runs `op` of `program` on `inputs`, plain tensors by variable name, which are copied. Returns the
// outputs in plain layout, by name. Unimplemented when a plan would not run the op like this: it
// does not take the layout, or an input would be cast first, or nothing is unread.
absl::StatusOr<std::vector<NamedTensor>> RunKernel(const Program& program, const Op& op,
                                                   absl::Span<const NamedTensor> inputs,
                                                   const KernelRunOptions& options);

// A copy of `tensor` in another layout. REQUIRES: rank 4 or 5 for kChannelsLast.
Tensor InLayout(const Tensor& tensor, Layout layout);

}  // namespace interp::testing
