// randint: Out = integers of [low, high), all equally likely.
#include "kernels/random/draw.h"
#include "kernels/random/random_attrs.h"
#include "kernels/random/shape_inputs.h"
#include "kernels/util/fill_shape.h"

namespace interp::random {
namespace {

constexpr int kOut = 0;

RandintAttrs ReadRandint(AttrReader& reader) {
  const RandintAttrs attrs = {.dtype = reader.Type("dtype", DType::kInt64),
                              .shape = ReadIntListAttr(reader, "shape"),
                              .low = reader.Int("low", 0),
                              .high = reader.Int("high", 0),
                              .seed = reader.Int("seed", 0)};
  if (attrs.low >= attrs.high) {
    reader.Fail(absl::StrCat("attribute 'low' is ", attrs.low, ", expected less than 'high', ",
                             attrs.high));
  }
  return attrs;
}

DType RandintDType(const DTypeContext& ctx) { return ctx.attrs<RandintAttrs>().dtype; }

absl::Status Infer(InferContext& ctx) {
  return SetRandomShape(ctx, ctx.attrs<RandintAttrs>().shape);
}

// As the op is meant: Paddle 2.6.2 takes the number of the dtype (int32 2, int64 3) for any seed
// that is not 0.
template <typename T>
void DrawSeeded(const RandintAttrs& attrs, T* out, int64_t n) {
  std::mt19937_64 engine = SeededEngine(attrs.seed);
  std::uniform_int_distribution<T> uniform(static_cast<T>(attrs.low),
                                           static_cast<T>(attrs.high - 1));
  for (int64_t i = 0; i < n; ++i) out[i] = uniform(engine);
}

template <typename T>
absl::Status Randint(KernelContext& ctx) {
  const RandintAttrs& attrs = ctx.attrs<RandintAttrs>();
  Tensor& tensor = ctx.output(kOut);
  T* const out = tensor.mutable_data<T>();
  if (attrs.seed != 0) {
    DrawSeeded<T>(attrs, out, tensor.numel());
    return absl::OkStatus();
  }
  const int64_t low = attrs.low;
  const auto range = static_cast<uint64_t>(attrs.high - low);
  ForEachBits64(ctx, tensor.numel(), [=](int64_t i, uint64_t bits) {
    out[i] = static_cast<T>(low + static_cast<int64_t>(Below(bits, range)));
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "randint",
    .inputs = ShapeInputs(),
    .outputs = {{"Out"}},
    .parse = ParseAttrs<RandintAttrs, ReadRandint>,
    .kernel_dtype = RandintDType,
    .infer = Infer,
    .kernels = {{DType::kInt32, Randint<int32_t>}, {DType::kInt64, Randint<int64_t>}},
    .random = true,
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp::random
