#include "core/device/cuda/cuda_device.h"

namespace interp::cuda {}  // namespace interp::cuda
