// Products whose attribute `force_fp32_output` makes them give float32 of operands of bfloat16, as
// programs say it that Paddle has converted for oneDNN.
#pragma once

#include "core/op_def.h"

namespace interp::nn {

// An OpDef::kernel_dtype: that of the first input, but float32 where `Attrs::gives_float32` wants
// it of bfloat16. REQUIRES: the first slot is always present.
template <typename Attrs>
DType ForcedDType(const DTypeContext& ctx) {
  const DType dtype = ctx.input(0);
  const bool forced = dtype == DType::kBFloat16 && ctx.attrs<Attrs>().gives_float32;
  return forced ? DType::kFloat32 : dtype;
}

}  // namespace interp::nn
