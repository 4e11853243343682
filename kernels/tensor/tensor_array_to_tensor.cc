// tensor_array_to_tensor: Out = the elements of the array X one after the other along `axis`, or
// with `use_stack` along a new dimension there, a dimension of Out. OutIndex has their lengths
// along `axis`, 1 where they have no such dimension.
#include "core/op_def.h"
#include "kernels/util/shape_args.h"
#include "kernels/util/strided_copy.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;
constexpr int kOutIndex = 1;

struct ArrayToTensorAttrs {
  int64_t axis = 0;
  bool use_stack = false;
};

ArrayToTensorAttrs ReadArrayToTensorAttrs(AttrReader& reader) {
  return {reader.Int("axis", 0), reader.Bool("use_stack", false)};
}

void InferDTypes(DTypeContext& ctx) { ctx.Set(kOutIndex, DType::kInt32); }

// Whether the shapes are the same but, perhaps, along `axis`; -1: everywhere.
bool SameBut(const Shape& a, const Shape& b, int axis) {
  if (a.rank() != b.rank()) return false;
  for (int i = 0; i < a.rank(); ++i) {
    if (i != axis && a[i] != b[i]) return false;
  }
  return true;
}

absl::Status CheckElements(const std::vector<Tensor>& array, int axis, DType dtype) {
  for (size_t i = 0; i < array.size(); ++i) {
    const Tensor& element = array[i];
    if (!element.has_memory() && element.numel() > 0) {
      return NotFound("element ", i, " of array 'X' has no value");
    }
    if (element.dtype != dtype || !SameBut(element.shape, array[0].shape, axis)) {
      return InvalidArgument("element ", i, " of array 'X' is ", DescribeType(element),
                             ", which does not fit element 0, ", DescribeType(array[0]));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Shape> WholeShape(const std::vector<Tensor>& array, int axis, bool stacked) {
  Shape shape = array[0].shape;
  if (stacked) {
    if (shape.rank() == kMaxRank) return InvalidArgument("elements of 'X' have rank ", kMaxRank);
    shape.resize(shape.rank() + 1);
    for (int i = shape.rank() - 1; i > axis; --i) shape[i] = shape[i - 1];
    shape[axis] = std::ssize(array);
    return shape;
  }
  int64_t length = 0;
  for (const Tensor& element : array) {
    INTERP_ASSIGN_OR_RETURN(length, CheckedSum(length, element.shape[axis]));
  }
  shape[axis] = length;
  return shape;
}

void CopyElements(const KernelContext& ctx, const std::vector<Tensor>& array, int axis,
                  bool stacked, Tensor& out) {
  const size_t bytes = SizeOf(out.dtype);
  const Strides to = StridesOf(out);
  int64_t offset = 0;
  for (const Tensor& element : array) {
    const Strides from = StridesOf(element);
    CopyDims dims;
    for (int i = 0; i < element.shape.rank(); ++i) {
      dims.push_back({element.shape[i], from[i], to[stacked && i >= axis ? i + 1 : i]});
    }
    if (element.numel() > 0) {
      CopyStrided(ctx.num_threads(), bytes, dims, element.raw_data(),
                  At(out.mutable_raw_data(), offset * to[axis], bytes));
    }
    offset += stacked ? 1 : element.shape[axis];
  }
}

absl::Status ArrayToTensor(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<ArrayToTensorAttrs>();
  const std::vector<Tensor>& array = ctx.input_array(kX);
  if (array.empty()) return InvalidArgument("array 'X' is empty, expected an element");
  const int rank = array[0].shape.rank();
  INTERP_ASSIGN_OR_RETURN(const int axis,
                          ResolveAxis(attrs.axis, rank + (attrs.use_stack ? 1 : 0)));
  Tensor& out = ctx.output(kOut);
  INTERP_RETURN_IF_ERROR(CheckElements(array, attrs.use_stack ? -1 : axis, out.dtype));
  INTERP_ASSIGN_OR_RETURN(out.shape, WholeShape(array, axis, attrs.use_stack));
  out.lod.clear();
  INTERP_RETURN_IF_ERROR(ctx.Allocate(out));
  CopyElements(ctx, array, axis, attrs.use_stack, out);
  if (Tensor* const index = ctx.optional_output(kOutIndex)) {
    index->shape = {std::ssize(array)};
    index->lod.clear();
    INTERP_RETURN_IF_ERROR(ctx.Allocate(*index));
    auto* lengths = index->mutable_data<int32_t>();
    for (const Tensor& element : array) {
      *lengths++ = axis < rank ? static_cast<int32_t>(element.shape[axis]) : 1;
    }
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "tensor_array_to_tensor",
    .inputs = {{"X", kTensorArray}},
    .outputs = {{"Out"}, {"OutIndex", kOptional}},
    .parse = ParseAttrs<ArrayToTensorAttrs, ReadArrayToTensorAttrs>,
    .infer_dtype = InferDTypes,
    .kernels = {{DType::kUndefined, ArrayToTensor}},
    .dynamic_outputs = true,
    .gradient = {.inputs = {"X", "OutIndex", "Out", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

}  // namespace
}  // namespace interp
