// Memory that rows of recurrent ops divide up, and products of it.
#pragma once

#include <cstdint>

#include "kernels/cuda/batched_product.h"

namespace interp::cuda {

// Memory of the device in elements of some size.
struct Elements {
  char* data = nullptr;
  int64_t bytes = 1;  // of an element

  // Null stays null.
  Elements operator+(int64_t count) const {
    return {data == nullptr ? nullptr : data + count * bytes, bytes};
  }
};

// `memory` is written only where it is that of an output.
Elements ElementsOf(DType dtype, const void* memory);

// The memory of an output, null without elements.
void* MemoryOrNull(Tensor* tensor);

// Sets `count` elements to 0.
absl::Status Zero(const KernelContext& ctx, Elements memory, int64_t count);
// All outputs, one each slot, that there are.
absl::Status ZeroOutputs(KernelContext& ctx, absl::Span<const int> slots);

// One product of row-major matrices, out [m, n] = op(x) op(y) + beta out.
struct LayerProduct {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  bool trans_x = false;
  bool trans_y = false;
  double beta = 0;
};

// Enqueued on the stream of `ctx`, whose state is a ProductState.
absl::Status Multiply(KernelContext& ctx, DType dtype, const LayerProduct& product, Elements x,
                      Elements y, Elements out);

}  // namespace interp::cuda
