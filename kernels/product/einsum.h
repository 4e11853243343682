// The equation of einsum ("bij,bjk->bik") laid onto operands: what each letter stands for, and the
// product of two matrices that the sum is.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/op_def.h"
#include "kernels/util/strided_copy.h"

namespace interp::einsum {

// One letter, or one dimension of the ellipsis.
using Label = int;
using Labels = std::vector<Label>;

// Labels of the dimensions of each operand and of the output, and the lengths by label.
struct Terms {
  std::vector<Labels> operands;
  Labels out;
  std::vector<int64_t> lengths;

  Shape OutShape() const;
};

// InvalidArgument when the equation is malformed or does not fit the shapes.
absl::StatusOr<Terms> ParseEquation(const std::string& equation, absl::Span<const Shape> shapes);

// out = the sum of x * y over all labels that are not in `out`: what both operands and out have in
// common is a batch of products of matrices. A null y is 1. Labels that an operand lacks, or has
// with length 1, repeat it.
struct Operand {
  const void* data = nullptr;
  Shape shape;
  Labels labels;
  bool constant = false;  // what is derived from it may be kept; of one call of a kernel alone
};
template <typename T>
absl::Status Contract(KernelContext& ctx, absl::Span<const int64_t> lengths, const Operand& x,
                      const Operand* y, const Labels& out_labels, T* out);

}  // namespace interp::einsum
