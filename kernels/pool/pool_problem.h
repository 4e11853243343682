// Pooling: the attributes of pool2d and pool3d and the windows of one concrete case, for both
// directions.
#pragma once

#include <vector>

#include "core/attr_reader.h"
#include "core/op_def.h"
#include "kernels/conv/image.h"
#include "kernels/conv/window.h"
#include "kernels/pool/pool_window.h"

namespace interp::nn {

struct PoolAttrs {
  PoolKind kind = PoolKind::kMax;
  std::vector<int64_t> kernel;
  WindowAttrs window;
  bool global = false;
  bool adaptive = false;
  bool ceil_mode = false;
  bool exclusive = true;
  bool channels_last_dims = false;
};

PoolAttrs ReadPool2d(AttrReader& reader);
PoolAttrs ReadPool3d(AttrReader& reader);

// The windows over an image batch of shape `x`, and the shape of what they give. Checks the shape
// against the attributes.
struct PoolShapes {
  Window window;
  Shape out;
};
absl::StatusOr<PoolShapes> ResolvePool(const PoolAttrs& attrs, const Shape& x);

// The slots of an op that may have the attribute `ksize` as one tensor, or as a list of numbers.
inline constexpr int kKernelSizeFlags = kOptional | kAnyDType | kAnyLayout | kValueInInfer;
struct KernelSizeSlots {
  int tensor;
  int list;
};
// The attributes; a copy in `own` with the kernel of those inputs, where there is one.
absl::StatusOr<const PoolAttrs*> PoolAttrsOf(const OpContext& ctx, KernelSizeSlots slots,
                                             PoolAttrs& own);

// The loops of one case. REQUIRES: `window` is that of the shape of `x`.
Pool MakePool(const PoolAttrs& attrs, const Window& window, const Tensor& x);

}  // namespace interp::nn
