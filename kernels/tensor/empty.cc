// empty: Out of a shape and of attribute `dtype`, with any values; here zeros, so that runs agree.
#include <cstring>

#include "core/op_def.h"
#include "kernels/util/fill_shape.h"

namespace interp {
namespace {

constexpr int kOut = 0;
constexpr IntSlots kShape = {.name = "shape", .tensor = 0, .list = 1};

struct EmptyAttrs {
  IntList shape;
  DType dtype = DType::kFloat32;
};

EmptyAttrs ReadEmptyAttrs(AttrReader& reader) {
  return {ReadIntListAttr(reader, "shape"), reader.Type("dtype", DType::kFloat32)};
}

DType EmptyDType(const DTypeContext& ctx) { return ctx.attrs<EmptyAttrs>().dtype; }

absl::Status InferEmpty(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const IntList dims,
                          ReadIntList(ctx, kShape, ctx.attrs<EmptyAttrs>().shape));
  return SetFillShape(ctx, kOut, dims);
}

absl::Status Empty(KernelContext& ctx) {
  Tensor& out = ctx.output(kOut);
  if (out.size_bytes() > 0) std::memset(out.mutable_raw_data(), 0, out.size_bytes());
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "empty",
    .inputs = {{"ShapeTensor", kOptional | kAnyDType | kValueInInfer},
               {"ShapeTensorList", kOptional | kVariadic | kAnyDType | kValueInInfer}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<EmptyAttrs, ReadEmptyAttrs>,
    .kernel_dtype = EmptyDType,
    .infer = InferEmpty,
    .kernels = {{DType::kUndefined, Empty}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
