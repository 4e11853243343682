// sampling_id: for each row of X [N,C], the first class at which a number from [min, max) is used
// up by the row's probabilities; the last class where they do not reach it.
#include <random>

#include "kernels/random/draw.h"

namespace interp::random {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

struct SamplingAttrs {
  float min = 0;
  float max = 1;
  int32_t seed = 0;
};

SamplingAttrs ReadAttrs(AttrReader& reader) {
  const SamplingAttrs attrs = {reader.Float("min", 0), reader.Float("max", 1),
                               reader.Int("seed", 0)};
  if (!(attrs.min <= attrs.max)) {
    reader.Fail(absl::StrCat("attributes 'min' and 'max' are ", attrs.min, " and ", attrs.max,
                             ", expected min <= max"));
  }
  return attrs;
}

absl::Status Infer(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  if (x.rank() != 2 || x[1] == 0) {
    return InvalidArgument("input 'X' has shape ", ToString(x), ", expected [N,C] with classes");
  }
  ctx.SetShape(kOut, {x[0]});
  ctx.output(kOut).lod = ctx.input(kX).lod;
  return absl::OkStatus();
}

void InferTypes(DTypeContext& ctx) { ctx.Set(kOut, DType::kInt64); }

template <typename T>
int64_t ClassAt(const T* row, int64_t classes, T number) {
  for (int64_t c = 0; c < classes; ++c) {
    number -= row[c];
    if (number < 0) return c;
  }
  return classes - 1;
}

template <typename T>
absl::Status SamplingId(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<SamplingAttrs>();
  const Shape& shape = ctx.input(kX).shape;
  const T* const x = ctx.input(kX).data<T>();
  int64_t* const out = ctx.output(kOut).mutable_data<int64_t>();
  if (attrs.seed != 0) {
    std::mt19937_64 engine = SeededEngine(attrs.seed);
    std::uniform_real_distribution<T> uniform(attrs.min, attrs.max);
    for (int64_t i = 0; i < shape[0]; ++i) {
      out[i] = ClassAt(x + i * shape[1], shape[1], uniform(engine));
    }
    return absl::OkStatus();
  }
  const T low = attrs.min, width = static_cast<T>(attrs.max) - low;
  ForEachBits64(ctx, shape[0], [=](int64_t i, uint64_t bits) {
    out[i] = ClassAt(x + i * shape[1], shape[1], low + static_cast<T>(UnitDouble(bits)) * width);
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "sampling_id",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<SamplingAttrs, ReadAttrs>,
    .infer_dtype = InferTypes,
    .infer = Infer,
    .kernels = {{DType::kFloat32, SamplingId<float>}, {DType::kFloat64, SamplingId<double>}},
    .random = true,
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp::random
