// lod_array_length: Out[0] = number of elements of the array X, int64.
#include "core/op_def.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

void InferArrayLengthDType(DTypeContext& ctx) { ctx.Set(kOut, DType::kInt64); }

absl::Status InferArrayLength(InferContext& ctx) {
  ctx.SetShape(kOut, {1});
  return absl::OkStatus();
}

absl::Status ArrayLength(KernelContext& ctx) {
  *ctx.output(kOut).mutable_data<int64_t>() = std::ssize(ctx.input_array(kX));
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "lod_array_length",
    .inputs = {{"X", kTensorArray}},
    .outputs = {{"Out"}},
    .infer_dtype = InferArrayLengthDType,
    .infer = InferArrayLength,
    .kernels = {{DType::kUndefined, ArrayLength}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
