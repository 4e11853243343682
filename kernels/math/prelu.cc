// prelu: Out = X where X > 0, else Alpha X. Alpha has one element (mode "all"), one per channel
// ("channel") or one per element of a sample ("element").
#include <optional>

#include "core/op_def.h"
#include "kernels/util/arithmetic.h"
#include "kernels/util/broadcast.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kAlpha = 1;
constexpr int kOut = 0;

enum class Mode { kAll, kChannel, kElement };

struct PReluAttrs {
  Mode mode = Mode::kAll;
  bool channel_is_last = false;
};

PReluAttrs ReadPReluAttrs(AttrReader& attrs) {
  PReluAttrs parsed;
  const std::string mode = attrs.String("mode", "all");
  if (mode == "channel") {
    parsed.mode = Mode::kChannel;
  } else if (mode == "element") {
    parsed.mode = Mode::kElement;
  } else if (mode != "all") {
    attrs.Fail(absl::StrCat("attribute 'mode' is '", mode, "', expected all, channel or element"));
  }
  const std::string format = attrs.String("data_format", "NCHW");
  parsed.channel_is_last = format == "NHWC" || format == "NDHWC" || format == "NLC";
  return parsed;
}

// Shape of Alpha at the rank of X; nullopt when X has no such dimension.
std::optional<Shape> AlphaShape(const PReluAttrs& attrs, const Shape& x) {
  Shape alpha = x;
  if (attrs.mode == Mode::kElement) {
    if (x.rank() < 1) return std::nullopt;
    alpha[0] = 1;
    return alpha;
  }
  const int channel = attrs.channel_is_last ? x.rank() - 1 : 1;
  if (attrs.mode == Mode::kChannel && (x.rank() < 2 || channel < 0)) return std::nullopt;
  for (int i = 0; i < x.rank(); ++i) {
    if (attrs.mode == Mode::kAll || i != channel) alpha[i] = 1;
  }
  return alpha;
}

absl::Status InferPRelu(InferContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const Tensor& alpha = ctx.input(kAlpha);
  const std::optional<Shape> expected = AlphaShape(ctx.attrs<PReluAttrs>(), x.shape);
  if (!expected.has_value()) {
    return InvalidArgument("input 'X' ", ToString(x.shape), " has too few dimensions for the mode");
  }
  if (alpha.numel() != expected->numel()) {
    return InvalidArgument("input 'Alpha' ", ToString(alpha.shape), " has ", alpha.numel(),
                           " elements, expected ", expected->numel(), " for 'X' ",
                           ToString(x.shape));
  }
  if (alpha.layout != Layout::kPlain && alpha.shape.rank() != x.shape.rank()) {
    return Unimplemented("input 'Alpha' is channels-last and of another rank than 'X'");
  }
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

template <typename T>
absl::Status PRelu(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  Tensor& out = ctx.output(kOut);
  // Alpha at the rank of X. Its layout stays right: a channels-last one has this shape already, or
  // has only one dimension that is not 1.
  Tensor alpha;
  alpha.dtype = ctx.input(kAlpha).dtype;
  alpha.shape = *AlphaShape(ctx.attrs<PReluAttrs>(), x.shape);
  alpha.layout = ctx.input(kAlpha).layout;
  alpha.ShareMemory(ctx.input(kAlpha));
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
    .parse = ParseAttrs<PReluAttrs, ReadPReluAttrs>,
    .infer = InferPRelu,
    .kernels = {{DType::kFloat32, PRelu<float>},
                {DType::kFloat64, PRelu<double>},
                {DType::kFloat16, PRelu<float16>}},
    .layout = LayoutRule::kFollows,
    .inplace = {{kX, kOut}},
});

}  // namespace
}  // namespace interp
