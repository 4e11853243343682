// linear_chain_crf: the negative log likelihood of the tags Label of each sequence.
//
//   LogLikelihood = log sum over all tags of exp(score(tags)) - score(Label)
//   score(tags) = start[tag 0] + sum of Emission[t, tag t] + transitions[tag t-1, tag t] + end[...]
//
// Rows 0 and 1 of Transition are start and end. Only the gradient reads the other outputs: Alpha
// (forward sums, each row scaled to sum 1), EmissionExps (exp(Emission - its row's maximum)) and
// TransitionExps. An empty sequence costs 0, and padding has Alpha 0.
#include <algorithm>

#include "core/op_def.h"
#include "kernels/crf/sequences.h"
#include "kernels/util/flops.h"
#include "kernels/util/indices.h"
#include "kernels/util/vector_math.h"

namespace interp::crf {
namespace {

constexpr int kEmission = 0;
constexpr int kTransition = 1;
constexpr int kLabel = 2;
constexpr int kLength = 3;
constexpr int kAlpha = 0;
constexpr int kEmissionExps = 1;
constexpr int kTransitionExps = 2;
constexpr int kLogLikelihood = 3;

absl::Status CheckEmission(const Shape& emission, const Shape& transition, bool padded) {
  if (emission.rank() != (padded ? 3 : 2) || emission.back() < 1) {
    return InvalidArgument("input 'Emission' has shape ", ToString(emission), ", expected ",
                           padded ? "[batch, steps, tags] with 'Length'" : "[rows, tags]");
  }
  const int64_t tags = emission.back();
  if (transition.rank() == 2 && transition[0] - 2 == tags && transition[1] == tags) {
    return absl::OkStatus();
  }
  return InvalidArgument("input 'Transition' has shape ", ToString(transition),
                         ", expected [tags + 2, tags] with ", tags, " tags");
}

absl::Status InferLinearChainCrf(InferContext& ctx) {
  const Tensor& emission = ctx.input(kEmission);
  const Tensor& label = ctx.input(kLabel);
  const Tensor* length = ctx.optional_input(kLength);
  const Shape& transition = ctx.input(kTransition).shape;
  INTERP_RETURN_IF_ERROR(CheckEmission(emission.shape, transition, length != nullptr));
  const int64_t rows = emission.shape.numel(0, emission.shape.rank() - 1);
  if (label.shape.CheckedNumel() != rows) {
    return InvalidArgument("input 'Label' has shape ", ToString(label.shape),
                           ", expected a tag for each row of 'Emission' ",
                           ToString(emission.shape));
  }
  int64_t sequences = emission.shape[0];
  if (length == nullptr) {
    INTERP_RETURN_IF_ERROR(OnlyLevelOffsets(label, "Label").status());
    sequences = static_cast<int64_t>(label.lod[0].size()) - 1;
  } else if (length->shape.CheckedNumel() != sequences) {
    return InvalidArgument("input 'Length' has shape ", ToString(length->shape), ", expected ",
                           sequences, " elements");
  }
  ctx.SetShape(kAlpha, emission.shape);
  ctx.SetShape(kEmissionExps, emission.shape);
  ctx.SetShape(kTransitionExps, transition);
  ctx.SetShape(kLogLikelihood, {sequences, 1});
  return absl::OkStatus();
}

// The scores and their exponentials of one run.
template <typename T>
struct Crf {
  int64_t tags = 0;
  const T* emission = nullptr;
  const T* transition = nullptr;
  T* emission_exps = nullptr;
  T* transition_exps = nullptr;
  T* row_max = nullptr;  // by row of the emission

  void Exponentials(int64_t rows) {
    for (int64_t i = 0; i < (tags + 2) * tags; ++i) transition_exps[i] = Exp(transition[i]);
    for (int64_t i = 0; i < rows; ++i) {
      const T* const x = emission + i * tags;
      T* const e = emission_exps + i * tags;
      const T most = row_max[i] = *std::max_element(x, x + tags);
      for (int64_t j = 0; j < tags; ++j) e[j] = Exp(x[j] - most);
    }
  }

  // The logarithm of the sum over all tags of a sequence; fills its rows of alpha. NaN when the sum
  // is not a positive number.
  T LogSum(const Sequence& sequence, T* alpha) const {
    T log_sum = 0;
    for (int64_t t = 0; t < sequence.length; ++t) {
      const int64_t row = sequence.first + t;
      T* const a = alpha + row * tags;
      if (t == 0) {
        std::copy_n(transition_exps, tags, a);
      } else {
        Advance(a - tags, a);
      }
      T sum = 0;
      for (int64_t j = 0; j < tags; ++j) sum += a[j] *= emission_exps[row * tags + j];
      for (int64_t j = 0; j < tags; ++j) a[j] /= sum;
      log_sum += row_max[row] + LogOfSum(sum);
    }
    const T* const last = alpha + (sequence.first + sequence.length - 1) * tags;
    T sum = 0;
    for (int64_t j = 0; j < tags; ++j) sum += last[j] * transition_exps[tags + j];
    return log_sum + LogOfSum(sum);
  }

