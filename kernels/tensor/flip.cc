// flip, reverse: Out = X with the order of the dimensions `axis` reversed. reverse of an array is
// in reverse_array.cc.
#include "core/op_def.h"
#include "kernels/util/data_mover.h"
#include "kernels/util/gradient_op.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr IntSlots kAxis = {.name = "axis", .tensor = 1, .list = 2};
constexpr int kOut = 0;

struct FlipAttrs {
  IntList axis;
};

FlipAttrs ReadFlipAttrs(AttrReader& reader) {
  // Before Paddle 2.0 flip has it as `dims`.
  return {ReadIntListAttr(reader, reader.Has("axis") ? "axis" : "dims")};
}

absl::Status InferFlip(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const IntList axes, ReadIntList(ctx, kAxis, ctx.attrs<FlipAttrs>().axis));
  for (const int64_t axis : axes) {
    INTERP_RETURN_IF_ERROR(ResolveAxis(axis, ctx.input(kX).shape.rank()).status());
  }
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

absl::Status Flip(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  Tensor& out = ctx.output(kOut);
  if (x.numel() == 0) return absl::OkStatus();
  const int rank = x.shape.rank();
  INTERP_ASSIGN_OR_RETURN(const IntList axes, ReadIntList(ctx, kAxis, ctx.attrs<FlipAttrs>().axis));
  std::array<bool, kMaxRank> flipped = {};
  for (const int64_t axis : axes) flipped[*NormalizeAxis(axis, rank)] = true;
  const Strides from = StridesOf(x);
  const Strides to = StridesOf(out);
  int64_t first = 0;
  CopyDims dims;
  for (int i = 0; i < rank; ++i) {
    if (flipped[i]) first += (x.shape[i] - 1) * from[i];
    dims.push_back({x.shape[i], flipped[i] ? -from[i] : from[i], to[i]});
  }
  return CopyStrided(ctx, dims, {x, first}, {out});
}

// The gradient is turned back by the op itself.
template <const absl::string_view& kType>
absl::Status MakeGradient(GradientMaker& maker) {
  return AddGradientOp(
      maker, kType,
      {{"X", "Out@GRAD"}, {"AxisTensor", "AxisTensor"}, {"AxisTensorList", "AxisTensorList"}},
      {{"Out", "X@GRAD"}});
}

constexpr absl::string_view kFlip = "flip";
constexpr absl::string_view kReverse = "reverse";

template <const absl::string_view& kType>
OpDef FlipDef() {
  constexpr int kAxisFlags = kOptional | kValueInInfer | kAnyDType;
  return OpDef{
      .type = kType,
      .inputs = {{"X"},
                 {"AxisTensor", kAxisFlags, "axis"},
                 {"AxisTensorList", kAxisFlags | kVariadic, "axis"}},
      .outputs = {{"Out"}},
      .parse = ParseAttrs<FlipAttrs, ReadFlipAttrs>,
      .infer = InferFlip,
      .kernels = MoveKernels(Flip),
      .layout = LayoutRule::kFollows,
      .gradient = {.make = MakeGradient<kType>},
  };
}

INTERP_REGISTER_OP(FlipDef<kFlip>());
INTERP_REGISTER_OP(FlipDef<kReverse>());

}  // namespace
}  // namespace interp
