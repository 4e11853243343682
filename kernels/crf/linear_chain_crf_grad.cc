// linear_chain_crf_grad: the derivatives of the cost are expected counts less those of Label.
//
//   Emission@GRAD[t, j] = g (p(tag t = j) - [Label t = j])
//   Transition@GRAD     = g (expected - counted) first tags, last tags, and pairs of tags
//
// where g is LogLikelihood@GRAD of the sequence. Alpha, EmissionExps and TransitionExps are those
// of the forward op. Going backward through a sequence gives p and, for each row, what the row is
// to be multiplied by Alpha of the row before to give the expected pairs: that product is one over
// all rows.
#include <algorithm>

#include "core/op_def.h"
#include "kernels/crf/for_each_sequence.h"
#include "kernels/crf/sequences.h"
#include "kernels/product/product.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/indices.h"
#include "kernels/util/parallel_for.h"

namespace interp::crf {
namespace {

constexpr int kEmission = 0;
constexpr int kTransition = 1;
constexpr int kLabel = 2;
constexpr int kLength = 3;
constexpr int kAlpha = 4;
constexpr int kEmissionExps = 5;
constexpr int kTransitionExps = 6;
constexpr int kCostGrad = 7;
constexpr int kEmissionGrad = 0;
constexpr int kTransitionGrad = 1;

absl::Status CheckForwardValues(const InferContext& ctx) {
  const Shape& emission = ctx.input(kEmission).shape;
  const bool padded = ctx.has_input(kLength);
  if (emission.rank() != (padded ? 3 : 2) || emission.back() < 1) {
    return InvalidArgument("input 'Emission' has shape ", ToString(emission), ", expected ",
                           padded ? "[batch, steps, tags] with 'Length'" : "[rows, tags]");
  }
  const Shape transition = {emission.back() + 2, emission.back()};
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kAlpha, "Alpha", emission));
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kEmissionExps, "EmissionExps", emission));
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kTransitionExps, "TransitionExps", transition));
  return CheckInputShape(ctx, kTransition, "Transition", transition);
}

absl::Status InferLinearChainCrfGrad(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckForwardValues(ctx));
  const Tensor& label = ctx.input(kLabel);
  const Shape& emission = ctx.input(kEmission).shape;
  if (label.shape.CheckedNumel() != emission.numel(0, emission.rank() - 1)) {
    return InvalidArgument("input 'Label' has shape ", ToString(label.shape),
                           ", expected a tag for each row of 'Emission' ", ToString(emission));
  }
  int64_t sequences = emission[0];
  if (const Tensor* length = ctx.optional_input(kLength)) {
    if (length->shape.CheckedNumel() != sequences) {
      return InvalidArgument("input 'Length' has shape ", ToString(length->shape), ", expected ",
                             sequences, " elements");
    }
  } else {
    INTERP_ASSIGN_OR_RETURN(const Offsets offsets, OnlyLevelOffsets(label, "Label"));
    sequences = SequenceCount(offsets);
  }
  if (ctx.input(kCostGrad).numel() != sequences) {
    return InvalidArgument("input 'LogLikelihood@GRAD' has shape ",
                           ToString(ctx.input(kCostGrad).shape), ", expected ", sequences,
                           " elements");
  }
  ctx.ShareShape(kEmission, kEmissionGrad);
  ctx.ShareShape(kTransition, kTransitionGrad);
  return absl::OkStatus();
}

// Forward values, and what a sequence adds to them going backward.
template <typename T>
struct Backward {
  int64_t tags = 0;
  const T* alpha = nullptr;
  const T* emission_exps = nullptr;
  const T* transition_exps = nullptr;
  T* marginals = nullptr;  // by row: g p(tag)
  T* pairs = nullptr;      // by row: what Alpha of the row before is multiplied by; 0 in first rows

  // `beta` and `next` are scratch of `tags` elements.
  void Run(const Sequence& sequence, T g, T* beta, T* next) const {
    std::copy_n(transition_exps + tags, tags, beta);
    for (int64_t t = sequence.length - 1; t >= 0; --t) {
      const int64_t row = sequence.first + t;
      const T* const a = alpha + row * tags;
      T* const marginal = marginals + row * tags;
      T sum = 0;
      for (int64_t j = 0; j < tags; ++j) sum += marginal[j] = a[j] * beta[j];
      for (int64_t j = 0; j < tags; ++j) marginal[j] *= g / sum;
      if (t > 0) Retreat(row, g, beta, next);
    }
  }

 private:
  // Turns `beta` of the row into that of the row before, scaled to sum 1, and fills in the pairs.
  void Retreat(int64_t row, T g, T* beta, T* next) const {
    const T* const exps = emission_exps + row * tags;
    const T* const before = alpha + (row - 1) * tags;
    T* const pair = pairs + row * tags;
    for (int64_t j = 0; j < tags; ++j) pair[j] = exps[j] * beta[j];
    T sum = 0;
    T weight = 0;
    for (int64_t i = 0; i < tags; ++i) {
      next[i] = nn::Dot(transition_exps + (2 + i) * tags, pair, tags);
      sum += next[i];
      weight += before[i] * next[i];
    }
    for (int64_t j = 0; j < tags; ++j) beta[j] = next[j] / sum;
    for (int64_t j = 0; j < tags; ++j) pair[j] *= g / weight;
  }
};

