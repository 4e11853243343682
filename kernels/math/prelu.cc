// prelu: Out = X where X > 0, else Alpha X. Alpha has one element (mode "all"), one per channel
// ("channel") or one per element of a sample ("element"). An Alpha of mode "element" may have the
// rank of X and more samples than one, as old programs of static batches declare it: the first one
// counts.
#include "kernels/math/prelu.h"

#include "kernels/util/arithmetic.h"
#include "kernels/util/broadcast.h"

namespace interp {

std::optional<Shape> AlphaShape(const PReluAttrs& attrs, const Shape& x) {
  Shape alpha = x;
  if (attrs.mode == PReluAttrs::Mode::kElement) {
    if (x.rank() < 1) return std::nullopt;
    alpha[0] = 1;
    return alpha;
  }
  const int channel = attrs.channel_is_last ? x.rank() - 1 : 1;
  if (attrs.mode == PReluAttrs::Mode::kChannel && (x.rank() < 2 || channel < 0))
    return std::nullopt;
  for (int i = 0; i < x.rank(); ++i) {
    if (attrs.mode == PReluAttrs::Mode::kAll || i != channel) alpha[i] = 1;
  }
  return alpha;
}

namespace {

bool HasElementsOfASample(const Shape& alpha, const Shape& x) {
  if (alpha.rank() != x.rank() || alpha[0] < 1) return false;
  return alpha.numel(1, alpha.rank()) == x.numel(1, x.rank());
}

}  // namespace

absl::Status CheckAlpha(const PReluAttrs& attrs, const Tensor& x, const Tensor& alpha) {
  const std::optional<Shape> expected = AlphaShape(attrs, x.shape);
  if (!expected.has_value()) {
    return InvalidArgument("input 'X' ", ToString(x.shape), " has too few dimensions for the mode");
  }
  const bool has_samples =
      attrs.mode == PReluAttrs::Mode::kElement && HasElementsOfASample(alpha.shape, x.shape);
  if (alpha.numel() != expected->numel() && !has_samples) {
    return InvalidArgument("input 'Alpha' ", ToString(alpha.shape), " has ", alpha.numel(),
                           " elements, expected ", expected->numel(), " for 'X' ",
                           ToString(x.shape));
  }
  if (alpha.layout != Layout::kPlain && alpha.shape.rank() != x.shape.rank()) {
    return Unimplemented("input 'Alpha' is channels-last and of another rank than 'X'");
  }
  return absl::OkStatus();
}

// The layout stays right: a channels-last Alpha has this shape already, or has only one dimension
// that is not 1.
Tensor AlphaAtRankOf(const PReluAttrs& attrs, const Tensor& x, const Tensor& alpha) {
  Tensor at_rank;
  at_rank.dtype = alpha.dtype;
  at_rank.shape = *AlphaShape(attrs, x.shape);
  at_rank.layout = alpha.layout;
  at_rank.ShareMemory(alpha);
  return at_rank;
}

namespace {

constexpr int kX = 0;
constexpr int kAlpha = 1;
constexpr int kOut = 0;

absl::Status InferPRelu(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckAlpha(ctx.attrs<PReluAttrs>(), ctx.input(kX), ctx.input(kAlpha)));
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

template <typename T>
absl::Status PRelu(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  Tensor& out = ctx.output(kOut);
  const Tensor alpha = AlphaAtRankOf(ctx.attrs<PReluAttrs>(), x, ctx.input(kAlpha));
  const BroadcastPlan plan = PlanBroadcast(x, alpha, out, kTrailingAxis);
  RunBroadcast(plan, ctx.num_threads(), x.data<T>(), alpha.data<T>(), out.mutable_data<T>(),
               [](T value, T slope) {
                 using C = ComputeType<T>;
                 const C scaled = static_cast<C>(value) * static_cast<C>(slope);
                 return value > T{0} ? value : static_cast<T>(scaled);
               });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "prelu",
    .inputs = {{"X"}, {"Alpha"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<PReluAttrs, PReluAttrs::Read>,
    .infer = InferPRelu,
    .kernels = {{DType::kFloat32, PRelu<float>},
                {DType::kFloat64, PRelu<double>},
                {DType::kFloat16, PRelu<float16>}},
    .layout = LayoutRule::kFollows,
    .inplace = {{kX, kOut}},
    .gradient = {.inputs = {"X", "Alpha", "Out@GRAD"}, .outputs = {"X@GRAD", "Alpha@GRAD"}},
});

}  // namespace
}  // namespace interp
