// Shapes, axes and counts that Paddle lets a program give in several ways: as an attribute, as one
// integer tensor, or as a list of one-element tensors. Used by `infer` and by kernels alike.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/op_def.h"

namespace interp {

// Usually one entry per dimension: no allocation.
using IntList = absl::InlinedVector<int64_t, kMaxRank>;

// Slot positions of the tensor forms of an argument; -1: the op has no such slot.
struct IntSlots {
  absl::string_view name;  // for messages: "starts"
  int tensor = -1;         // one tensor holding all values
  int list = -1;           // variadic, one value per tensor
};

// An attribute that lists integers, for `parse`; empty when absent.
IntList ReadIntListAttr(AttrReader& reader, absl::string_view name);

// The values of an int32 or int64 tensor. Error when it has no memory or another dtype.
absl::StatusOr<IntList> ReadIntegers(const Tensor& tensor, absl::string_view name);

// The tensor when there is one, else the list, else the attribute's values.
absl::StatusOr<IntList> ReadIntList(const OpContext& ctx, const IntSlots& slots,
                                    absl::Span<const int64_t> attr);

// The single value of the tensor in `slot`, or `attr` when the slot is empty.
absl::StatusOr<int64_t> ReadInteger(const OpContext& ctx, int slot, absl::string_view name,
                                    int64_t attr);

// `axis` counted from the front; InvalidArgument when it is outside [-rank, rank).
absl::StatusOr<int> ResolveAxis(int64_t axis, int rank, absl::string_view name = "axis");

// InvalidArgument unless the argument `name` is an axis of `input`, counted from either end; a
// scalar has one.
absl::Status CheckAxis(int64_t axis, const Shape& shape, absl::string_view input,
                       absl::string_view name = "axis");
// `axis` counted from the front. REQUIRES: CheckAxis is content.
inline int AxisOf(int64_t axis, const Shape& shape) {
  return *NormalizeAxis(axis, std::max(shape.rank(), 1));
}

// `shape` without the dimensions `axes`, which must have length 1 (slices by a single index).
absl::StatusOr<Shape> DropUnitDims(const Shape& shape, absl::Span<const int64_t> axes);

// Gives `out`, whose shape is set, the LoD of `in`; none when its offsets reach beyond the rows of
// `out`, because kernels use offsets as indices. (Paddle hands such a LoD on.)
void ShareLod(const Tensor& in, Tensor& out);

// Sets an XShape output, which carries the input's shape to the gradient op and no data: its shape
// is that of `x` with a 0 in front.
absl::Status SetXShape(InferContext& ctx, int output_slot, const Tensor& x);

// a * b and a + b for sizes taken from a program or a tensor: InvalidArgument instead of overflow.
absl::StatusOr<int64_t> CheckedProduct(int64_t a, int64_t b);
absl::StatusOr<int64_t> CheckedSum(int64_t a, int64_t b);

}  // namespace interp
