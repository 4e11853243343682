// The gradients of a product are products: with G the gradient of the result, A = op(X) and
// B = op(Y),
//   gradient of A = alpha * G B^T,   gradient of B = alpha * A^T G
// transposed where X or Y is.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/product/matmul.h"

namespace interp::nn {

using MatrixSteps = std::array<int64_t, kMaxRank>;

// The gradients by X, one matrix for each of the result of `product`: G times Y or, where X is
// transposed, Y times G.
Product GradientProductOfX(const Product& product);
// The gradients by Y: X times G or, where Y is transposed, G times X.
Product GradientProductOfY(const Product& product);

// Whether several matrices of a result share one of an operand that has these steps: its gradient
// is the sum of theirs.
bool SharesMatrices(const Shape& batch, const MatrixSteps& steps);

}  // namespace interp::nn
