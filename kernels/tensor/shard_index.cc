// shard_index: Out = X's index within shard `shard_id`, or `ignore_value` where another of the
// `nshards` shards of equal size has it.
#include "core/op_def.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

struct ShardAttrs {
  int64_t index_num = 0;
  int64_t shards = 1;
  int64_t shard = 0;
  int64_t ignore_value = -1;
};

ShardAttrs ReadShardAttrs(AttrReader& reader) {
  const ShardAttrs attrs = {reader.Int("index_num", 0), reader.Int("nshards", 0),
                            reader.Int("shard_id", 0), reader.Int("ignore_value", -1)};
  if (attrs.index_num <= 0 || attrs.shards <= 0) {
    reader.Fail(absl::StrCat("attributes 'index_num' ", attrs.index_num, " and 'nshards' ",
                             attrs.shards, " are expected to be positive"));
  } else if (attrs.shard < 0 || attrs.shard >= attrs.shards) {
    reader.Fail(absl::StrCat("attribute 'shard_id' is ", attrs.shard, ", expected 0 to ",
                             attrs.shards - 1));
  }
  return attrs;
}

absl::Status InferShardIndex(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  if (x.rank() < 2 || x.back() != 1) {
    return InvalidArgument("input 'X' has shape ", ToString(x),
                           ", expected rank 2 or more and a last dimension of 1");
  }
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

template <typename T>
absl::Status ShardIndex(KernelContext& ctx) {
  const ShardAttrs& attrs = ctx.attrs<ShardAttrs>();
  const Tensor& x = ctx.input(kX);
  const T* const in = x.data<T>();
  T* const out = ctx.output(kOut).mutable_data<T>();
  const int64_t size = (attrs.index_num + attrs.shards - 1) / attrs.shards;
  const int64_t count = x.numel();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = in[i];
    if (index < 0 || index >= attrs.index_num) {
      return InvalidArgument("'X' has the value ", index, " at position ", i, ", expected 0 to ",
                             attrs.index_num - 1);
    }
    out[i] = static_cast<T>(index / size == attrs.shard ? index % size : attrs.ignore_value);
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "shard_index",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<ShardAttrs, ReadShardAttrs>,
    .infer = InferShardIndex,
    .kernels = {{DType::kInt32, ShardIndex<int32_t>}, {DType::kInt64, ShardIndex<int64_t>}},
    .inplace = {{kX, kOut}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
