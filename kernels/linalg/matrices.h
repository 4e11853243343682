// Matrices in the last two dimensions of tensors, for Eigen.
#pragma once

#include <Eigen/Core>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "core/base/catching.h"
#include "core/op_def.h"
#include "kernels/util/loops.h"

namespace interp::linalg {

template <typename T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <typename T>
using MatrixMap = Eigen::Map<Matrix<T>>;
template <typename T>
using ConstMatrixMap = Eigen::Map<const Matrix<T>>;
template <typename T>
using Vector = Eigen::Matrix<T, Eigen::Dynamic, 1>;

// The matrices of a shape, one after the other.
struct Matrices {
  int64_t count = 1;
  int64_t rows = 0;
  int64_t cols = 0;

  int64_t size() const { return rows * cols; }
};

// REQUIRES: rank 2 or more.
inline Matrices MatricesOf(const Shape& shape) {
  return {shape.numel(0, shape.rank() - 2), shape.back(2), shape.back(1)};
}

// The dimensions in front of the matrices.
inline Shape BatchOf(const Shape& shape) {
  Shape batch = shape;
  batch.resize(shape.rank() - 2);
  return batch;
}

// `batch` and two more dimensions.
inline Shape WithMatrix(Shape batch, int64_t rows, int64_t cols) {
  batch.push_back(rows);
  batch.push_back(cols);
  return batch;
}

template <typename T>
ConstMatrixMap<T> MatrixAt(const Tensor& tensor, const Matrices& matrices, int64_t index) {
  return {tensor.data<T>() + index * matrices.size(), matrices.rows, matrices.cols};
}
template <typename T>
MatrixMap<T> MatrixAt(Tensor& tensor, const Matrices& matrices, int64_t index) {
  return {tensor.mutable_data<T>() + index * matrices.size(), matrices.rows, matrices.cols};
}

// InvalidArgument unless input `slot`, called `name`, holds matrices; square ones.
absl::Status CheckMatrices(const OpContext& ctx, int slot, absl::string_view name);
absl::Status CheckSquare(const OpContext& ctx, int slot, absl::string_view name);

// Two batches that are broadcast to one: index i of the result is x() and y() of step i.
struct BatchPairs {
  Shape batch;
  LoopNest loops;
};
absl::StatusOr<BatchPairs> PairBatches(const Shape& x, const Shape& y);

// Calls body(index of the result, of x, of y) for every pair; `body` returns a status.
template <typename Body>
absl::Status ForEachPair(const BatchPairs& pairs, const Body& body) {
  if (pairs.batch.numel() == 0) return absl::OkStatus();
  LoopCursor cursor(pairs.loops);
  for (int64_t i = 0; i < pairs.batch.numel(); ++i, cursor.Next()) {
    INTERP_RETURN_IF_ERROR(body(i, cursor.x(), cursor.y()));
  }
  return absl::OkStatus();
}

// A kernel that uses memory of Eigen's own.
template <absl::Status (*kKernel)(KernelContext&)>
absl::Status Caught(KernelContext& ctx) {
  return Catching([&ctx]() -> absl::Status { return kKernel(ctx); });
}

// The row of a kernel that uses Eigen.
template <typename T, absl::Status (*kKernel)(KernelContext&)>
KernelDef Row() {
  return {DTypeOf<T>, Caught<kKernel>};
}

// Runs `kernel`, which is for float64 or complex128, on copies of the float32 or complex64 tensors
// of `ctx` in that dtype.
absl::Status RunWidened(KernelContext& ctx, KernelFn kernel);

// The row of a kernel for T that computes in the wider dtype: what Eigen makes of a decomposition
// takes long to compile, and is so for one dtype less.
template <typename T, absl::Status (*kKernel)(KernelContext&)>
KernelDef WideRow() {
  return {DTypeOf<T>, [](KernelContext& ctx) { return RunWidened(ctx, kKernel); }};
}

}  // namespace interp::linalg
