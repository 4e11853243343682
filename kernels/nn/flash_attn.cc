// flash_attn: attention of heads side by side. q, k, v and out are [batch, length, heads, width]; k
// and v may have fewer heads, each for as many of q. attn_mask is added to the scores; with
// `causal` a query sees no key behind its own place, counted from the ends. softmax_lse has the
// logarithms of the sums of exponentials, softmax the weights where `return_softmax` asks for them.
// memory_efficient_attention: the same, with places counted from the starts.
// In training no weights are dropped: `dropout` has to be 0. 16 bits are computed as float32.
#include <string>
#include <utility>

#include "core/op_def.h"
#include "kernels/nn/attention.h"

namespace interp::nn::flash_attn {
namespace {

constexpr int kQ = 0;
constexpr int kK = 1;
constexpr int kV = 2;
constexpr int kMask = 3;
constexpr int kOut = 0;
constexpr int kLogSums = 1;
constexpr int kSeed = 2;
constexpr int kWeights = 3;  // of flash_attn alone

struct Attrs {
  bool causal = false;
  bool weights = false;
  bool from_ends = false;
  float scale = 0;  // 0: that of the width
};

void CheckDropout(AttrReader& reader, double probability) {
  if (probability != 0 && !reader.Bool("is_test", false)) {
    reader.Fail("weights of attention are not dropped in training, which a probability asks for");
  }
}

Attrs ReadFlash(AttrReader& reader) {
  CheckDropout(reader, reader.Float("dropout", 0));
  return {.causal = reader.Bool("causal", false),
          .weights = reader.Bool("return_softmax", false),
          .from_ends = true};
}

Attrs ReadEfficient(AttrReader& reader) {
  CheckDropout(reader, reader.Double("dropout_p", 0));
  const float scale = reader.Float("scale", -1);
  return {.causal = reader.Bool("causal", false), .scale = scale > 0 ? scale : 0};
}

bool IsMask(const Shape& mask, const Shape& scores) {
  return mask.rank() == 4 && (mask[0] == 1 || mask[0] == scores[0]) &&
         (mask[1] == 1 || mask[1] == scores[1]) && mask[2] == scores[2] && mask[3] == scores[3];
}

// [batch, heads, queries, keys]. InvalidArgument unless the inputs fit each other.
absl::StatusOr<Shape> ScoresOf(const OpContext& ctx) {
  const Shape& q = ctx.input(kQ).shape;
  const Shape& k = ctx.input(kK).shape;
  const Shape& v = ctx.input(kV).shape;
  const bool fit = q.rank() == 4 && k.rank() == 4 && v.rank() == 4 && q[0] == k[0] &&
                   k[0] == v[0] && k[1] == v[1] && k[2] == v[2] && q[3] == k[3] && k[2] > 0 &&
                   q[2] % k[2] == 0 && q[3] > 0;
  if (!fit) {
    return InvalidArgument("queries, keys and values have shapes ", ToString(q), ", ", ToString(k),
                           " and ", ToString(v), ", expected [batch,length,heads,width]");
  }
  const Shape scores = {q[0], q[2], q[1], k[1]};
  const Tensor* const mask = ctx.optional_input(kMask);
  if (mask == nullptr || IsMask(mask->shape, scores)) return scores;
  return InvalidArgument("the mask has shape ", ToString(mask->shape), ", expected ",
                         ToString(scores), ", or 1 in place of the first two");
}

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape scores, ScoresOf(ctx));
  const Shape& q = ctx.input(kQ).shape;
  ctx.SetShape(kOut, {q[0], q[1], q[2], ctx.input(kV).shape[3]});
  if (ctx.has_output(kLogSums)) ctx.SetShape(kLogSums, {scores[0], scores[1], scores[2]});
  if (ctx.has_output(kSeed)) ctx.SetShape(kSeed, {2});
  return absl::OkStatus();
}

absl::Status InferFlash(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(Infer(ctx));
  if (!ctx.has_output(kWeights)) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(const Shape scores, ScoresOf(ctx));
  ctx.SetShape(kWeights, ctx.attrs<Attrs>().weights ? scores : Shape{0});
  return absl::OkStatus();
}

