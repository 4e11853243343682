// multihead_matmul: attention of a sequence to itself, as Paddle's inference passes fuse it.
//
// Input [B,S,K] times W [K,3,N,D] (or [K,3,N D]) plus Bias [3,N,D] are queries, keys and values of
// N heads; Out [B,S,N D] holds softmax(alpha Q K^T + BiasQK) V. BiasQK is [B,N,S,S] or broadcasts
// to it.
#include <algorithm>

#include "core/op_def.h"
#include "kernels/nn/product.h"
#include "kernels/nn/softmax.h"
#include "kernels/util/shape_args.h"
#include "kernels/util/strided_copy.h"

namespace interp::nn {
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

struct Sizes {
  int64_t batch, steps, heads, depth;
  int64_t rows() const { return batch * steps; }
  int64_t width() const { return heads * depth; }
  int64_t scores() const { return batch * heads * steps * steps; }
};

// From [rows of all steps, `parts` heads of `depth`] to [parts, batch, heads, steps, depth], or
// back.
template <typename T>
void Regroup(const KernelContext& ctx, const Sizes& s, int64_t parts, bool back, const T* from,
             T* to) {
  const int64_t row = parts * s.width(), plane = s.steps * s.depth;
  CopyDims dims = {{parts, s.width(), s.batch * s.heads * plane},
                   {s.batch, s.steps * row, s.heads * plane},
                   {s.heads, s.depth, plane},
                   {s.steps, row, s.depth},
                   {s.depth, 1, 1}};
  for (CopyDim& dim : dims) {
    if (back) std::swap(dim.src_stride, dim.dst_stride);
  }
  CopyStrided(ctx.num_threads(), sizeof(T), dims, from, to);
}

// scores = softmax(scores + BiasQK), row by row.
template <typename T>
void SoftmaxScores(const KernelContext& ctx, const Sizes& s, T* scores) {
  const Tensor* const bias = ctx.optional_input(kBiasQK);
  Strides strides = {};
  for (int i = 0; bias != nullptr && i < 4; ++i) {
    strides[i] = bias->shape[i] == 1 ? 0 : StridesOf(*bias)[i];
  }
  const int64_t grain = kElementwiseGrain / (8 * s.steps) + 1;
  ParallelFor(
      ctx.num_threads(), s.batch * s.heads * s.steps, grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          T* const row = scores + i * s.steps;
          const int64_t head = i / s.steps;
          const int64_t at =
              head / s.heads * strides[0] + head % s.heads * strides[1] + i % s.steps * strides[2];
          for (int64_t k = 0; bias != nullptr && k < s.steps; ++k) {
            row[k] += bias->data<T>()[at + k * strides[3]];
          }
          softmax::SoftmaxRow<T, false>(row, s.steps, row);
        }
      });
}

template <typename T>
absl::Status Attend(KernelContext& ctx, const Sizes& s, const T* qkv, T* scores, T* heads) {
  const int64_t part = s.rows() * s.width();
  const int64_t batch[] = {s.batch * s.heads};
  Product product;
  product.m = product.n = s.steps;
  product.k = s.depth;
  product.trans_y = true;
  product.alpha = ctx.attrs<MultiheadAttrs>().alpha;
  INTERP_RETURN_IF_ERROR(BroadcastBatch(batch, batch, product));
  INTERP_RETURN_IF_ERROR(
      RunProduct<T>(ctx, product, qkv, qkv + part, /*y_constant=*/false, nullptr, scores));
  SoftmaxScores(ctx, s, scores);
  product.n = s.depth;
  product.k = s.steps;
  product.trans_y = false;
  product.alpha = 1;
  return RunProduct<T>(ctx, product, scores, qkv + 2 * part, /*y_constant=*/false, nullptr, heads);
}

template <typename T>
absl::Status MultiheadMatmul(KernelContext& ctx) {
  const Tensor& in = ctx.input(kInput);
  Tensor& out = ctx.output(kOut);
  if (out.numel() == 0) return absl::OkStatus();
  const int64_t heads = ctx.attrs<MultiheadAttrs>().heads;
  const Sizes s = {in.shape[0], in.shape[1], heads, out.shape[2] / heads};
  const int64_t part = s.rows() * s.width();
  const Shape all_scores = {s.batch, heads, s.steps, s.steps};
  if (!all_scores.CheckedNumel().has_value()) {
    return ResourceExhausted("scores of shape ", ToString(all_scores));
  }
  INTERP_ASSIGN_OR_RETURN(int64_t elements, CheckedProduct(part, 7));
  INTERP_ASSIGN_OR_RETURN(elements, CheckedSum(elements, s.scores()));
  INTERP_ASSIGN_OR_RETURN(const int64_t bytes, CheckedProduct(elements, sizeof(T)));
  INTERP_ASSIGN_OR_RETURN(const Workspace memory, ctx.workspace(static_cast<size_t>(bytes)));
  T* const projected = memory.data<T>();
  T* const qkv = projected + 3 * part;
  T* const attended = qkv + 3 * part;
  T* const scores = attended + part;
  Product product = ProductOf(s.rows(), 3 * s.width(), in.shape[2]);
  INTERP_RETURN_IF_ERROR(RunProduct<T>(ctx, product, in.data<T>(), ctx.input(kW).data<T>(),
                                       ctx.input_is_constant(kW), ctx.input(kBias).data<T>(),
                                       projected));
  Regroup(ctx, s, 3, /*back=*/false, projected, qkv);
  INTERP_RETURN_IF_ERROR(Attend(ctx, s, qkv, scores, attended));
  Regroup(ctx, s, 1, /*back=*/true, attended, out.mutable_data<T>());
  return absl::OkStatus();
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
}  // namespace interp::nn
