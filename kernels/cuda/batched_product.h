// The products of ops, nn::Product, whose batches may broadcast in any way, by cuBLASLt.
#pragma once

#include "core/op_def.h"
#include "kernels/cuda/product.h"
#include "kernels/product/product.h"

namespace interp::cuda {

// What an instruction of products keeps.
struct ProductState : KernelState {
  const BlasHandle* blas = nullptr;  // of its stream
  bool tf32 = false;                 // as its place has it, once there is a handle
  ProductPlans plans;
};

// Computes `product` as nn::RunProduct does on the host, bias and activation included:
//   out = activation(alpha op(x) op(y) + beta out + bias)
// Factors are of `dtype`; of 16 bits, out and bias may be float32. One call of the library serves
// the longest run of a batch that has one step; a batch that broadcasts both ways takes several.
// The state of the instruction is a ProductState.
absl::Status RunProduct(KernelContext& ctx, const nn::Product& product, DType dtype,
                        DType out_dtype, const ProductOperands& operands, double beta = 0);

}  // namespace interp::cuda