// The head `h` of the sequence `b`.
template <typename T>
AttentionHead<T> HeadOf(KernelContext& ctx, const Shape& scores, int64_t b, int64_t h) {
  const Attrs& attrs = ctx.attrs<Attrs>();
  const Shape& q = ctx.input(kQ).shape;
  const Shape& k = ctx.input(kK).shape;
  const int64_t values = ctx.input(kV).shape[3];
  const int64_t group = h / (q[2] / k[2]);
  AttentionHead<T> head;
  head.q_stride = q[2] * q[3];
  head.k_stride = k[2] * k[3];
  head.v_stride = k[2] * values;
  head.out_stride = q[2] * values;
  head.rows = scores[2];
  head.columns = scores[3];
  head.width = q[3];
  head.values = values;
  head.q = ctx.input(kQ).data<T>() + b * head.rows * head.q_stride + h * head.width;
  head.k = ctx.input(kK).data<T>() + b * head.columns * head.k_stride + group * head.width;
  head.v = ctx.input(kV).data<T>() + b * head.columns * head.v_stride + group * values;
  head.out = ctx.output(kOut).mutable_data<T>() + b * head.rows * head.out_stride + h * values;
  head.scale =
      attrs.scale > 0 ? static_cast<T>(attrs.scale) : 1 / std::sqrt(static_cast<T>(head.width));
  if (attrs.causal) head.ahead = attrs.from_ends ? head.columns - head.rows : 0;
  return head;
}

// Adds what is optional.
template <typename T>
void AddOptions(KernelContext& ctx, const Shape& scores, bool weights, int64_t b, int64_t h,
                AttentionHead<T>& head) {
  const int64_t at = b * scores[1] + h;
  if (const Tensor* const mask = ctx.optional_input(kMask)) {
    head.mask = MaskOf(mask->data<T>(), mask->shape, b, h);
  }
  if (Tensor* const sums = ctx.optional_output(kLogSums)) {
    head.log_sums = sums->mutable_data<T>() + at * head.rows;
  }
  if (weights) {
    head.weights = ctx.output(kWeights).mutable_data<T>() + at * head.rows * head.columns;
  }
}

template <typename T, bool kFlash>
absl::Status Attention(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape scores, ScoresOf(ctx));
  if (Tensor* const seed = ctx.optional_output(kSeed)) {
    std::fill_n(seed->mutable_data<int64_t>(), 2, int64_t{0});
  }
  const bool weights = kFlash && ctx.has_output(kWeights) && ctx.attrs<Attrs>().weights;
  if (ctx.input(kQ).numel() == 0) return absl::OkStatus();  // so are the outputs
  const int64_t heads = scores[0] * scores[1];
  const int64_t parts = std::min<int64_t>(ctx.num_threads(), heads);
  const int64_t scratch = scores[3] * (ctx.input(kQ).shape[3] + 1);
  INTERP_ASSIGN_OR_RETURN(const Workspace work,
                          ctx.workspace(static_cast<size_t>(parts * scratch) * sizeof(T)));
  ParallelFor(ctx.num_threads(), parts, /*grain=*/1, [&](int64_t begin, int64_t end) {
    for (int64_t at = heads * begin / parts; at < heads * end / parts; ++at) {
      const int64_t b = at / scores[1];
      const int64_t h = at % scores[1];
      AttentionHead<T> head = HeadOf<T>(ctx, scores, b, h);
      AddOptions(ctx, scores, weights, b, h, head);
      RunAttention(head, work.data<T>() + begin * scratch);
    }
  });
  return absl::OkStatus();
}

void SeedDType(DTypeContext& ctx) { ctx.Set(kSeed, DType::kInt64); }

INTERP_REGISTER_OP(OpDef{
    .type = "flash_attn",
    .inputs = {{"q"},
               {"k"},
               {"v"},
               {"attn_mask", kOptional},
               {"fixed_seed_offset", kOptional | kNoNeedBuffer | kAnyDType}},
    .outputs =
        {{"out"}, {"softmax_lse", kOptional}, {"seed_offset", kOptional}, {"softmax", kOptional}},
    .parse = ParseAttrs<Attrs, ReadFlash>,
    .infer_dtype = SeedDType,
    .infer = InferFlash,
    .kernels = {{DType::kFloat32, Attention<float, true>},
                {DType::kFloat64, Attention<double, true>}},
});

INTERP_REGISTER_OP(OpDef{
    .type = "memory_efficient_attention",
    .inputs = {{"query"}, {"key"}, {"value"}, {"bias", kOptional}},
    .outputs = {{"output"}, {"logsumexp", kOptional}, {"seed_and_offset", kOptional}},
    .parse = ParseAttrs<Attrs, ReadEfficient>,
    .infer_dtype = SeedDType,
    .infer = Infer,
    .kernels = {{DType::kFloat32, Attention<float, false>},
                {DType::kFloat64, Attention<double, false>}},
});

}  // namespace
}  // namespace interp::nn::flash_attn
