// Sparse tensors in coordinates: a program has one variable for what is three tensors here, the
// parts of the variable. x@VALUES has one row for each point, x@INDICES its coordinates in the
// first dimensions, one column each, and x@SHAPE is the shape that the whole would have. Ops on
// sparse tensors are expanded into ops on the parts.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/expansion.h"
#include "core/tensor.h"

namespace interp::sparse {

struct Parts {
  VarId values = Expansion::kAbsent;
  VarId indices = Expansion::kAbsent;
  VarId shape = Expansion::kAbsent;
};

// The parts of an input; absent ones where it is no sparse tensor.
Parts InputParts(const Expansion& ops, absl::string_view slot);
void SetParts(Expansion& ops, absl::string_view slot, const Parts& parts);

// The points as ops on the parts see them.
struct Points {
  Shape shape;  // of the whole
  int sparse_dims = 0;
  std::vector<int64_t> keys;  // the place of each in the first `sparse_dims` dimensions

  // Elements of one row of the values.
  int64_t row() const { return shape.numel(sparse_dims, shape.rank()); }
};
// The shape that a tensor of integers lists.
absl::StatusOr<Shape> ReadShape(const Tensor& shape);
// InvalidArgument unless the parts fit each other and all points lie in the shape.
absl::StatusOr<Points> ReadPoints(const Tensor& values, const Tensor& indices, const Tensor& shape);

// Writes the coordinates of `keys` into `indices`, whose shape and memory are there.
void WriteIndices(const std::vector<int64_t>& keys, const Shape& shape, Tensor& indices);

}  // namespace interp::sparse
