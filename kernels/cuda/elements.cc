#include "kernels/cuda/elements.h"

#include "kernels/cuda/convert.h"
#include "kernels/cuda/row.h"

namespace interp::cuda {

Elements ElementsOf(DType dtype, const void* memory) {
  return {static_cast<char*>(const_cast<void*>(memory)), static_cast<int64_t>(SizeOf(dtype))};
}

void* MemoryOrNull(Tensor* tensor) {
  return tensor == nullptr || tensor->numel() == 0 ? nullptr : tensor->mutable_raw_data();
}

absl::Status Zero(const KernelContext& ctx, Elements memory, int64_t count) {
  return Fill(static_cast<int>(memory.bytes), /*bits=*/0, memory.data, count, StreamOf(ctx));
}

absl::Status ZeroOutputs(KernelContext& ctx, absl::Span<const int> slots) {
  for (const int slot : slots) {
    Tensor* const out = ctx.optional_output(slot);
    if (out == nullptr || out->numel() == 0) continue;
    INTERP_RETURN_IF_ERROR(
        Zero(ctx, ElementsOf(out->dtype, out->mutable_raw_data()), out->numel()));
  }
  return absl::OkStatus();
}

absl::Status Multiply(KernelContext& ctx, DType dtype, const LayerProduct& product, Elements x,
                      Elements y, Elements out) {
  nn::Product p = nn::ProductOf(product.m, product.n, product.k);
  p.trans_x = product.trans_x;
  p.trans_y = product.trans_y;
  return RunProduct(ctx, p, dtype, dtype, {.x = x.data, .y = y.data, .out = out.data},
                    product.beta);
}

}  // namespace interp::cuda
