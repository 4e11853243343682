// assign, share_data: Out = X, any dtype; share_data leaves the LoD behind. The copy is left out
// where both already share memory.
#include "core/op_def.h"
#include "kernels/util/strided_copy.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

absl::Status InferAssign(InferContext& ctx) {
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

absl::Status InferShareData(InferContext& ctx) {
  ctx.SetShape(kOut, ctx.input(kX).shape);
  return absl::OkStatus();
}

absl::Status Assign(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  Tensor& out = ctx.output(kOut);
  if (x.raw_data() != out.raw_data()) CopyTensor(ctx.num_threads(), x, out);
  return absl::OkStatus();
}

OpDef AssignDef(absl::string_view type, absl::Status (*infer)(InferContext&)) {
  return OpDef{
      .type = type,
      .inputs = {{"X"}},
      .outputs = {{"Out"}},
      .infer = infer,
      .kernels = {{DType::kUndefined, Assign}},
      .layout = LayoutRule::kFollows,
      .inplace = {{kX, kOut}},
  };
}

INTERP_REGISTER_OP(AssignDef("assign", InferAssign));
INTERP_REGISTER_OP(AssignDef("share_data", InferShareData));

}  // namespace
}  // namespace interp
