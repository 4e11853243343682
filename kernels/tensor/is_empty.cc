// is_empty: Out = whether X has no element.
#include "core/op_def.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

void InferDTypes(DTypeContext& ctx) { ctx.Set(kOut, DType::kBool); }

absl::Status InferIsEmpty(InferContext& ctx) {
  ctx.SetShape(kOut, {});
  return absl::OkStatus();
}

absl::Status IsEmpty(KernelContext& ctx) {
  *ctx.output(kOut).mutable_data<bool>() = ctx.input(kX).numel() == 0;
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "is_empty",
    .inputs = {{"X", kNoNeedBuffer | kAnyDType | kAnyLayout}},
    .outputs = {{"Out"}},
    .infer_dtype = InferDTypes,
    .infer = InferIsEmpty,
    .kernels = {{DType::kUndefined, IsEmpty}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
