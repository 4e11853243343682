// Rows of quantize and dequantize in the form of Paddle-Mobile, whose whole numbers are float32, as
// are the convolutions between. Those of oneDNN's form surround convolutions of int8, which are the
// host's.
#include "kernels/cuda/quantize.h"
#include "kernels/cuda/row.h"
#include "kernels/quant/requantize_attrs.h"

namespace interp::cuda {
namespace {

// X -> Out, OutScale.
absl::Status QuantizeMobile(KernelContext& ctx) {
  const QuantGrid& grid = ctx.attrs<QuantizeAttrs>().grid;
  const Tensor& x = ctx.input(kMobileX);
  INTERP_ASSIGN_OR_RETURN(const Workspace bits, ctx.workspace(sizeof(uint32_t)));
  return QuantizeByMaximum({.x = x.data<float>(),
                            .size = x.numel(),
                            .bins = static_cast<float>(grid.bins),
                            .round_half_even = grid.round_half_even,
                            .bits = bits.data<uint32_t>(),
                            .scale = ctx.output(kMobileOutScale).mutable_data<float>(),
                            .out = ctx.output(kMobileOut).mutable_data<float>()},
                           StreamOf(ctx));
}

// X, Scale -> Out.
absl::Status DequantizeMobile(KernelContext& ctx) {
  const Tensor& x = ctx.input(kMobileX);
  return Dequantize(x.data<float>(), ctx.input(kMobileScale).data<float>(),
                    ctx.attrs<DequantizeAttrs>().max_range,
                    ctx.output(kMobileOut).mutable_data<float>(), x.numel(), StreamOf(ctx));
}

template <typename Attrs>
bool IsMobile(const void* attrs) {
  return static_cast<const Attrs*>(attrs)->mobile;
}

INTERP_REGISTER_KERNELS("quantize",
                        RowsFor({DType::kFloat32}, QuantizeMobile, IsMobile<QuantizeAttrs>));
INTERP_REGISTER_KERNELS("dequantize",
                        RowsFor({DType::kFloat32}, DequantizeMobile, IsMobile<DequantizeAttrs>));

}  // namespace
}  // namespace interp::cuda
