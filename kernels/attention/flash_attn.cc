// flash_attn: attention of heads side by side. q, k, v and out are [batch, length, heads, width]; k
// and v may have fewer heads, each for as many of q. attn_mask is added to the scores; with
// `causal` a query sees no key behind its own place, counted from the ends. softmax_lse has the
// logarithms of the sums of exponentials, softmax the weights where `return_softmax` asks for them.
// memory_efficient_attention: the same, with places counted from the starts.
// In training no weights are dropped: `dropout` has to be 0. 16 bits are computed as float32.
#include <cmath>
#include <limits>

#include "core/op_def.h"
#include "kernels/attention/attention.h"
#include "kernels/nn/softmax.h"

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

template <typename T>
struct Head : AttentionHead<T> {
  int64_t at = 0;  // counted over the sequences
};

// One op in a run.
template <typename T>
struct Heads {
  Shape scores = {};
  AttentionSizes<T> sizes;
  Head<T> first = {};
  int64_t group = 1;  // heads that share keys and values
  const Tensor* mask = nullptr;
  T* log_sums = nullptr;  // of each query; may be null
  T* weights = nullptr;   // queries x keys; may be null

  Head<T> At(int64_t at) const {
    const int64_t b = at / scores[1];
    const int64_t h = at % scores[1];
    Head<T> head = first;
    head.at = at;
    head.queries += b * sizes.queries * head.query_row + h * sizes.width;
    head.keys.data += b * sizes.keys * head.keys.row + h / group * sizes.width;
    head.values.data += b * sizes.keys * head.values.row + h / group * sizes.values;
    head.out += b * sizes.queries * head.out_row + h * sizes.values;
    return head;
  }

  // The row of the mask for that query; null without a mask.
  const T* MaskRow(int64_t at, int64_t query) const {
    if (mask == nullptr) return nullptr;
    const int64_t b = mask->shape[0] == 1 ? 0 : at / scores[1];
    const int64_t h = mask->shape[1] == 1 ? 0 : at % scores[1];
    return mask->data<T>() + ((b * mask->shape[1] + h) * sizes.queries + query) * sizes.keys;
  }
};

template <typename T>
Heads<T> HeadsOf(KernelContext& ctx, const Shape& scores) {
  const Attrs& attrs = ctx.attrs<Attrs>();
  const Shape& q = ctx.input(kQ).shape;
  const Shape& k = ctx.input(kK).shape;
  const int64_t values = ctx.input(kV).shape[3];
  Heads<T> heads = {.scores = scores, .sizes = {scores[2], scores[3], q[3], values, T{1}}};
  heads.first.queries = ctx.input(kQ).data<T>();
  heads.first.query_row = q[2] * q[3];
  heads.first.keys = {ctx.input(kK).data<T>(), k[2] * k[3]};
  heads.first.values = {ctx.input(kV).data<T>(), k[2] * values};
  heads.first.out = ctx.output(kOut).mutable_data<T>();
  heads.first.out_row = q[2] * values;
  heads.group = q[2] / k[2];
  heads.sizes.scale =
      attrs.scale > 0 ? static_cast<T>(attrs.scale) : 1 / std::sqrt(static_cast<T>(q[3]));
  const int64_t causal = attrs.from_ends ? scores[3] - scores[2] : 0;
  heads.sizes.ahead = attrs.causal ? causal : scores[3];
  heads.mask = ctx.optional_input(kMask);
  if (Tensor* const sums = ctx.optional_output(kLogSums)) heads.log_sums = sums->mutable_data<T>();
  return heads;
}

// Makes weights of the scores that a query sees, and gives the logarithm of the sum of their
// exponentials. Zeros where nothing is seen.
template <typename T>
T MakeWeights(int64_t count, T* scores) {
  constexpr T kNothing = -std::numeric_limits<T>::infinity();
  const T largest = count == 0 ? kNothing : RowMax(scores, count);
  // The largest element passes NaN by.
  if (largest == kNothing && std::count(scores, scores + count, kNothing) == count) {
    std::fill_n(scores, count, T{0});
    return kNothing;
  }
  for (int64_t j = 0; j < count; ++j) {
    const T shifted = scores[j] - largest;
    const T e = ExpInRange(shifted < softmax::kLowest<T> ? softmax::kLowest<T> : shifted);
    scores[j] = shifted < softmax::kLowest<T> ? T{0} : e;
  }
  const T sum = RowSum(scores, count);
  for (int64_t j = 0; j < count; ++j) scores[j] /= sum;
  return largest + std::log(sum);
}

// Makes weights of the products of a query with all keys.
template <typename T>
void Weigh(const Heads<T>& heads, int64_t at, int64_t query, T* scores) {
  const int64_t keys = heads.sizes.keys;
  const int64_t seen = heads.sizes.seen(query + 1);
  if (const T* const mask = heads.MaskRow(at, query)) {
    for (int64_t j = 0; j < seen; ++j) scores[j] += mask[j];
  }
  const T log_sum = MakeWeights(seen, scores);
  std::fill(scores + seen, scores + keys, T{0});
  const int64_t row = at * heads.sizes.queries + query;
  if (heads.log_sums != nullptr) heads.log_sums[row] = log_sum;
  if (heads.weights != nullptr) std::copy_n(scores, keys, heads.weights + row * keys);
}

template <typename T, bool kFlash>
absl::Status Attention(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape scores, ScoresOf(ctx));
  if (Tensor* const seed = ctx.optional_output(kSeed)) {
    std::fill_n(seed->mutable_data<int64_t>(), 2, int64_t{0});
  }
  if (ctx.input(kQ).numel() == 0) return absl::OkStatus();  // so are the outputs
  Heads<T> heads = HeadsOf<T>(ctx, scores);
  if (kFlash && ctx.has_output(kWeights) && ctx.attrs<Attrs>().weights) {
    heads.weights = ctx.output(kWeights).mutable_data<T>();
  }
  return RunAttention(
      ctx, scores[0] * scores[1], heads.sizes, [&](int64_t at) { return heads.At(at); },
      [&](const Head<T>& head, int64_t query, T* row) {
        Weigh(heads, head.at, query, row);
        return T{1};
      });
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
