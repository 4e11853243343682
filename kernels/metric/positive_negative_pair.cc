// positive_negative_pair: for a ranking, the pairs of documents of one query that it orders as
// their labels do, and those that it does not. Pairs of equal labels do not count. A pair of equal
// scores is neutral and, as in Paddle, also negative. A pair weighs the mean of its Weights.
#include <map>
#include <vector>

#include "core/op_def.h"

namespace interp {
namespace {

constexpr int kScore = 0;
constexpr int kLabel = 1;
constexpr int kQuery = 2;
constexpr int kAccumulated = 3;  // positive, negative, neutral
constexpr int kWeight = 6;
constexpr int kCounts = 3;

struct PairAttrs {
  int64_t column = 0;
};

PairAttrs ReadAttrs(AttrReader& reader) { return {reader.Int("column", 0)}; }

absl::Status CheckColumn(const Tensor& tensor, absl::string_view name, int64_t rows) {
  if (tensor.shape.rank() >= 1 && tensor.shape[0] == rows && tensor.numel() == rows) {
    return absl::OkStatus();
  }
  return InvalidArgument("input '", name, "' has shape ", ToString(tensor.shape), ", expected [",
                         rows, ",1]");
}

absl::Status Infer(InferContext& ctx) {
  const Shape& score = ctx.input(kScore).shape;
  const int64_t column = ctx.attrs<PairAttrs>().column;
  if (score.rank() != 2) {
    return InvalidArgument("input 'Score' has shape ", ToString(score), ", expected a matrix");
  }
  if (column >= score[1] || column < -score[1]) {
    return InvalidArgument("column is ", column, ", expected one of the ", score[1],
                           " of input 'Score'");
  }
  INTERP_RETURN_IF_ERROR(CheckColumn(ctx.input(kLabel), "Label", score[0]));
  INTERP_RETURN_IF_ERROR(CheckColumn(ctx.input(kQuery), "QueryID", score[0]));
  if (ctx.input(kQuery).dtype != DType::kInt64) {
    return InvalidArgument("input 'QueryID' is ", Name(ctx.input(kQuery).dtype),
                           ", expected int64");
  }
  if (ctx.has_input(kWeight)) {
    INTERP_RETURN_IF_ERROR(CheckColumn(ctx.input(kWeight), "Weight", score[0]));
  }
  for (int i = 0; i < kCounts; ++i) {
    const Tensor* const before = ctx.optional_input(kAccumulated + i);
    if (before != nullptr && before->numel() != 1) {
      return InvalidArgument("accumulated pairs have shape ", ToString(before->shape),
                             ", expected one element");
    }
    ctx.SetShape(i, {1});
  }
  return absl::OkStatus();
}

template <typename T>
struct Document {
  T score, label, weight;
};

template <typename T>
absl::Status CountPairs(KernelContext& ctx) {
  const Tensor& scores = ctx.input(kScore);
  const Tensor* const weights = ctx.optional_input(kWeight);
  const int64_t width = scores.shape[1];
  const int64_t column = ctx.attrs<PairAttrs>().column;
  const int64_t first = column < 0 ? column + width : column;
  std::map<int64_t, std::vector<Document<T>>> queries;
  for (int64_t i = 0; i < scores.shape[0]; ++i) {
    queries[ctx.input(kQuery).data<int64_t>()[i]].push_back(
        {scores.data<T>()[i * width + first], ctx.input(kLabel).data<T>()[i],
         weights == nullptr ? T{1} : weights->data<T>()[i]});
  }
  T counts[kCounts] = {};
  const bool goes_on = ctx.has_input(kAccumulated) && ctx.has_input(kAccumulated + 1) &&
                       ctx.has_input(kAccumulated + 2);
  for (int i = 0; goes_on && i < kCounts; ++i) counts[i] = *ctx.input(kAccumulated + i).data<T>();
  for (const auto& [query, documents] : queries) {
    for (size_t i = 0; i < documents.size(); ++i) {
      for (size_t k = i + 1; k < documents.size(); ++k) {
        const Document<T>&a = documents[i], &b = documents[k];
        if (a.label == b.label) continue;
        const T weight = (a.weight + b.weight) / 2;
        counts[(a.score - b.score) * (a.label - b.label) > 0 ? 0 : 1] += weight;
        if (a.score == b.score) counts[2] += weight;
      }
    }
  }
  for (int i = 0; i < kCounts; ++i) {
    if (Tensor* const out = ctx.optional_output(i)) *out->mutable_data<T>() = counts[i];
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "positive_negative_pair",
    .inputs = {{"Score"},
               {"Label"},
               {"QueryID", kAnyDType},
               {"AccumulatePositivePair", kOptional},
               {"AccumulateNegativePair", kOptional},
               {"AccumulateNeutralPair", kOptional},
               {"Weight", kOptional}},
    .outputs = {{"PositivePair"}, {"NegativePair"}, {"NeutralPair", kOptional}},
    .parse = ParseAttrs<PairAttrs, ReadAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, CountPairs<float>}, {DType::kFloat64, CountPairs<double>}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
