// c_embedding: the rows of W that Ids lists, where W holds the rows from `start_index` on of a
// table that is dealt out over ranks; 0 for rows that another rank has. mp_allreduce_sum follows.
// c_embedding_grad adds the rows of Out@GRAD to those of W that they came from.
#include <algorithm>
#include <cstring>

#include "core/op_def.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/indices.h"

namespace interp {
namespace {

constexpr int kW = 0;
constexpr int kIds = 1;
constexpr int kOutGrad = 2;
constexpr int kOut = 0;

struct ShardAttrs {
  int64_t start = 0;
  int64_t vocab_size = -1;  // rows of the whole table; -1: not said
};

ShardAttrs ReadShardAttrs(AttrReader& reader) {
  const ShardAttrs attrs{.start = reader.Long("start_index", 0),
                         .vocab_size = reader.Long("vocab_size", -1)};
  if (attrs.start < 0) reader.Fail(absl::StrCat("'start_index' is ", attrs.start));
  return attrs;
}

absl::StatusOr<Shape> OutShape(const OpContext& ctx) {
  const Shape& w = ctx.input(kW).shape;
  const Shape& ids = ctx.input(kIds).shape;
  if (w.rank() != 2) {
    return InvalidArgument("'W' has shape ", ToString(w), ", expected a matrix");
  }
  if (ids.rank() == kMaxRank) return InvalidArgument("'Ids' has rank ", kMaxRank, " already");
  Shape shape = ids;
  shape.push_back(w[1]);
  return shape;
}

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape shape, OutShape(ctx));
  ctx.SetShape(kOut, shape);
  return absl::OkStatus();
}

// Calls body(position, row of W) for each id that W has.
template <typename Body>
absl::Status ForEachRow(const KernelContext& ctx, const Body& body) {
  const auto& attrs = ctx.attrs<ShardAttrs>();
  const Tensor& ids = ctx.input(kIds);
  const int64_t rows = ctx.input(kW).shape[0];
  return WithIndices(ids, "Ids", [&](const auto* values) {
    if (attrs.vocab_size >= 0) {
      INTERP_RETURN_IF_ERROR(CheckIndices(values, ids.numel(), attrs.vocab_size, "Ids"));
    }
    for (int64_t i = 0; i < ids.numel(); ++i) {
      const int64_t id = values[i];
      if (id >= attrs.start && id - attrs.start < rows) body(i, id - attrs.start);
    }
    return absl::OkStatus();
  });
}

absl::Status Embed(KernelContext& ctx) {
  const Tensor& w = ctx.input(kW);
  Tensor& out = ctx.output(kOut);
  const size_t row = static_cast<size_t>(w.shape[1]) * SizeOf(w.dtype);
  if (out.size_bytes() == 0) return absl::OkStatus();
  char* const to = static_cast<char*>(out.mutable_raw_data());
  const char* const from = static_cast<const char*>(w.raw_data());
  std::memset(to, 0, out.size_bytes());
  return ForEachRow(
      ctx, [&](int64_t i, int64_t at) { std::memcpy(to + i * row, from + at * row, row); });
}

absl::Status InferGrad(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape shape, OutShape(ctx));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", shape));
  ctx.SetShape(kOut, ctx.input(kW).shape);
  return absl::OkStatus();
}

template <typename T>
absl::Status EmbedGrad(KernelContext& ctx) {
  const int64_t width = ctx.input(kW).shape[1];
  const T* const grad = ctx.input(kOutGrad).data<T>();
  Tensor& out = ctx.output(kOut);
  T* const to = out.mutable_data<T>();
  std::fill(to, to + out.numel(), T{0});
  return ForEachRow(ctx, [&](int64_t i, int64_t at) {
    for (int64_t k = 0; k < width; ++k) to[at * width + k] += grad[i * width + k];
  });
}

INTERP_REGISTER_OP(OpDef{
    .type = "c_embedding",
    .inputs = {{"W"}, {"Ids", kAnyDType}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<ShardAttrs, ReadShardAttrs>,
    .infer = Infer,
    .kernels = {{DType::kUndefined, Embed}},
    .gradient = {.inputs = {"W", "Ids", "Out@GRAD"}, .outputs = {"W@GRAD"}},
});
INTERP_REGISTER_OP(OpDef{
    .type = "c_embedding_grad",
    .inputs = {{"W", kNoNeedBuffer}, {"Ids", kAnyDType}, {"Out@GRAD"}},
    .outputs = {{"W@GRAD"}},
    .parse = ParseAttrs<ShardAttrs, ReadShardAttrs>,
    .infer = InferGrad,
    .kernels = {{DType::kFloat32, EmbedGrad<float>}, {DType::kFloat64, EmbedGrad<double>}},
});

}  // namespace
}  // namespace interp
