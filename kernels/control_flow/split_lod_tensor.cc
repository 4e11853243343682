// split_lod_tensor: OutTrue = the parts of X, at `level` of its LoD, whose Mask is true, OutFalse
// the others, in their order. Rows are parts where X has no finer level.
#include "core/op_def.h"
#include "kernels/control_flow/lod_parts.h"
#include "kernels/control_flow/mask.h"
#include "kernels/util/gradient_op.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kMask = 1;
constexpr int kOutTrue = 0;
constexpr int kOutFalse = 1;

absl::Status TakeParts(const KernelContext& ctx, absl::Span<const bool> mask, bool wanted,
                       Tensor& out) {
  const Tensor& x = ctx.input(kX);
  const int64_t level = ctx.attrs<LodLevelAttrs>().level;
  Lod lod;
  std::vector<RowRange> ranges;
  for (int64_t i = 0; i < std::ssize(mask); ++i) {
    if (mask[i] != wanted) continue;
    INTERP_ASSIGN_OR_RETURN(ranges.emplace_back(), AppendParts(x, level, i, i + 1, &lod));
  }
  out.lod = std::move(lod);
  return JoinRows(ctx, ranges, x, out);
}

absl::Status SplitLodTensor(KernelContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckHasRows(ctx.input(kX)));
  INTERP_ASSIGN_OR_RETURN(const absl::Span<const bool> mask, MaskOf(ctx.input(kMask)));
  for (const int slot : {kOutTrue, kOutFalse}) {
    if (Tensor* const out = ctx.optional_output(slot)) {
      INTERP_RETURN_IF_ERROR(TakeParts(ctx, mask, slot == kOutTrue, *out));
    }
  }
  return absl::OkStatus();
}

absl::Status MakeGradient(GradientMaker& maker) {
  return AddGradientOp(
      maker, "merge_lod_tensor",
      {{"X", "X"}, {"Mask", "Mask"}, {"InTrue", "OutTrue@GRAD"}, {"InFalse", "OutFalse@GRAD"}},
      {{"Out", "X@GRAD"}});
}

INTERP_REGISTER_OP(OpDef{
    .type = "split_lod_tensor",
    .inputs = {{"X"}, {"Mask", kAnyDType}},
    .outputs = {{"OutTrue", kOptional}, {"OutFalse", kOptional}},
    .parse = ParseAttrs<LodLevelAttrs, ReadLodLevelAttrs>,
    .kernels = {{DType::kUndefined, SplitLodTensor}},
    .dynamic_outputs = true,
    .gradient = {.make = MakeGradient},
});

}  // namespace
}  // namespace interp
