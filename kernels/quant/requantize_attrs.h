// The attributes of quantize and dequantize, for their kernels of any place.
#pragma once

#include "core/dtype.h"
#include "kernels/quant/quantize.h"

namespace interp {

struct QuantizeAttrs {
  float scale = 1;
  float shift = 0;
  DType dtype = DType::kUInt8;
  bool mobile = false;  // the form of Paddle-Mobile, which has the grid alone
  QuantGrid grid = {};
};

struct DequantizeAttrs {
  float scale = 1;
  float shift = 0;
  bool bfloat16 = false;
  bool mobile = false;  // which has the range alone
  float max_range = 1;
};

// Positions of slots of that form.
inline constexpr int kMobileX = 1;
inline constexpr int kMobileScale = 2;
inline constexpr int kMobileOut = 1;
inline constexpr int kMobileOutScale = 2;

}  // namespace interp
