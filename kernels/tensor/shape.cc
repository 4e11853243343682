// shape: Out = the dimensions of Input as int32. size: Out = its number of elements, int64, 0-D.
#include <limits>

#include "core/op_def.h"

namespace interp {
namespace {

constexpr int kInput = 0;
constexpr int kOut = 0;
constexpr int kInputFlags = kNoNeedBuffer | kAnyDType | kAnyLayout;

void ShapeOutput(DTypeContext& ctx) { ctx.Set(kOut, DType::kInt32); }

absl::Status InferShapeOp(InferContext& ctx) {
  const Shape& shape = ctx.input(kInput).shape;
  for (const int64_t dim : shape) {
    if (dim > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument("'Input' has shape ", ToString(shape), ", too large for int32");
    }
  }
  ctx.SetShape(kOut, {shape.rank()});
  return absl::OkStatus();
}

absl::Status ShapeOp(KernelContext& ctx) {
  const Shape& shape = ctx.input(kInput).shape;
  int32_t* const out = ctx.output(kOut).mutable_data<int32_t>();
  for (int i = 0; i < shape.rank(); ++i) out[i] = static_cast<int32_t>(shape[i]);
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "shape",
    .inputs = {{"Input", kInputFlags}},
    .outputs = {{"Out"}},
    .infer_dtype = ShapeOutput,
    .infer = InferShapeOp,
    .kernels = {{DType::kUndefined, ShapeOp}},
    .gradient = {.none = true},
});

void SizeOutput(DTypeContext& ctx) { ctx.Set(kOut, DType::kInt64); }

absl::Status InferSize(InferContext& ctx) {
  ctx.SetShape(kOut, {});
  return absl::OkStatus();
}

absl::Status Size(KernelContext& ctx) {
  *ctx.output(kOut).mutable_data<int64_t>() = ctx.input(kInput).numel();
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "size",
    .inputs = {{"Input", kInputFlags}},
    .outputs = {{"Out"}},
    .infer_dtype = SizeOutput,
    .infer = InferSize,
    .kernels = {{DType::kUndefined, Size}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