  // The score of the tags of a sequence. REQUIRES: labels in [0, tags).
  template <typename Label>
  T Score(const Sequence& sequence, const Label* labels) const {
    const Label* const tag = labels + sequence.first;
    const int64_t last = sequence.length - 1;
    T score = transition[tag[0]] + transition[tags + tag[last]];
    for (int64_t t = 0; t <= last; ++t) score += emission[(sequence.first + t) * tags + tag[t]];
    for (int64_t t = 1; t <= last; ++t) {
      score += transition[(2 + static_cast<int64_t>(tag[t - 1])) * tags + tag[t]];
    }
    return score;
  }

 private:
  static T LogOfSum(T sum) { return sum > T{0} ? Log(sum) : std::numeric_limits<T>::quiet_NaN(); }

  // after = before * transitions
  void Advance(const T* before, T* after) const {
    std::fill_n(after, tags, T{0});
    const T* row = transition_exps + 2 * tags;
    for (int64_t i = 0; i < tags; ++i, row += tags) {
      for (int64_t j = 0; j < tags; ++j) after[j] += before[i] * row[j];
    }
  }
};

template <typename T, typename Label>
absl::Status Costs(const Crf<T>& crf, const std::vector<Sequence>& sequences, const Label* labels,
                   T* alpha, T* costs) {
  for (size_t i = 0; i < sequences.size(); ++i) {
    const Sequence& sequence = sequences[i];
    costs[i] = 0;
    if (sequence.length == 0) continue;
    INTERP_RETURN_IF_ERROR(
        CheckIndices(labels + sequence.first, sequence.length, crf.tags, "Label"));
    costs[i] = crf.LogSum(sequence, alpha) - crf.Score(sequence, labels);
    if (std::isnan(costs[i])) {
      return InvalidArgument("sequence ", i, " has scores whose exponentials have no positive sum");
    }
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status LinearChainCrf(KernelContext& ctx) {
  const Tensor& emission = ctx.input(kEmission);
  const Tensor* length = ctx.optional_input(kLength);
  std::vector<Sequence> sequences;
  if (length == nullptr) {
    sequences = LodSequences(ctx.input(kLabel).lod[0]);
  } else {
    INTERP_ASSIGN_OR_RETURN(sequences, PaddedSequences(*length, "Length", emission.shape[1]));
  }
  const int64_t tags = emission.shape.back();
  const int64_t rows = emission.numel() / tags;
  INTERP_ASSIGN_OR_RETURN(const Workspace row_max,
                          ctx.workspace(static_cast<size_t>(rows) * sizeof(T)));
  Crf<T> crf = {tags,
                emission.data<T>(),
                ctx.input(kTransition).data<T>(),
                ctx.output(kEmissionExps).mutable_data<T>(),
                ctx.output(kTransitionExps).mutable_data<T>(),
                row_max.data<T>()};
  crf.Exponentials(rows);
  T* const alpha = ctx.output(kAlpha).mutable_data<T>();
  if (length != nullptr) std::fill_n(alpha, rows * tags, T{0});
  T* const costs = ctx.output(kLogLikelihood).mutable_data<T>();
  return WithIndices(ctx.input(kLabel), "Label", [&](const auto* labels) {
    return Costs(crf, sequences, labels, alpha, costs);
  });
}

// The products with the transitions.
int64_t Flops(const OpContext& ctx) {
  const Tensor& emission = ctx.input(kEmission);
  return ToFlops(2.0 * static_cast<double>(emission.numel()) *
                 static_cast<double>(emission.shape.back()));
}

INTERP_REGISTER_OP(OpDef{
    .type = "linear_chain_crf",
    .inputs =
        {{"Emission"}, {"Transition"}, {"Label", kAnyDType}, {"Length", kOptional | kAnyDType}},
    .outputs = {{"Alpha"}, {"EmissionExps"}, {"TransitionExps"}, {"LogLikelihood"}},
    .infer = InferLinearChainCrf,
    .kernels = {{DType::kFloat32, LinearChainCrf<float>},
                {DType::kFloat64, LinearChainCrf<double>}},
    .gradient = {.inputs = {"Emission", "Transition", "Label", "Length", "Alpha", "EmissionExps",
                            "TransitionExps", "LogLikelihood@GRAD"},
                 .outputs = {"Emission@GRAD", "Transition@GRAD"}},
    .flops = Flops,
});

}  // namespace
}  // namespace interp::crf
