// self_dp_attention: attention of a sequence to itself, as Paddle's passes fuse it for CPUs. X
// [batch, length, 3, heads, width] is queries, keys and values; Out [batch, length, heads, width]
// is softmax(alpha Q K^T) V.
#include "core/op_def.h"
#include "kernels/nn/attention.h"

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
  const int64_t row = x.shape[3] * x.shape[4];
  AttentionHead<T> all;
  all.q_stride = all.k_stride = all.v_stride = 3 * row;
  all.out_stride = row;
  all.rows = all.columns = x.shape[1];
  all.width = all.values = x.shape[4];
  all.scale = static_cast<T>(ctx.attrs<Attrs>().alpha);
  const int64_t heads = x.shape[0] * x.shape[3];
  const int64_t parts = std::min<int64_t>(ctx.num_threads(), heads);
  const auto scratch = static_cast<size_t>(all.scratch());
  INTERP_ASSIGN_OR_RETURN(const Workspace work,
                          ctx.workspace(static_cast<size_t>(parts) * scratch * sizeof(T)));
  ParallelFor(ctx.num_threads(), parts, /*grain=*/1, [&](int64_t begin, int64_t end) {
    for (int64_t at = heads * begin / parts; at < heads * end / parts; ++at) {
      const int64_t b = at / x.shape[3];
      const int64_t h = at % x.shape[3];
      AttentionHead<T> head = all;
      head.q = x.data<T>() + b * all.rows * 3 * row + h * all.width;
      head.k = head.q + row;
      head.v = head.k + row;
      head.out = out.mutable_data<T>() + b * all.rows * row + h * all.width;
      RunAttention(head, work.data<T>() + static_cast<size_t>(begin) * scratch);
    }
  });
  return absl::OkStatus();
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
