// turn_row: an image of one row as one of one column, or back: its last two dims change places, of
// which one has length 1.
//
// No element moves in either layout, so Out is a view of X. The pass late_squeeze puts it between
// transposed convolutions of sequences, which Paddle computes on columns, and the others, on rows.
#include <utility>

#include "core/op_def.h"
#include "kernels/util/data_mover.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

absl::Status InferTurn(InferContext& ctx) {
  Shape shape = ctx.input(kX).shape;
  if (shape.rank() != 4 || (shape[2] != 1 && shape[3] != 1)) {
    return InvalidArgument("'X' is ", DescribeType(ctx.input(kX)),
                           ", expected rank 4 with one row or one column");
  }
  std::swap(shape[2], shape[3]);
  ctx.SetShape(kOut, shape);
  ctx.output(kOut).lod = ctx.input(kX).lod;
  return absl::OkStatus();
}

absl::Status Turn(KernelContext& ctx) {
  return CopyUnlessShared(ctx, ctx.input(kX), ctx.output(kOut));
}

INTERP_REGISTER_OP(OpDef{
    .type = "turn_row",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .infer = InferTurn,
    .kernels = {{DType::kUndefined, Turn}},
    .layout = LayoutRule::kFollows,
    .view = {{kX, kOut}},
});

}  // namespace
}  // namespace interp
