// warpctc: connectionist temporal classification. Loss is the negative log probability of Label
// under softmax(Logits), summed over all alignments; WarpCTCGrad its derivative by the logits.
//
// An alignment has a tag for each row; without repetitions and blanks it is the label. The rows
// of Logits are joined, with a LoD, or [steps, batch, tags] with lengths. WarpCTCGrad always is
// [steps, batch, tags]. A label for which there are too few rows has loss and gradient 0. Labels
// with blanks in them are not refused. norm_by_times is for the gradient op
// (warpctc_grad.cc).
//
// Forward and backward sums run over the label with blanks around each of its tags, 2 U + 1
// positions, in logarithms.
#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "core/op_def.h"
#include "kernels/crf/ctc_attrs.h"
#include "kernels/crf/for_each_sequence.h"
#include "kernels/crf/sequences.h"
#include "kernels/util/indices.h"
#include "kernels/util/vector_math.h"

namespace interp::crf {
namespace {

constexpr int kLogits = 0;
constexpr int kLabel = 1;
constexpr int kLogitsLength = 2;
constexpr int kLabelLength = 3;
constexpr int kLoss = 0;
constexpr int kGrad = 1;

bool IsPadded(const OpContext& ctx) { return ctx.has_input(kLogitsLength); }

// Steps, batch and tags of WarpCTCGrad. REQUIRES: CheckPadded or CheckJoined.
Shape GradShape(const OpContext& ctx) {
  const Tensor& logits = ctx.input(kLogits);
  if (IsPadded(ctx)) return logits.shape;
  return {LongestOf(LodSequences(logits.lod[0])), static_cast<int64_t>(logits.lod[0].size()) - 1,
          logits.shape[1]};
}

absl::Status CheckPadded(const InferContext& ctx) {
  const Shape& logits = ctx.input(kLogits).shape;
  const Shape& label = ctx.input(kLabel).shape;
  if (logits.rank() != 3 || logits[2] < 1) {
    return InvalidArgument("input 'Logits' has shape ", ToString(logits),
                           ", expected [steps, batch, tags] with 'LogitsLength'");
  }
  const bool is_matrix = label.rank() == 2 || (label.rank() == 3 && label[2] == 1);
  if (!is_matrix || label[0] != logits[1]) {
    return InvalidArgument("input 'Label' has shape ", ToString(label), ", expected [", logits[1],
                           ",U]");
  }
  for (const int slot : {kLogitsLength, kLabelLength}) {
    const Tensor& lengths = ctx.input(slot);
    if (lengths.shape.CheckedNumel() != logits[1]) {
      return InvalidArgument("input '", slot == kLabelLength ? "LabelLength" : "LogitsLength",
                             "' has shape ", ToString(lengths.shape), ", expected ", logits[1],
                             " elements");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckJoined(const InferContext& ctx) {
  const Tensor& logits = ctx.input(kLogits);
  const Tensor& label = ctx.input(kLabel);
  if (logits.shape.rank() != 2 || logits.shape[1] < 1) {
    return InvalidArgument("input 'Logits' has shape ", ToString(logits.shape),
                           ", expected [rows, tags] with a LoD");
  }
  if (label.shape.rank() != 2 || label.shape[1] != 1) {
    return InvalidArgument("input 'Label' has shape ", ToString(label.shape), ", expected [U,1]");
  }
  INTERP_RETURN_IF_ERROR(OnlyLevelOffsets(logits, "Logits").status());
  INTERP_RETURN_IF_ERROR(OnlyLevelOffsets(label, "Label").status());
  if (logits.lod[0].size() == label.lod[0].size()) return absl::OkStatus();
  return InvalidArgument("inputs 'Logits' and 'Label' have ", logits.lod[0].size() - 1, " and ",
                         label.lod[0].size() - 1, " sequences");
}

absl::Status InferWarpCtc(InferContext& ctx) {
  if (ctx.has_input(kLabelLength) != IsPadded(ctx)) {
    return InvalidArgument("inputs 'LogitsLength' and 'LabelLength' are not given both");
  }
  INTERP_RETURN_IF_ERROR(IsPadded(ctx) ? CheckPadded(ctx) : CheckJoined(ctx));
  const Shape shape = GradShape(ctx);
  const int32_t blank = ctx.attrs<WarpCtcAttrs>().blank;
  if (blank < 0 || blank >= shape[2]) {
    return InvalidArgument("attribute 'blank' is ", blank, ", expected 0 to ", shape[2] - 1);
  }
  if (!shape.CheckedNumel().has_value()) {
    return InvalidArgument("input 'Logits' pads to ", ToString(shape), ", which is too large");
  }
  ctx.SetShape(kLoss, {shape[1], 1});
  ctx.SetShape(kGrad, shape);
  return absl::OkStatus();
}

// One sequence: its logits, its label with blanks, its part of the gradient.
template <typename T>
struct Alignment {
  const T* logits = nullptr;
  int64_t logits_stride = 0;  // from one row to the next
  int64_t length = 0;         // rows
  std::vector<int64_t> tags;  // of the positions: blank, tag, blank, ..., blank
  T* grad = nullptr;
  int64_t grad_stride = 0;

  int64_t positions() const { return static_cast<int64_t>(tags.size()); }
  // Whether position s may follow position s - 2: it is no blank and another tag.
  bool MaySkipTo(int64_t s) const { return s % 2 == 1 && s > 2 && tags[s] != tags[s - 2]; }
  // Whether there are rows enough: one for each tag and for a blank between equal ones.
  bool Fits() const {
    int64_t least = positions() / 2;
    for (int64_t s = 3; s < positions(); s += 2) least += tags[s] == tags[s - 2] ? 1 : 0;
    return length > 0 && least <= length;
  }
};

// What stands for log 0. Sums with it stay finite.
template <typename T>
constexpr T kLogZero = T{-1e30F};

// out[s] = log(exp(a[s]) + exp(a[s + step]) + exp(a[s + 2 step] + skip[s]))
template <typename T>
void LogSum3(int64_t size, const T* a, int64_t step, const T* skip, T* out) {
  for (int64_t s = 0; s < size; ++s) {
    const T x = a[s];
    const T y = a[s + step];
    const T z = a[s + 2 * step] + skip[s];
    const T most = std::max(x, std::max(y, z));
    out[s] = most + Log(Exp(x - most) + Exp(y - most) + Exp(z - most));
  }
}

// The sums of one alignment at a time, in scratch memory.
template <typename T>
class ForwardBackward {
 public:
  // Elements of scratch memory for an alignment.
  static int64_t ScratchSize(int64_t length, int64_t positions) {
    return length * (2 * positions + kFront) + 4 * (positions + kFront);
  }

  ForwardBackward(int64_t tags, T* scratch) : tags_(tags), scratch_(scratch) {}

  // Returns the loss and writes the gradient of the rows. REQUIRES: a.Fits().
  T Run(const Alignment<T>& a) {
    const int64_t n = a.positions();
    stride_ = n + kFront;
    log_probs_ = scratch_;
    alpha_ = log_probs_ + a.length * n;
    beta_ = alpha_ + a.length * stride_;
    next_ = beta_ + stride_;
    skip_ = next_ + stride_;
    Softmax(a);
    const T log_likelihood = Forward(a);
    if (log_likelihood < kLogZero<T> / 2) return std::numeric_limits<T>::infinity();
    Backward(a, log_likelihood);
    return -log_likelihood;
  }

 private:
  // Elements in front of a row of alpha and behind one of beta: positions that do not exist.
  static constexpr int64_t kFront = 2;

  // grad = softmax(logits), and its logarithms at the positions.
  void Softmax(const Alignment<T>& a) {
    for (int64_t t = 0; t < a.length; ++t) {
      const T* const x = a.logits + t * a.logits_stride;
      T* const p = a.grad + t * a.grad_stride;
      const T most = *std::max_element(x, x + tags_);
      for (int64_t k = 0; k < tags_; ++k) p[k] = Exp(x[k] - most);
      T sum = 0;
      for (int64_t k = 0; k < tags_; ++k) sum += p[k];
      for (int64_t k = 0; k < tags_; ++k) p[k] /= sum;
      const T log_sum = most + Log(sum);
      for (int64_t s = 0; s < a.positions(); ++s) {
        log_probs_[t * a.positions() + s] = std::max(x[a.tags[s]] - log_sum, kLogZero<T>);
      }
    }
  }

  // alpha(t)[s]: log probability of the rows up to t for all that is at position s in row t.
  T* alpha(int64_t t) { return alpha_ + t * stride_ + kFront; }

  T Forward(const Alignment<T>& a) {
    const int64_t n = a.positions();
    for (int64_t s = 0; s < n; ++s) skip_[s] = a.MaySkipTo(s) ? T{0} : kLogZero<T>;
    for (int64_t t = 0; t < a.length; ++t) {
      std::fill_n(alpha(t) - kFront, stride_, kLogZero<T>);
      if (t == 0) {
        std::fill_n(alpha(0), std::min<int64_t>(n, 2), T{0});
      } else {
        LogSum3(n, alpha(t - 1), -1, skip_, alpha(t));
      }
      for (int64_t s = 0; s < n; ++s) alpha(t)[s] += log_probs_[t * n + s];
    }
    const T* const last = alpha(a.length - 1);
    const T most = std::max(last[n - 1], last[n - 2]);
    return most + Log(Exp(last[n - 1] - most) + Exp(last[n - 2] - most));
  }

  // beta_[s]: log probability of the rows after t for all that is at position s in row t.
  void Backward(const Alignment<T>& a, T log_likelihood) {
    const int64_t n = a.positions();
    std::fill_n(beta_, 2 * stride_, kLogZero<T>);  // and next_
    std::fill(beta_ + std::max<int64_t>(n - 2, 0), beta_ + n, T{0});
    for (int64_t s = 0; s < n; ++s) {
      skip_[s] = s + 2 < n && a.MaySkipTo(s + 2) ? T{0} : kLogZero<T>;
    }
    for (int64_t t = a.length - 1; t >= 0; --t) {
      if (t + 1 < a.length) {
        for (int64_t s = 0; s < n; ++s) next_[s] = beta_[s] + log_probs_[(t + 1) * n + s];
        LogSum3(n, next_, 1, skip_, beta_);
      }
      T* const grad = a.grad + t * a.grad_stride;
      for (int64_t s = 0; s < n; ++s) {
        grad[a.tags[s]] -= Exp(alpha(t)[s] + beta_[s] - log_likelihood);
      }
    }
  }

  int64_t tags_;
  T* scratch_;
  int64_t stride_ = 0;      // of alpha
  T* log_probs_ = nullptr;  // [row, position]
  T* alpha_ = nullptr;      // [row, stride]
  T* beta_ = nullptr;       // [stride]
  T* next_ = nullptr;       // [stride], beta and the probability of its row
  T* skip_ = nullptr;       // [stride], 0 where position s + 2 or s - 2 may be skipped to
};

// Labels of one sequence with blanks around each.
template <typename Label>
std::vector<int64_t> WithBlanks(const Label* labels, int64_t count, int64_t blank) {
  std::vector<int64_t> tags(static_cast<size_t>(2 * count + 1), blank);
  for (int64_t i = 0; i < count; ++i) tags[2 * i + 1] = labels[i];
  return tags;
}

// The labels of all sequences, checked and with blanks.
absl::StatusOr<std::vector<std::vector<int64_t>>> Labels(const KernelContext& ctx) {
  const Tensor& label = ctx.input(kLabel);
  const int64_t tags = ctx.input(kLogits).shape.back();
  std::vector<Sequence> sequences;
  if (IsPadded(ctx)) {
    INTERP_ASSIGN_OR_RETURN(
        sequences, PaddedSequences(ctx.input(kLabelLength), "LabelLength", label.shape[1]));
  } else {
    sequences = LodSequences(label.lod[0]);
  }
  std::vector<std::vector<int64_t>> all;
  INTERP_RETURN_IF_ERROR(WithIndices(label, "Label", [&](const auto* values) {
    for (const Sequence& s : sequences) {
      INTERP_RETURN_IF_ERROR(CheckIndices(values + s.first, s.length, tags, "Label"));
      all.push_back(WithBlanks(values + s.first, s.length, ctx.attrs<WarpCtcAttrs>().blank));
    }
    return absl::OkStatus();
  }));
  return all;
}

template <typename T>
absl::StatusOr<std::vector<Alignment<T>>> Alignments(KernelContext& ctx, T* grad) {
  const Tensor& logits = ctx.input(kLogits);
  const int64_t tags = logits.shape.back();
  const int64_t batch = ctx.output(kLoss).shape[0];
  INTERP_ASSIGN_OR_RETURN(std::vector<std::vector<int64_t>> labels, Labels(ctx));
  std::vector<Sequence> rows;
  if (IsPadded(ctx)) {
    INTERP_ASSIGN_OR_RETURN(
        rows, PaddedSequences(ctx.input(kLogitsLength), "LogitsLength", logits.shape[0]));
  } else {
    rows = LodSequences(logits.lod[0]);
  }
  std::vector<Alignment<T>> alignments;
  for (int64_t i = 0; i < batch; ++i) {
    const int64_t first = IsPadded(ctx) ? i : rows[i].first;
    alignments.push_back({logits.data<T>() + first * tags, (IsPadded(ctx) ? batch : 1) * tags,
                          rows[i].length, std::move(labels[i]), grad + i * tags, batch * tags});
  }
  return alignments;
}

template <typename T>
absl::Status WarpCtc(KernelContext& ctx) {
  const Shape shape = GradShape(ctx);
  std::optional<Workspace> own_grad;
  T* grad = nullptr;
  if (Tensor* out = ctx.optional_output(kGrad)) {
    grad = out->mutable_data<T>();
  } else {
    INTERP_ASSIGN_OR_RETURN(own_grad,
                            ctx.workspace(static_cast<size_t>(shape.numel()) * sizeof(T)));
    grad = own_grad->template data<T>();
  }
  std::fill_n(grad, shape.numel(), T{0});
  INTERP_ASSIGN_OR_RETURN(const std::vector<Alignment<T>> alignments, Alignments<T>(ctx, grad));
  int64_t size = 0;
  for (const Alignment<T>& a : alignments) {
    if (a.Fits()) size = std::max(size, ForwardBackward<T>::ScratchSize(a.length, a.positions()));
  }
  T* const loss = ctx.output(kLoss).mutable_data<T>();
  return ForEachSequence<T>(ctx, shape[1], /*grain=*/1, size, [&](int64_t i, T* scratch) {
    ForwardBackward<T> sums(shape[2], scratch);
    loss[i] = alignments[i].Fits() ? sums.Run(alignments[i]) : T{0};
  });
}

INTERP_REGISTER_OP(OpDef{
    .type = "warpctc",
    .inputs = {{"Logits"},
               {"Label", kAnyDType},
               {"LogitsLength", kOptional | kAnyDType},
               {"LabelLength", kOptional | kAnyDType}},
    .outputs = {{"Loss"}, {"WarpCTCGrad", kOptional}},
    .parse = ParseAttrs<WarpCtcAttrs, ReadWarpCtc>,
    .infer = InferWarpCtc,
    .kernels = {{DType::kFloat32, WarpCtc<float>}, {DType::kFloat64, WarpCtc<double>}},
    .gradient = {.inputs = {"WarpCTCGrad", "Logits", "Loss@GRAD", "LogitsLength"},
                 .outputs = {"Logits@GRAD"}},
});

}  // namespace
}  // namespace interp::crf
