// expand_v2_grad, expand_as_v2_grad, expand_as_grad, expand_grad, tile_grad: every element of
// X@GRAD is the sum of Out@GRAD over the places that the element of X was copied to. How often X
// was repeated along a dimension is the length of Out@GRAD there over that of X, so no attribute is
// read.
#include <algorithm>

#include "core/op_def.h"
#include "kernels/util/gradient_rows.h"
#include "kernels/util/reduce.h"
#include "kernels/util/second_gradient_slots.h"
#include "kernels/util/sum_of.h"
#include "kernels/util/without_lod.h"

namespace interp {
namespace {

constexpr int kOutGrad = 0;
constexpr int kX = 1;
constexpr int kXGrad = 0;

// Length of the dimension of X that stands `from_end` before the end; it may have fewer than Out.
int64_t LengthFromEnd(const Shape& x, int from_end) {
  return from_end <= x.rank() ? x.back(from_end) : 1;
}

absl::Status InferRepeatGrad(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  const Shape& out = ctx.input(kOutGrad).shape;
  bool fits = x.rank() <= out.rank();
  for (int from_end = 1; fits && from_end <= out.rank(); ++from_end) {
    const int64_t length = LengthFromEnd(x, from_end);
    fits = length == 0 ? out.back(from_end) == 0 : out.back(from_end) % length == 0;
  }
  if (!fits) {
    return InvalidArgument("'Out@GRAD' has shape ", ToString(out),
                           ", which is no repetition of that of 'X', ", ToString(x));
  }
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

// Out@GRAD as repeats, which are added up, and elements of X, dimension by dimension.
ReducePlan PlanRepeats(const Tensor& out_grad, const Tensor& x_grad) {
  const Strides from = StridesOf(out_grad);
  const Strides to = StridesOf(x_grad);
  const int rank = out_grad.shape.rank();
  const int added = rank - x_grad.shape.rank();
  ReducePlan plan;
  plan.inner = {1, 1, 1};
  bool any = false;
  for (int i = 0; i < rank; ++i) {
    const int64_t length = i < added ? 1 : x_grad.shape[i - added];
    const int64_t repeats = length == 0 ? 1 : out_grad.shape[i] / length;
    if (repeats != 1) plan.reduced.Add({repeats, length * from[i], 0});
    if (length != 1) plan.kept.Add({length, from[i], to[i - added]});
    if (repeats != 1 || length != 1) {
      any = true;
      plan.rows = length == 1;
    }
  }
  if (any) plan.inner = (plan.rows ? plan.reduced : plan.kept).Pop();
  return plan;
}

template <typename T>
absl::Status RepeatGrad(KernelContext& ctx) {
  const Tensor& out_grad = ctx.input(kOutGrad);
  Tensor& x_grad = ctx.output(kXGrad);
  if (x_grad.numel() == 0) return absl::OkStatus();
  RunReduce(PlanRepeats(out_grad, x_grad), ctx.num_threads(), out_grad.data<T>(),
            x_grad.mutable_data<T>(), SumOf<T>(),
            [](auto sum, int64_t) { return static_cast<T>(sum); });
  return absl::OkStatus();
}

OpDef RepeatGradDef(absl::string_view type, const std::vector<absl::string_view>& unused) {
  constexpr int kUnused = kNoNeedBuffer | kAnyDType | kAnyLayout;
  OpDef def{
      .type = type,
      .inputs = {{"Out@GRAD"}, {"X", kUnused}},
      .outputs = {{"X@GRAD"}},
      .infer = InferRepeatGrad,
      .kernels = GradientRows([]<typename T>() -> KernelFn { return RepeatGrad<T>; }),
  };
  for (const absl::string_view slot : unused) {
    def.inputs.push_back({slot, kUnused | kOptional | kVariadic});
  }
  return def;
}

OpDef TileGradDef() {
  OpDef def = RepeatGradDef("tile_grad", {"RepeatTimes", "repeat_times_tensor"});
  def.infer = WithoutLod<InferRepeatGrad, kXGrad>;
  return def;
}

constexpr SecondGradient kExpandSecond =
    SecondIsForward("expand_v2", {"Shape", "expand_shapes_tensor"});
constexpr SecondGradient kTileSecond =
    SecondIsForward("tile", {"RepeatTimes", "repeat_times_tensor"});

INTERP_REGISTER_OP(WithSecond<kExpandSecond>(RepeatGradDef("expand_v2_grad",
                                                           {"Shape", "expand_shapes_tensor"})));
INTERP_REGISTER_OP(RepeatGradDef("expand_as_v2_grad", {"Y"}));
INTERP_REGISTER_OP(RepeatGradDef("expand_as_grad", {"target_tensor"}));
INTERP_REGISTER_OP(RepeatGradDef("expand_grad", {"ExpandTimes", "expand_times_tensor"}));
INTERP_REGISTER_OP(WithSecond<kTileSecond>(TileGradDef()));

}  // namespace
}  // namespace interp
