// self_dp_attention: attention of a sequence to itself, as Paddle's passes fuse it for CPUs. X
// [batch, length, 3, heads, width] is queries, keys and values; Out [batch, length, heads, width]
// is softmax(alpha Q K^T) V.
#include "core/op_def.h"
#include "kernels/attention/attention.h"
#include "kernels/nn/softmax.h"

namespace interp::nn::self_dp_attention {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

struct Attrs {
  float alpha = 1;
};

Attrs ReadAttrs(AttrReader& reader) { return {reader.Float("alpha", 1)}; }

absl::Status Infer(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  if (x.rank() != 5 || x[2] != 3) {
    return InvalidArgument("input 'X' has shape ", ToString(x),
                           ", expected [batch,length,3,heads,width]");
  }
  ctx.SetShape(kOut, {x[0], x[1], x[3], x[4]});
  return absl::OkStatus();
}

template <typename T>
absl::Status Attention(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  Tensor& out = ctx.output(kOut);
  if (out.numel() == 0) return absl::OkStatus();
  const int64_t heads = x.shape[3];
  const int64_t width = x.shape[4];
  const int64_t row = heads * width;
  const auto alpha = static_cast<T>(ctx.attrs<Attrs>().alpha);
  const AttentionSizes<T> sizes = {x.shape[1], x.shape[1], width, width, alpha};
  const auto head_of = [&](int64_t at) {
    const T* const q = x.data<T>() + at / heads * sizes.queries * 3 * row + at % heads * width;
    T* const to = out.mutable_data<T>() + at / heads * sizes.queries * row + at % heads * width;
    return AttentionHead<T>{q, 3 * row, {q + row, 3 * row}, {q + 2 * row, 3 * row}, to, row};
  };
  const auto weigh = [&](const AttentionHead<T>& /*head*/, int64_t /*query*/, T* scores) {
    return softmax::MakeNumerators(scores, sizes.keys, sizes.padded_keys());
  };
  return RunAttention(ctx, x.shape[0] * heads, sizes, head_of, weigh);
}

INTERP_REGISTER_OP(OpDef{
    .type = "self_dp_attention",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<Attrs, ReadAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, Attention<float>}, {DType::kFloat64, Attention<double>}},
});

}  // namespace
}  // namespace interp::nn::self_dp_attention
