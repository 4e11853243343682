// move_channels_last, move_channels_first: an image N, C, spatial as N, spatial, C, and back.
//
// What lies channels-last has the elements of N, spatial, C in their order already: Out is a view
// of X then. Passes put these ops in where programs turn images into rows of channels and back, as
// networks of convolutions and attention do (passes/fuse/move_channels.h).
#include "core/op_def.h"
#include "kernels/util/data_mover.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

// The position in X of dimension i of Out.
int SourceOf(int i, int rank, bool to_last) {
  if (i == 0) return 0;
  if (to_last) return i == rank - 1 ? 1 : i + 1;
  return i == 1 ? rank - 1 : i - 1;
}

template <bool kToLast>
absl::Status InferMove(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  if (x.rank() != 4 && x.rank() != 5) {
    return InvalidArgument("'X' is ", DescribeType(ctx.input(kX)), ", expected rank 4 or 5");
  }
  Shape out = x;
  for (int i = 0; i < x.rank(); ++i) out[i] = x[SourceOf(i, x.rank(), kToLast)];
  ctx.SetShape(kOut, out);
  return absl::OkStatus();
}

template <bool kToLast>
absl::Status MoveChannels(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  Tensor& out = ctx.output(kOut);
  if (x.raw_data() == out.raw_data()) return absl::OkStatus();
  const Strides from = StridesOf(x);
  const Strides to = StridesOf(out);
  const int rank = out.shape.rank();
  CopyDims dims;
  for (int i = 0; i < rank; ++i) {
    dims.push_back({out.shape[i], from[SourceOf(i, rank, kToLast)], to[i]});
  }
  return CopyStrided(ctx, dims, {x}, {out});
}

template <bool kToLast>
OpDef MoveDef(absl::string_view type) {
  return OpDef{
      .type = type,
      .inputs = {{"X", kToLast ? kAnyLayout : 0}},
      .outputs = {{"Out"}},
      .infer = InferMove<kToLast>,
      .kernels = {{DType::kUndefined, MoveChannels<kToLast>}},
      .layout = kToLast ? LayoutRule::kPlain : LayoutRule::kForReaders,
      .view = {{kX, kOut}},
      .view_turns = true,
  };
}

INTERP_REGISTER_OP(MoveDef<true>("move_channels_last"));
INTERP_REGISTER_OP(MoveDef<false>("move_channels_first"));

}  // namespace
}  // namespace interp
