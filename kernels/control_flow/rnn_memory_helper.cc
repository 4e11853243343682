// rnn_memory_helper: Out = X, with its LoD. In blocks of `recurrent` it marks a state.
// (Paddle before 2.6: fluid/operators/rnn_memory_helper_op.cc.)
#include "core/op_def.h"
#include "kernels/util/strided_copy.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

absl::Status Infer(InferContext& ctx) {
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

absl::Status Pass(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  Tensor& out = ctx.output(kOut);
  if (x.raw_data() != out.raw_data()) CopyTensor(ctx.num_threads(), x, out);
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "rnn_memory_helper",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .infer = Infer,
    .kernels = {{DType::kUndefined, Pass}},
    .inplace = {{kX, kOut}},
});

}  // namespace
}  // namespace interp
