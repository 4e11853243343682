// What training in 16 bits does with the scale of its loss.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "core/dtype.h"
#include "core/status.h"
#include "kernels/cuda/array_update.h"
#include "kernels/cuda/floats.h"

namespace interp::cuda {

// Scratch memory of CheckFiniteAndUnscale.
inline constexpr size_t kUnscaleWorkspaceBytes = sizeof(int);

// out = in / scale, and *found tells whether some array has an infinity or a NaN. From the first
// such array on, out = 0 in, as on the host: NaN for those elements. float32, float16 or bfloat16.
// Enqueued on `stream`.
absl::Status CheckFiniteAndUnscale(DType dtype, absl::Span<const ArrayUpdate> arrays,
                                   const Floats& scale, void* workspace, bool* found,
                                   cudaStream_t stream);

// Sizes count bytes: out = 0 where *found, otherwise in.
absl::Status ZeroWhere(const bool* found, absl::Span<const ArrayUpdate> arrays,
                       cudaStream_t stream);

// The scale and the steps since it changed, with and without an infinity. Outputs may be inputs.
struct LossScaleArguments {
  const bool* found = nullptr;
  const bool* stop = nullptr;  // all stay as they are where it is true; null: `stops`
  bool stops = false;
  FloatsUpdate scale;
  const int32_t* good_in = nullptr;
  const int32_t* bad_in = nullptr;
  int32_t* good_out = nullptr;
  int32_t* bad_out = nullptr;
  int32_t grow_after = 0;
  int32_t shrink_after = 0;
  float grow = 0;
  float shrink = 0;
};
absl::Status UpdateLossScale(const LossScaleArguments& arguments, cudaStream_t stream);

}  // namespace interp::cuda
