// Products of matrices, by cuBLASLt.
//
// Our matrices are row-major and the library's column-major, so it is asked for the transposed
// product, out^T = op(y)^T op(x)^T, for which nothing has to move. float32 is multiplied as
// float32 unless ProductShape::tf32 asks for less; sums of 16-bit floats are taken in float32.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <memory>

#include "core/dtype.h"
#include "core/status.h"
#include "kernels/cuda/take_workspace.h"
#include "kernels/nn/onednn.h"

namespace interp::cuda {

// The library's context on the GPU that was current when it was made. Thread-safe.
class BlasHandle {
 public:
  static absl::StatusOr<std::unique_ptr<BlasHandle>> Make();
  ~BlasHandle();
  BlasHandle(const BlasHandle&) = delete;
  BlasHandle& operator=(const BlasHandle&) = delete;

  cublasLtHandle_t get() const { return handle_; }

 private:
  BlasHandle(cublasLtHandle_t handle, int device) : handle_(handle), device_(device) {}

  const cublasLtHandle_t handle_;
  const int device_;
};

// What is applied to the sums, in the same launch.
enum class ProductActivation : int8_t { kNone, kRelu, kGeluTanh };

// `count` products of row-major matrices:
//   out[i] = activation(alpha op(x[i]) op(y[i]) + beta out[i] + bias)
struct ProductShape {
  DType dtype = DType::kFloat32;      // of x and y: float32, float64, float16 or bfloat16
  DType out_dtype = DType::kFloat32;  // of out and bias: that, or float32 for 16 bits
  bool tf32 = false;                  // factors of float32 are rounded to TF32
  int64_t m = 0;                      // out[i] is m x n
  int64_t n = 0;
  int64_t k = 0;
  bool trans_x = false;  // x[i] is k x m, not m x k
  bool trans_y = false;  // y[i] is n x k, not k x n
  int64_t count = 1;
  // Elements from one matrix to the next; 0: all products read the same one.
  int64_t x_step = 0;
  int64_t y_step = 0;
  int64_t out_step = 0;
  double alpha = 1;
  double beta = 0;    // 0: `out` is not read
  bool bias = false;  // n elements, added to each row; not of float64
  ProductActivation activation = ProductActivation::kNone;  // not of float64
};

// Memory of the device.
struct ProductOperands {
  const void* x = nullptr;
  const void* y = nullptr;
  const void* bias = nullptr;
  void* out = nullptr;
};

// What one instruction keeps for the shapes it met last: descriptors, and the algorithm that the
// library's heuristic chose.
// Thread-safety: none.
class ProductPlans {
 public:
  ProductPlans();
  ~ProductPlans();

  // Enqueues the products on `stream`. Nothing runs where the result has no elements; without terms
  // (k = 0) the sums are 0.
  // Errors: InvalidArgument for sizes beyond the library's, Unimplemented for what it does not
  // compute, ResourceExhausted for memory.
  absl::Status Run(const BlasHandle& blas, const ProductShape& shape,
                   const ProductOperands& operands, cudaStream_t stream, TakeWorkspace workspace);

 private:
  struct Plan;

  static absl::StatusOr<std::unique_ptr<Plan>> MakePlan(const BlasHandle& blas,
                                                        const ProductShape& shape,
                                                        const ProductOperands& operands);
  // By one call of the library. REQUIRES: no more products than one takes.
  absl::Status RunAtOnce(const BlasHandle& blas, const ProductShape& shape,
                         const ProductOperands& operands, cudaStream_t stream,
                         TakeWorkspace workspace);
  absl::StatusOr<Plan*> Find(const BlasHandle& blas, const ProductShape& shape,
                             const ProductOperands& operands);

  nn::ShapeCache<Plan> plans_;
};

}  // namespace interp::cuda
