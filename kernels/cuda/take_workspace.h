// How functions over libraries get temporary memory of the device.
#pragma once

#include <cstddef>

#include "absl/functional/function_ref.h"
#include "core/resource/workspace.h"

namespace interp::cuda {

// Takes it in the order of the stream; a row's is KernelContext::workspace.
using TakeWorkspace = absl::FunctionRef<absl::StatusOr<Workspace>(size_t bytes)>;

}  // namespace interp::cuda