template <typename T>
absl::StatusOr<std::vector<Sequence>> Sequences(const KernelContext& ctx) {
  const Tensor* length = ctx.optional_input(kLength);
  if (length == nullptr) return LodSequences(ctx.input(kLabel).lod[0]);
  return PaddedSequences(*length, "Length", ctx.input(kEmission).shape[1]);
}

// g - 1 for the tags of a sequence, in `marginals` and in the counts of Transition@GRAD, which hold
// the expected pairs.
template <typename T, typename Label>
void Count(const Sequence& sequence, T g, const Label* labels, int64_t tags, T* marginals,
           T* transition) {
  const Label* const tag = labels + sequence.first;
  T* const rows = marginals + sequence.first * tags;
  for (int64_t t = 0; t < sequence.length; ++t) rows[t * tags + tag[t]] -= g;
  const int64_t last = sequence.length - 1;
  for (int64_t j = 0; j < tags; ++j) transition[j] += rows[j];
  for (int64_t j = 0; j < tags; ++j) transition[tags + j] += rows[last * tags + j];
  for (int64_t t = 1; t <= last; ++t) {
    transition[(2 + static_cast<int64_t>(tag[t - 1])) * tags + tag[t]] -= g;
  }
}

// Transition@GRAD without the counts of Label: 0 for first and last tags, expected pairs.
template <typename T>
absl::Status ExpectedPairs(KernelContext& ctx, const Backward<T>& backward, int64_t rows,
                           T* transition) {
  const int64_t tags = backward.tags;
  std::fill_n(transition, 2 * tags, T{0});
  nn::Product product;
  product.m = product.n = tags;
  product.k = std::max<int64_t>(rows - 1, 0);
  product.trans_x = true;
  INTERP_RETURN_IF_ERROR(nn::RunProduct<T>(ctx, product, backward.alpha, backward.pairs + tags,
                                           /*y_constant=*/false, /*bias=*/nullptr,
                                           transition + 2 * tags));
  for (int64_t i = 2 * tags; i < (2 + tags) * tags; ++i) {
    transition[i] *= backward.transition_exps[i];
  }
  return absl::OkStatus();
}

template <typename T, typename Label>
absl::Status Differentiate(KernelContext& ctx, const std::vector<Sequence>& sequences,
                           const Label* labels, T* memory) {
  const int64_t tags = ctx.input(kEmission).shape.back();
  const int64_t rows = ctx.input(kEmission).numel() / tags;
  for (const Sequence& s : sequences) {
    INTERP_RETURN_IF_ERROR(CheckIndices(labels + s.first, s.length, tags, "Label"));
  }
  Tensor* const emission_grad = ctx.optional_output(kEmissionGrad);
  Tensor* const transition_grad = ctx.optional_output(kTransitionGrad);
  T* const transition =
      transition_grad != nullptr ? transition_grad->mutable_data<T>() : memory + 2 * rows * tags;
  const Backward<T> backward = {
      tags,
      ctx.input(kAlpha).data<T>(),
      ctx.input(kEmissionExps).data<T>(),
      ctx.input(kTransitionExps).data<T>(),
      emission_grad != nullptr ? emission_grad->mutable_data<T>() : memory,
      memory + rows * tags};
  std::fill_n(backward.marginals, rows * tags, T{0});
  std::fill_n(backward.pairs, rows * tags, T{0});
  const T* const g = ctx.input(kCostGrad).data<T>();
  const auto count = std::ssize(sequences);
  const int64_t grain = GrainForShare(rows * tags * tags, count);
  INTERP_RETURN_IF_ERROR(ForEachSequence<T>(
      ctx, count, grain, 2 * tags,
      [&](int64_t i, T* scratch) { backward.Run(sequences[i], g[i], scratch, scratch + tags); }));
  INTERP_RETURN_IF_ERROR(ExpectedPairs(ctx, backward, rows, transition));
  for (int64_t i = 0; i < count; ++i) {
    if (sequences[i].length == 0) continue;
    Count(sequences[i], g[i], labels, tags, backward.marginals, transition);
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status LinearChainCrfGrad(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const std::vector<Sequence> sequences, Sequences<T>(ctx));
  // Marginals and pairs, and the transitions, where they are not outputs.
  const int64_t elements = 2 * ctx.input(kEmission).numel() + ctx.input(kTransition).numel();
  INTERP_ASSIGN_OR_RETURN(const Workspace memory,
                          ctx.workspace(static_cast<size_t>(elements) * sizeof(T)));
  return WithIndices(ctx.input(kLabel), "Label", [&](const auto* labels) {
    return Differentiate(ctx, sequences, labels, memory.data<T>());
  });
}

INTERP_REGISTER_OP(OpDef{
    .type = "linear_chain_crf_grad",
    .inputs = {{"Emission", kNoNeedBuffer},
               {"Transition", kNoNeedBuffer},
               {"Label", kAnyDType},
               {"Length", kOptional | kAnyDType},
               {"Alpha"},
               {"EmissionExps"},
               {"TransitionExps"},
               {"LogLikelihood@GRAD"}},
    .outputs = {{"Emission@GRAD", kOptional}, {"Transition@GRAD", kOptional}},
    .infer = InferLinearChainCrfGrad,
    .kernels = {{DType::kFloat32, LinearChainCrfGrad<float>},
                {DType::kFloat64, LinearChainCrfGrad<double>}},
});

}  // namespace
}  // namespace interp::crf
