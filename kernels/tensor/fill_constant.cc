// fill_constant: Out = one value everywhere, of the given shape and attribute `dtype`.
// fill_constant_batch_size_like: the same with one dimension taken from Input.
#include "absl/strings/numbers.h"
#include "core/op_def.h"
#include "kernels/util/data_mover.h"
#include "kernels/util/fill_shape.h"

namespace interp {
namespace {

constexpr int kOut = 0;

struct FillAttrs {
  DType dtype = DType::kFloat32;
  BatchSizeLike like;  // of fill_constant only the shape
  ScalarBytes value;
};

// A text in `str_value` wins over the number in `value`: it can hold any double, inf and nan.
double ReadValue(AttrReader& reader) {
  const std::string text = reader.String("str_value", "");
  if (text.empty()) return reader.Float("value", 0.0f);
  double value = 0;
  if (!absl::SimpleAtod(text, &value)) {
    reader.Fail(absl::StrCat("attribute 'str_value' is '", text, "', no number"));
  }
  return value;
}

FillAttrs ReadFillAttrs(AttrReader& reader) {
  FillAttrs attrs;
  attrs.dtype = reader.Type("dtype", DType::kFloat32);
  attrs.like = ReadBatchSizeLike(reader);
  attrs.value = ToScalarBytes(attrs.dtype, ReadValue(reader));
  return attrs;
}

DType FillDType(const DTypeContext& ctx) { return ctx.attrs<FillAttrs>().dtype; }

namespace fill_constant {

constexpr int kValueTensor = 0;
constexpr IntSlots kShape = {.name = "shape", .tensor = 1, .list = 2};

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const IntList dims,
                          ReadIntList(ctx, kShape, ctx.attrs<FillAttrs>().like.shape));
  return SetFillShape(ctx, kOut, dims);
}

absl::Status Run(KernelContext& ctx) {
  const FillAttrs& attrs = ctx.attrs<FillAttrs>();
  INTERP_ASSIGN_OR_RETURN(const ScalarBytes value,
                          ReadScalar(ctx, kValueTensor, "ValueTensor", attrs.dtype, attrs.value));
  return FillElements(ctx, value, ctx.output(kOut));
}

INTERP_REGISTER_OP(OpDef{
    .type = "fill_constant",
    .inputs = {{"ValueTensor", kOptional | kAnyDType | kHostInput},
               {"ShapeTensor", kOptional | kAnyDType | kValueInInfer},
               {"ShapeTensorList", kOptional | kVariadic | kAnyDType | kValueInInfer}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<FillAttrs, ReadFillAttrs>,
    .kernel_dtype = FillDType,
    .infer = Infer,
    .kernels = MoveKernels(Run),
    .gradient = {.none = true},
});

}  // namespace fill_constant

namespace batch_size_like {

constexpr int kInput = 0;

absl::Status Infer(InferContext& ctx) {
  return SetBatchSizeLikeShape(ctx, kInput, kOut, ctx.attrs<FillAttrs>().like,
                               /*by_sequence=*/true);
}

absl::Status Run(KernelContext& ctx) {
  return FillElements(ctx, ctx.attrs<FillAttrs>().value, ctx.output(kOut));
}

INTERP_REGISTER_OP(OpDef{
    .type = "fill_constant_batch_size_like",
    .inputs = {{"Input", kNoNeedBuffer | kAnyDType | kAnyLayout}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<FillAttrs, ReadFillAttrs>,
    .kernel_dtype = FillDType,
    .infer = Infer,
    .kernels = MoveKernels(Run),
    .gradient = {.none = true},
});

}  // namespace batch_size_like
}  // namespace
}  // namespace interp
