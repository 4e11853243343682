// multinomial: every row of X weighs the categories 0, 1, ...; Out holds num_samples of them by
// row, drawn with the weights as probabilities. Without replacement no category comes twice.
#include <algorithm>
#include <cmath>

#include "kernels/random/draw.h"
#include "kernels/util/shape_args.h"

namespace interp::random {
namespace {

constexpr int kX = 0;
constexpr int kNumSamplesTensor = 1;
constexpr int kOut = 0;

struct MultinomialAttrs {
  int64_t num_samples = 1;
  bool replacement = false;
};

MultinomialAttrs ReadMultinomial(AttrReader& reader) {
  return {.num_samples = reader.Int("num_samples", 1),
          .replacement = reader.Bool("replacement", false)};
}

// With the number of samples as a tensor may give it.
absl::StatusOr<MultinomialAttrs> AttrsOf(const OpContext& ctx) {
  MultinomialAttrs attrs = ctx.attrs<MultinomialAttrs>();
  INTERP_ASSIGN_OR_RETURN(attrs.num_samples,
                          ReadInteger(ctx, kNumSamplesTensor, "num_samples", attrs.num_samples));
  if (attrs.num_samples >= 1) return attrs;
  return InvalidArgument("'num_samples' is ", attrs.num_samples, ", expected 1 or more");
}

void InferDType(DTypeContext& ctx) { ctx.Set(kOut, DType::kInt64); }

absl::Status Infer(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  INTERP_ASSIGN_OR_RETURN(const MultinomialAttrs attrs, AttrsOf(ctx));
  const int64_t samples = attrs.num_samples;
  if (x.rank() != 1 && x.rank() != 2) {
    return InvalidArgument("'X' has shape ", ToString(x), ", expected rank 1 or 2");
  }
  ctx.SetShape(kOut, x.rank() == 1 ? Shape{samples} : Shape{x[0], samples});
  return absl::OkStatus();
}

struct Category {
  double key;
  int64_t index;
};

// The weights of one row, checked; an infinite one leaves the others no chance.
template <typename T>
absl::StatusOr<double> SumOfWeights(const T* weights, int64_t categories,
                                    const MultinomialAttrs& attrs) {
  double sum = 0;
  int64_t possible = 0;
  for (int64_t j = 0; j < categories; ++j) {
    if (!(weights[j] >= 0)) {
      return InvalidArgument("a weight in 'X' is ", weights[j], ", expected 0 or more");
    }
    sum += weights[j];
    possible += weights[j] > 0 ? 1 : 0;
  }
  if (!(sum > 0)) return InvalidArgument("a row of 'X' has no weight above 0");
  if (!std::isfinite(sum)) return InvalidArgument("the weights of a row of 'X' add up to ", sum);
  if (!attrs.replacement && possible < attrs.num_samples) {
    return InvalidArgument("'num_samples' is ", attrs.num_samples,
                           " without replacement, but a row", " of 'X' has only ", possible,
                           " weights above 0");
  }
  return sum;
}

// Inverts the cumulative distribution, which `row` has room for.
template <typename T>
void DrawReplacing(const RandomStream& stream, const T* weights, int64_t categories, double sum,
                   Category* row, int64_t samples, int64_t* out) {
  double below = 0;
  int64_t possible = 0;
  for (int64_t j = 0; j < categories; ++j) {
    if (weights[j] == 0) continue;
    below += weights[j];
    row[possible++] = {below / sum, j};
  }
  for (int64_t s = 0; s < samples; ++s) {
    const double unit = UnitDouble(BitsOf(stream, s));
    const Category* const found = std::upper_bound(
        row, row + possible - 1, unit, [](double u, const Category& c) { return u < c.key; });
    out[s] = found->index;
  }
}

// A race: category j arrives after an exponential time of rate weight j. The first to arrive are
// distributed like draws without replacement, in this order (Efraimidis and Spirakis, "Weighted
// random sampling with a reservoir", 2006).
template <typename T>
void DrawDistinct(const RandomStream& stream, const T* weights, int64_t categories, Category* row,
                  int64_t samples, int64_t* out) {
  Category* end = row;
  for (int64_t j = 0; j < categories; ++j) {
    if (weights[j] == 0) continue;
    const uint64_t bits = BitsOf(stream, j);
    *end++ = {-std::log(OpenUnit(bits)) / static_cast<double>(weights[j]), j};
  }
  std::partial_sort(row, row + samples, end, [](const Category& a, const Category& b) {
    return a.key != b.key ? a.key < b.key : a.index < b.index;
  });
  for (int64_t s = 0; s < samples; ++s) out[s] = row[s].index;
}

template <typename T>
absl::Status Multinomial(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const MultinomialAttrs attrs, AttrsOf(ctx));
  const Tensor& x = ctx.input(kX);
  const int64_t categories = x.shape.back(1);
  const int64_t rows = x.shape.rank() == 1 ? 1 : x.shape[0];
  INTERP_ASSIGN_OR_RETURN(const Workspace work,
                          ctx.workspace(static_cast<size_t>(categories) * sizeof(Category)));
  auto* const row = work.data<Category>();
  for (int64_t i = 0; i < rows; ++i) {
    const T* const weights = x.data<T>() + i * categories;
    int64_t* const out = ctx.output(kOut).mutable_data<int64_t>() + i * attrs.num_samples;
    INTERP_ASSIGN_OR_RETURN(const double sum, SumOfWeights(weights, categories, attrs));
    const RandomStream stream = ctx.random().Split(static_cast<uint64_t>(i));
    if (attrs.replacement) {
      DrawReplacing(stream, weights, categories, sum, row, attrs.num_samples, out);
    } else {
      DrawDistinct(stream, weights, categories, row, attrs.num_samples, out);
    }
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "multinomial",
    .inputs = {{"X"}, {"NumSamplesTensor", kOptional | kAnyDType | kValueInInfer, "num_samples"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<MultinomialAttrs, ReadMultinomial>,
    .infer_dtype = InferDType,
    .infer = Infer,
    .kernels = {{DType::kFloat32, Multinomial<float>}, {DType::kFloat64, Multinomial<double>}},
    .random = true,
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp::random
