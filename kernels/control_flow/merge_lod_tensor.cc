// merge_lod_tensor, merge_lod_tensor_infer: the inverse of split_lod_tensor. Part i of Out is the
// next unread part of InTrue or InFalse, as Mask says; the levels above `level` are those of X. Of
// the two inputs one may hold nothing: its branch did not run.
//
// Paddle reads an empty sequence again instead of the next one, and leaves rows undefined; here
// each part is read once. Its merge_lod_tensor_infer drops InTrue and InFalse, as plans do by
// themselves.
#include "core/op_def.h"
#include "kernels/control_flow/lod_parts.h"
#include "kernels/control_flow/mask.h"
#include "kernels/util/gradient_op.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kMask = 1;
constexpr int kInTrue = 2;
constexpr int kInFalse = 3;
constexpr int kOut = 0;

DType MergeKernelDType(const DTypeContext& ctx) {
  const DType dtype = ctx.input(kInTrue);
  return dtype == DType::kUndefined ? ctx.input(kInFalse) : dtype;
}

// A branch and how far it has been read.
struct Branch {
  const Tensor& tensor;
  int64_t next = 0;
};

bool HoldsValue(const Tensor& tensor) {
  return (tensor.has_memory() || tensor.numel() == 0) && tensor.shape.rank() > 0;
}

absl::Status CheckLevels(const Tensor& x, int64_t level) {
  if (level <= std::ssize(x.lod)) return absl::OkStatus();
  return InvalidArgument("input 'X' has ", x.lod.size(), " LoD levels, expected ", level,
                         " at least, those above the merged one");
}

absl::Status MergeLodTensor(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const absl::Span<const bool> mask, MaskOf(ctx.input(kMask)));
  const Lod& coarse = ctx.input(kX).lod;
  const int64_t level = ctx.attrs<LodLevelAttrs>().level;
  INTERP_RETURN_IF_ERROR(CheckLevels(ctx.input(kX), level));
  Branch in_true{ctx.input(kInTrue)};
  Branch in_false{ctx.input(kInFalse)};
  Lod fine;
  std::vector<RowRange> ranges;
  for (const bool taken : mask) {
    Branch& in = taken ? in_true : in_false;
    if (!HoldsValue(in.tensor)) {
      return NotFound("input '", taken ? "InTrue" : "InFalse",
                      "' has no value, but 'Mask' has parts of it");
    }
    INTERP_ASSIGN_OR_RETURN(ranges.emplace_back(),
                            AppendParts(in.tensor, /*level=*/0, in.next, in.next + 1, &fine));
    ++in.next;
  }
  // A branch that is not read may hold what is left of an earlier run.
  const Tensor& held = HoldsValue(in_true.tensor) ? in_true.tensor : in_false.tensor;
  const Tensor& like = ranges.empty() ? held : *ranges.front().tensor;
  if (!HoldsValue(like)) return NotFound("inputs 'InTrue' and 'InFalse' have no value");
  Tensor& out = ctx.output(kOut);
  out.lod.assign(coarse.begin(), coarse.begin() + level);
  out.lod.insert(out.lod.end(), fine.begin(), fine.end());
  return JoinRows(ctx, ranges, like, out);
}

absl::Status MakeGradient(GradientMaker& maker) {
  return AddGradientOp(maker, "split_lod_tensor", {{"X", "Out@GRAD"}, {"Mask", "Mask"}},
                       {{"OutTrue", "InTrue@GRAD"}, {"OutFalse", "InFalse@GRAD"}});
}

OpDef MergeDef(absl::string_view type, GradientDef gradient) {
  return OpDef{
      .type = type,
      .inputs = {{"X", kNoNeedBuffer | kAnyDType | kAnyLayout},
                 {"Mask", kAnyDType},
                 {"InTrue", kMayBeEmpty},
                 {"InFalse", kMayBeEmpty}},
      .outputs = {{"Out"}},
      .parse = ParseAttrs<LodLevelAttrs, ReadLodLevelAttrs>,
      .kernel_dtype = MergeKernelDType,
      .kernels = {{DType::kUndefined, MergeLodTensor}},
      .dynamic_outputs = true,
      .gradient = std::move(gradient),
  };
}

INTERP_REGISTER_OP(MergeDef("merge_lod_tensor", {.make = MakeGradient}));
INTERP_REGISTER_OP(MergeDef("merge_lod_tensor_infer", {}));

}  // namespace
}  // namespace interp
