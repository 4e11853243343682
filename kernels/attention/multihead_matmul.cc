// multihead_matmul: attention of a sequence to itself, as Paddle's inference passes fuse it.
//
// Input [B,S,K] times W [K,3,N,D] (or [K,3,N D]) plus Bias [3,N,D] are queries, keys and values of
// N heads; Out [B,S,N D] holds softmax(alpha Q K^T + BiasQK) V. BiasQK is [B,N,S,S] or broadcasts
// to it.
#include "core/op_def.h"
#include "kernels/attention/attention.h"
#include "kernels/nn/softmax.h"
#include "kernels/product/product.h"
#include "kernels/util/shape_args.h"
#include "kernels/util/strided_copy.h"

namespace interp::nn::multihead_matmul {
namespace {

constexpr int kInput = 0;
constexpr int kW = 1;
constexpr int kBias = 2;
constexpr int kBiasQK = 3;
constexpr int kOut = 0;

struct MultiheadAttrs {
  float alpha = 1;
  int64_t heads = 1;
};

MultiheadAttrs ReadAttrs(AttrReader& reader) {
  const MultiheadAttrs attrs = {reader.Float("alpha", 1), reader.Int("head_number", 1)};
  if (attrs.heads < 1) {
    reader.Fail(absl::StrCat("attribute 'head_number' is ", attrs.heads, ", expected at least 1"));
  }
  if (reader.Bool("transpose_Q", false) || !reader.Bool("transpose_K", true) ||
      reader.Bool("transpose_V", false)) {
    reader.Fail(
        "attributes 'transpose_Q', 'transpose_K' and 'transpose_V' are not false, true "
        "and false");
  }
  return attrs;
}

absl::Status CheckBiasQK(const Shape& bias, const Shape& scores) {
  bool fits = bias.rank() == 4;
  for (int i = 0; fits && i < 4; ++i) fits = bias[i] == scores[i] || bias[i] == 1;
  if (fits) return absl::OkStatus();
  return InvalidArgument("input 'BiasQK' has shape ", ToString(bias), ", expected ",
                         ToString(scores), " or 1 for some of it");
}

absl::Status Infer(InferContext& ctx) {
  const Shape& in = ctx.input(kInput).shape;
  const Shape& w = ctx.input(kW).shape;
  const int64_t heads = ctx.attrs<MultiheadAttrs>().heads;
  if (in.rank() != 3) {
    return InvalidArgument("input 'Input' has shape ", ToString(in), ", expected [B,S,K]");
  }
  if (w.rank() < 3 || w[0] != in[2] || w[1] != 3 || w.numel(2, w.rank()) % heads != 0) {
    return InvalidArgument("input 'W' has shape ", ToString(w), ", expected [", in[2], ",3,", heads,
                           ",D]");
  }
  const int64_t width = w.numel(2, w.rank());
  if (ctx.input(kBias).numel() != 3 * width) {
    return InvalidArgument("input 'Bias' has shape ", ToString(ctx.input(kBias).shape),
                           ", expected ", 3 * width, " elements");
  }
  if (const Tensor* const bias = ctx.optional_input(kBiasQK)) {
    INTERP_RETURN_IF_ERROR(CheckBiasQK(bias->shape, {in[0], heads, in[1], in[1]}));
  }
  ctx.SetShape(kOut, {in[0], in[1], width});
  return absl::OkStatus();
}

// The rows of BiasQK for each head and query.
template <typename T>
struct BiasRows {
  const T* data = nullptr;  // null without a bias
  const T* end = nullptr;
  Strides strides = {};

  explicit BiasRows(const Tensor* bias) {
    if (bias == nullptr) return;
    data = bias->data<T>();
    end = data + bias->numel();
    strides = StridesOf(*bias);
    for (int i = 0; i < 4; ++i) strides[i] = bias->shape[i] == 1 ? 0 : strides[i];
  }
};

template <typename T>
struct Head : AttentionHead<T> {
  const T* bias = nullptr;
};

// `qkv` is [batch,steps,3,heads,depth].
template <typename T>
absl::Status Attend(KernelContext& ctx, const AttentionSizes<T>& sizes, int64_t heads,
                    const T* qkv) {
  Tensor& out = ctx.output(kOut);
  const BiasRows<T> bias(ctx.optional_input(kBiasQK));
  const int64_t row = heads * sizes.width;
  const auto head_of = [&](int64_t at) {
    const int64_t b = at / heads;
    const int64_t h = at % heads;
    const T* const q = qkv + b * sizes.queries * 3 * row + h * sizes.width;
    T* const to = out.mutable_data<T>() + b * sizes.queries * row + h * sizes.width;
    Head<T> head = {{q, 3 * row, {q + row, 3 * row}, {q + 2 * row, 3 * row}, to, row}, nullptr};
    if (bias.data != nullptr) head.bias = bias.data + b * bias.strides[0] + h * bias.strides[1];
    return head;
  };
  const auto weigh = [&](const Head<T>& head, int64_t query, T* scores) {
    if (head.bias != nullptr) {
      AddBias(sizes, head.bias + query * bias.strides[2], bias.strides[3], bias.end, scores);
    }
    return softmax::MakeNumerators(scores, sizes.keys, sizes.padded_keys());
  };
  return RunAttention(ctx, out.shape[0] * heads, sizes, head_of, weigh);
}

template <typename T>
absl::Status MultiheadMatmul(KernelContext& ctx) {
  const Tensor& in = ctx.input(kInput);
  const Tensor& out = ctx.output(kOut);
  if (out.numel() == 0) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(const int64_t elements, CheckedProduct(out.numel(), 3));
  INTERP_ASSIGN_OR_RETURN(const int64_t bytes, CheckedProduct(elements, sizeof(T)));
  INTERP_ASSIGN_OR_RETURN(const Workspace projected, ctx.workspace(static_cast<size_t>(bytes)));
  const Product product = ProductOf(in.shape[0] * in.shape[1], 3 * out.shape[2], in.shape[2]);
  INTERP_RETURN_IF_ERROR(RunProduct<T>(ctx, product, in.data<T>(), ctx.input(kW).data<T>(),
                                       ctx.input_is_constant(kW), ctx.input(kBias).data<T>(),
                                       projected.data<T>()));
  const int64_t heads = ctx.attrs<MultiheadAttrs>().heads;
  const int64_t depth = out.shape[2] / heads;
  const auto alpha = static_cast<T>(ctx.attrs<MultiheadAttrs>().alpha);
  const AttentionSizes<T> sizes = {in.shape[1], in.shape[1], depth, depth, alpha};
  return Attend<T>(ctx, sizes, heads, projected.data<T>());
}

INTERP_REGISTER_OP(OpDef{
    .type = "multihead_matmul",
    .inputs = {{"Input"}, {"W"}, {"Bias"}, {"BiasQK", kOptional}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<MultiheadAttrs, ReadAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, MultiheadMatmul<float>},
                {DType::kFloat64, MultiheadMatmul<double>}},
});

}  // namespace
}  // namespace interp::nn::multihead_matmul
