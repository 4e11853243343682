#include "kernels/util/shape_args.h"

namespace interp {

IntList ReadIntListAttr(AttrReader& reader, absl::string_view name) {
  const std::vector<int64_t> values = reader.Ints(name);
  return IntList(values.begin(), values.end());
}

absl::StatusOr<IntList> ReadIntegers(const Tensor& tensor, absl::string_view name) {
  if (!tensor.has_memory()) return InvalidArgument("'", name, "' has no value");
  const int64_t count = tensor.numel();
  if (tensor.dtype == DType::kInt32) {
    const int32_t* data = tensor.data<int32_t>();
    return IntList(data, data + count);
  }
  if (tensor.dtype == DType::kInt64) {
    const int64_t* data = tensor.data<int64_t>();
    return IntList(data, data + count);
  }
  return InvalidArgument("'", name, "' is ", DescribeType(tensor), ", expected int32 or int64");
}

absl::StatusOr<IntList> ReadIntList(const OpContext& ctx, const IntSlots& slots,
                                    absl::Span<const int64_t> attr) {
  if (slots.tensor >= 0 && ctx.has_input(slots.tensor)) {
    return ReadIntegers(ctx.input(slots.tensor), slots.name);
  }
  if (slots.list < 0 || ctx.inputs(slots.list).empty()) return IntList(attr.begin(), attr.end());
  IntList values;
  for (const Tensor* tensor : ctx.inputs(slots.list)) {
    if (tensor == nullptr) return InvalidArgument("'", slots.name, "' has an empty argument");
    INTERP_ASSIGN_OR_RETURN(const IntList one, ReadIntegers(*tensor, slots.name));
    if (one.size() != 1) {
      return InvalidArgument("'", slots.name, "' has an argument ", DescribeType(*tensor),
                             ", expected one element");
    }
    values.push_back(one[0]);
  }
  return values;
}

absl::StatusOr<int64_t> ReadInteger(const OpContext& ctx, int slot, absl::string_view name,
                                    int64_t attr) {
  if (!ctx.has_input(slot)) return attr;
  INTERP_ASSIGN_OR_RETURN(const IntList values, ReadIntegers(ctx.input(slot), name));
  if (values.size() != 1) {
    return InvalidArgument("'", name, "' is ", DescribeType(ctx.input(slot)),
                           ", expected one element");
  }
  return values[0];
}

absl::StatusOr<int> ResolveAxis(int64_t axis, int rank, absl::string_view name) {
  const std::optional<int> resolved = NormalizeAxis(axis, rank);
  if (!resolved.has_value()) {
    return InvalidArgument("'", name, "' is ", axis, ", outside of rank ", rank);
  }
  return *resolved;
}

absl::Status CheckAxis(int64_t axis, const Shape& shape, absl::string_view input,
                       absl::string_view name) {
  const int rank = std::max(shape.rank(), 1);
  if (NormalizeAxis(axis, rank).has_value()) return absl::OkStatus();
  return InvalidArgument("'", name, "' is ", axis, ", expected ", -rank, " to ", rank - 1,
                         " for input '", input, "' ", ToString(shape));
}

absl::StatusOr<Shape> DropUnitDims(const Shape& shape, absl::Span<const int64_t> axes) {
  std::array<bool, kMaxRank> dropped = {};
  for (const int64_t entry : axes) {
    INTERP_ASSIGN_OR_RETURN(const int axis, ResolveAxis(entry, shape.rank(), "decrease_axis"));
    if (shape[axis] != 1) {
      return InvalidArgument("'decrease_axis' drops dimension ", axis, " of length ", shape[axis],
                             ", expected 1");
    }
    dropped[axis] = true;
  }
  Shape kept;
  for (int i = 0; i < shape.rank(); ++i) {
    if (!dropped[i]) kept.push_back(shape[i]);
  }
  return kept;
}

void ShareLod(const Tensor& in, Tensor& out) {
  const int64_t rows = out.shape.rank() > 0 ? out.shape[0] : 0;
  const bool fits = in.lod.empty() || in.lod.back().empty() || in.lod.back().back() <= rows;
  out.lod = fits ? in.lod : Lod();
}

absl::Status SetXShape(InferContext& ctx, int output_slot, const Tensor& x) {
  Tensor* const out = ctx.optional_output(output_slot);
  if (out == nullptr) return absl::OkStatus();
  if (x.shape.rank() == kMaxRank) {
    return InvalidArgument("'X' has rank ", kMaxRank, ", too many for 'XShape'");
  }
  Shape shape = {0};
  for (const int64_t dim : x.shape) shape.push_back(dim);
  out->shape = shape;
  out->lod = x.lod;
  return absl::OkStatus();
}

absl::StatusOr<int64_t> CheckedProduct(int64_t a, int64_t b) {
  int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) {
    return InvalidArgument("size ", a, " * ", b, " does not fit into 64 bits");
  }
  return result;
}

absl::StatusOr<int64_t> CheckedSum(int64_t a, int64_t b) {
  int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) {
    return InvalidArgument("size ", a, " + ", b, " does not fit into 64 bits");
  }
  return result;
}

}  // namespace interp
