// lookup_table_v2: Out = the rows of W that Ids lists; rows of the id `padding_idx` are 0.
// lookup_table: the same for Ids whose last dimension is 1, which is dropped.
#include "kernels/tensor/lookup_table.h"

#include "core/op_def.h"
#include "kernels/util/indices.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kW = 0;
constexpr int kIds = 1;
constexpr int kOut = 0;

absl::Status SetLookupShape(InferContext& ctx, int id_dims) {
  const Shape& w = ctx.input(kW).shape;
  const Tensor& ids = ctx.input(kIds);
  if (w.rank() != 2) {
    return InvalidArgument("'W' has shape ", ToString(w), ", expected a matrix");
  }
  if (id_dims == kMaxRank) return InvalidArgument("'Ids' has rank ", kMaxRank, " already");
  Shape shape;
  for (int i = 0; i < id_dims; ++i) shape.push_back(ids.shape[i]);
  shape.push_back(w[1]);
  ctx.SetShape(kOut, shape);
  ShareLod(ids, ctx.output(kOut));
  return absl::OkStatus();
}

absl::Status InferLookupV2(InferContext& ctx) {
  return SetLookupShape(ctx, ctx.input(kIds).shape.rank());
}

absl::Status InferLookup(InferContext& ctx) {
  const Shape& ids = ctx.input(kIds).shape;
  if (ids.rank() == 0 || ids.back() != 1) {
    return InvalidArgument("'Ids' has shape ", ToString(ids), ", expected 1 as last dimension");
  }
  return SetLookupShape(ctx, ids.rank() - 1);
}

template <typename Index>
absl::Status LookupPadded(KernelContext& ctx, const Index* ids, int64_t count) {
  const Tensor& w = ctx.input(kW);
  const int64_t padding = ctx.attrs<LookupAttrs>().padding_idx;
  const size_t bytes = w.shape[1] * SizeOf(w.dtype);
  const char* const in = static_cast<const char*>(w.raw_data());
  char* out = static_cast<char*>(ctx.output(kOut).mutable_raw_data());
  for (int64_t i = 0; i < count; ++i, out += bytes) {
    if (ids[i] == padding) {
      std::memset(out, 0, bytes);
      continue;
    }
    INTERP_RETURN_IF_ERROR(CheckIndices(ids + i, 1, w.shape[0], "Ids"));
    std::memcpy(out, in + ids[i] * bytes, bytes);
  }
  return absl::OkStatus();
}

absl::Status Lookup(KernelContext& ctx) {
  const Tensor& w = ctx.input(kW);
  const Tensor& ids = ctx.input(kIds);
  const int64_t count = ids.numel();
  return WithIndices(ids, "Ids", [&](const auto* values) {
    if (ctx.attrs<LookupAttrs>().padding_idx >= 0) return LookupPadded(ctx, values, count);
    INTERP_RETURN_IF_ERROR(CheckIndices(values, count, w.shape[0], "Ids"));
    const RowBlocks blocks = {.rows = w.shape[0],
                              .row_bytes = w.shape[1] * static_cast<int64_t>(SizeOf(w.dtype))};
    GatherRows(ctx.num_threads(), blocks, w.raw_data(), values, count,
               ctx.output(kOut).mutable_raw_data());
    return absl::OkStatus();
  });
}

OpDef LookupDef(absl::string_view type, absl::Status (*infer)(InferContext&)) {
  return OpDef{
      .type = type,
      .inputs = {{"W", kMayBeUnaligned}, {"Ids", kAnyDType}},
      .outputs = {{"Out"}},
      .parse = ParseAttrs<LookupAttrs, ReadLookupAttrs>,
      .infer = infer,
      .kernels = {{DType::kUndefined, Lookup}},
      .gradient = {.inputs = {"W", "Ids", "Out@GRAD"}, .outputs = {"W@GRAD"}},
  };
}

INTERP_REGISTER_OP(LookupDef("lookup_table", InferLookup));
INTERP_REGISTER_OP(LookupDef("lookup_table_v2", InferLookupV2));

}  // namespace
}  // namespace interp
