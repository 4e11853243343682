// Batched matrix products behind mul, matmul, bmm, fc and their like:
//
//   out[b] = activation(alpha * op(X[xb]) op(Y[yb]) + bias)
//
// where op transposes or not, and xb, yb follow from b by broadcasting. Matrices are row-major.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "core/float16.h"
#include "core/op_def.h"
#include "core/packed_arrays.h"
#include "kernels/nn/fused_activation.h"
#include "kernels/product/gemm.h"

namespace interp::nn {

struct Product {
  int64_t m = 1;
  int64_t n = 1;
  int64_t k = 1;
  bool trans_x = false;  // X holds k x m matrices
  bool trans_y = false;  // Y holds n x k matrices
  Shape batch;           // of the result
  // Matrices to advance in X and Y per step of each batch dim; 0 where they broadcast.
  std::array<int64_t, kMaxRank> x_steps = {};
  std::array<int64_t, kMaxRank> y_steps = {};

  double alpha = 1;
  FusedActivation activation;  // not of integers

  // Matrices in the result, X and Y.
  int64_t count() const { return batch.numel(); }
  int64_t count_x() const;
  int64_t count_y() const;
};

// That of one m x k matrix and one k x n.
inline Product ProductOf(int64_t m, int64_t n, int64_t k) {
  Product product;
  product.m = m;
  product.n = n;
  product.k = k;
  return product;
}

// Derives batch, x_steps and y_steps from the batch dims of X and Y by NumPy's rules.
absl::Status BroadcastBatch(absl::Span<const int64_t> x, absl::Span<const int64_t> y,
                            Product& product);

// Turns a batch of X times one Y into a single product with more rows.
void FoldBatch(Product& product);

// Packed constant Y, kept between runs, and how the last run multiplied.
struct ProductState : KernelState {
  std::shared_ptr<const PackedArrays> packed;  // of T or, for bfloat16, of pairs
  const char* method = "";                     // RunProduct's

  std::string algorithm() const override { return method; }
};

// Computes `product` into `out`. `bias` has n elements or is null. With `y_constant`, what is
// derived from `y` is shared by clones and kept in this instruction's ProductState; a `y` of float
// may be at any address then. T is float, double, bfloat16 or float16, whose sums are taken in
// float, or the unsigned form of an integer type, whose products wrap. `method`, unless null, is
// told how, as --profile shows it: by "kept panels" of a constant Y, by "panels" that are packed in
// each run or, "by matrix", right before they are multiplied with, by "rows as they lie", or "as
// float32". These are literals.
template <typename T>
absl::Status RunProduct(KernelContext& ctx, const Product& product, const T* x, const T* y,
                        bool y_constant, const T* bias, T* out, const char** method = nullptr);

// Makes what RunProduct keeps of a constant `y`, unless that is done. With `in_file` (see
// Buffer::in_file) the pages of a file are given back as soon as they are packed.
absl::Status PrepareProduct(KernelContext& ctx, const Product& product, const float* y,
                            bool in_file);

extern template absl::Status RunProduct<float>(KernelContext&, const Product&, const float*,
                                               const float*, bool, const float*, float*,
                                               const char**);
extern template absl::Status RunProduct<double>(KernelContext&, const Product&, const double*,
                                                const double*, bool, const double*, double*,
                                                const char**);
extern template absl::Status RunProduct<uint32_t>(KernelContext&, const Product&, const uint32_t*,
                                                  const uint32_t*, bool, const uint32_t*, uint32_t*,
                                                  const char**);
extern template absl::Status RunProduct<uint64_t>(KernelContext&, const Product&, const uint64_t*,
                                                  const uint64_t*, bool, const uint64_t*, uint64_t*,
                                                  const char**);
template <>
absl::Status RunProduct<bfloat16>(KernelContext& ctx, const Product& product, const bfloat16* x,
                                  const bfloat16* y, bool y_constant, const bfloat16* bias,
                                  bfloat16* out, const char** method);

template <>
absl::Status RunProduct<float16>(KernelContext& ctx, const Product& product, const float16* x,
                                 const float16* y, bool y_constant, const float16* bias,
                                 float16* out, const char** method);

// The product of matrices of 16 bits as float, for sums of several.
absl::Status RunWideProduct(KernelContext& ctx, const Product& product, const bfloat16* x,
                            const bfloat16* y, float* out);
absl::Status RunWideProduct(KernelContext& ctx, const Product& product, const float16* x,
                            const float16* y, float* out);

}  // namespace interp::nn
