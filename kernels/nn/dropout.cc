// dropout. In training elements are zeroed with probability dropout_prob, and with upscale_in_train
// the others are divided by 1 - dropout_prob; in tests downgrade_in_infer multiplies by it instead.
// Mask is 1 where an element was kept; tests leave it empty.
#include "kernels/nn/dropout_kernel.h"
#include "kernels/util/data_or_null.h"

namespace interp::nn {
namespace {

constexpr int kX = 0;
constexpr int kSeed = 1;
constexpr int kOut = 0;
constexpr int kMask = 1;

void InferDTypes(DTypeContext& ctx) { ctx.Set(kMask, DType::kUInt8); }

absl::Status Infer(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckSeed(ctx, kSeed));
  ctx.ShareShape(kX, kOut);
  if (!ctx.attrs<DropoutAttrs>().test) {
    ctx.SetShape(kMask, ctx.input(kX).shape);
    return absl::OkStatus();
  }
  // None, of the rank of X, as it may lie like an image.
  Shape none = ctx.input(kX).shape;
  if (none.rank() == 0) none = {0};
  none[0] = 0;
  ctx.SetShape(kMask, none);
  return absl::OkStatus();
}

// Where elements go and what is done to those that stay. `mask` may be null.
template <typename T>
struct Dropping {
  const T* from;
  T* to;
  uint8_t* mask;
  ComputeType<T> kept_divisor;

  void operator()(int64_t i, bool keep) const {
    to[i] = keep ? static_cast<T>(from[i] / kept_divisor) : T{0};
    if (mask != nullptr) mask[i] = keep ? 1 : 0;
  }
};

template <typename T>
absl::Status Dropout(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const DropoutAttrs attrs, DropoutAttrsOf(ctx));
  const Tensor& x = ctx.input(kX);
  Tensor& out = ctx.output(kOut);
  if (attrs.test) {
    ScaleInTests<T>(ctx, attrs, x, out);
    return absl::OkStatus();
  }
  Tensor* mask_tensor = ctx.optional_output(kMask);
  uint8_t* mask = DataOrNull<uint8_t>(mask_tensor);
  INTERP_ASSIGN_OR_RETURN(const int32_t seed, SeedOf(ctx, kSeed, attrs.seed));
  using C = ComputeType<T>;
  const C divisor = attrs.upscale_in_train ? static_cast<C>(1.0F - attrs.probability) : C{1};
  const Dropping<T> drop = {x.data<T>(), out.mutable_data<T>(), mask, divisor};
  ForEachKept(ctx, seed, attrs.probability, x.numel(), drop);
  return absl::OkStatus();
}

// Random numbers belong to elements, not to places in memory.
LayoutRule LayoutOf(const void* attrs, DType /*kernel*/) {
  return static_cast<const DropoutAttrs*>(attrs)->test ? LayoutRule::kFollows : LayoutRule::kPlain;
}

INTERP_REGISTER_OP(OpDef{
    .type = "dropout",
    .inputs = {{"X"},
               {"Seed", kOptional | kAnyDType},
               {"ProbabilityTensor", kProbabilityFlags, "dropout_prob"}},
    .outputs = {{"Out"}, {"Mask", kOptional}},
    .parse = ParseAttrs<DropoutAttrs, ReadDropout>,
    .infer_dtype = InferDTypes,
    .infer = Infer,
    .kernels = {{DType::kFloat32, Dropout<float>},
                {DType::kFloat64, Dropout<double>},
                {DType::kBFloat16, Dropout<bfloat16>}},
    .layout_rule = LayoutOf,
    .inplace = {{kX, kOut}},
    .random = true,
    .gradient = {.inputs = {"Mask", "ProbabilityTensor", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

}  // namespace
}  // namespace interp::nn
