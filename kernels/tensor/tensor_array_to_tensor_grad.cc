// tensor_array_to_tensor_grad: element i of the array X@GRAD = the part of Out@GRAD along `axis`
// that element i of X became.
#include "core/op_def.h"
#include "kernels/util/shape_args.h"
#include "kernels/util/strided_copy.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOutGrad = 1;
constexpr int kXGrad = 0;

struct ArrayToTensorAttrs {
  int64_t axis = 0;
  bool use_stack = false;
};

ArrayToTensorAttrs ReadArrayToTensorAttrs(AttrReader& reader) {
  return {reader.Int("axis", 0), reader.Bool("use_stack", false)};
}

// Where the element that starts at `offset` along `axis` lies in `whole`; an error when it does not
// lie within.
absl::StatusOr<CopyDims> PartOf(const Tensor& whole, const Tensor& element, int axis,
                                int64_t offset, bool stacked) {
  const Strides from = StridesOf(whole);
  const Strides to = StridesOf(element.shape, Layout::kPlain);
  const int rank = element.shape.rank();
  bool fits = whole.shape.rank() == rank + (stacked ? 1 : 0);
  CopyDims dims;
  for (int i = 0; fits && i < rank; ++i) {
    const int at = stacked && i >= axis ? i + 1 : i;
    const bool along = at == axis;
    fits =
        along ? element.shape[i] <= whole.shape[at] - offset : element.shape[i] == whole.shape[at];
    dims.push_back({element.shape[i], from[at], to[i]});
  }
  if (fits && stacked) fits = offset < whole.shape[axis];
  if (fits) return dims;
  return InvalidArgument("array 'X' has an element ", DescribeType(element), " at ", offset,
                         ", which is no part of 'Out@GRAD', ", DescribeType(whole));
}

absl::Status ArrayToTensorGrad(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<ArrayToTensorAttrs>();
  const std::vector<Tensor>& array = ctx.input_array(kX);
  const Tensor& out_grad = ctx.input(kOutGrad);
  INTERP_ASSIGN_OR_RETURN(const int axis, ResolveAxis(attrs.axis, out_grad.shape.rank()));
  const size_t bytes = SizeOf(out_grad.dtype);
  std::vector<Tensor>& gradients = ctx.output_array(kXGrad);
  gradients.clear();
  gradients.resize(array.size());
  int64_t offset = 0;
  for (size_t i = 0; i < array.size(); ++i) {
    INTERP_ASSIGN_OR_RETURN(const CopyDims dims,
                            PartOf(out_grad, array[i], axis, offset, attrs.use_stack));
    Tensor& gradient = gradients[i];
    gradient.shape = array[i].shape;
    gradient.lod = array[i].lod;
    gradient.dtype = out_grad.dtype;
    INTERP_RETURN_IF_ERROR(ctx.Allocate(gradient));
    CopyStrided(ctx.num_threads(), bytes, dims,
                At(out_grad.raw_data(), offset * StridesOf(out_grad)[axis], bytes),
                gradient.mutable_raw_data());
    offset += attrs.use_stack ? 1 : array[i].shape[axis];
  }
  return absl::OkStatus();
}

DType GradientDType(const DTypeContext& ctx) { return ctx.input(kOutGrad); }

INTERP_REGISTER_OP(OpDef{
    .type = "tensor_array_to_tensor_grad",
    .inputs = {{"X", kTensorArray},
               {"Out@GRAD"},
               {"Out", kOptional | kNoNeedBuffer | kAnyDType | kAnyLayout},
               {"OutIndex", kOptional | kNoNeedBuffer | kAnyDType | kAnyLayout}},
    .outputs = {{"X@GRAD", kTensorArray}},
    .parse = ParseAttrs<ArrayToTensorAttrs, ReadArrayToTensorAttrs>,
    .kernel_dtype = GradientDType,
    .kernels = {{DType::kUndefined, ArrayToTensorGrad}},
    .dynamic_outputs = true,
});

}  // namespace
}  // namespace interp
