// softmax_with_cross_entropy_grad: Logits@GRAD = Loss@GRAD (Softmax - Label), where a hard label is
// 1 at its position and 0 elsewhere; 0 for ignored labels. Without `use_softmax`, where Logits are
// probabilities: -Loss@GRAD Label / Softmax.
#include "kernels/loss/cross_entropy.h"
#include "kernels/loss/softmax_loss.h"
#include "kernels/util/gradient_shape.h"

namespace interp {
namespace {

constexpr int kSoftmax = 0;
constexpr int kLabel = 1;
constexpr int kLossGrad = 2;
constexpr int kLogitsGrad = 0;

absl::Status InferSoftmaxLossGrad(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(
      const Shape loss,
      SoftmaxLossShape(ctx.attrs<SoftmaxLossAttrs>(), ctx.input(kSoftmax), ctx.input(kLabel)));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kLossGrad, "Loss@GRAD", loss));
  ctx.SetShape(kLogitsGrad, ctx.input(kSoftmax).shape);
  return absl::OkStatus();
}

// Calls body(at, n, first line) for each run of neighbours: those of all lines at one position of
// the axis, or where the axis is the last one, those of one line.
template <typename Body>
void ForEachRun(int num_threads, const Lines& lines, const Body& body) {
  const bool columns = lines.inner > 1;
  const int64_t runs = columns ? lines.outer * lines.length : lines.outer;
  const int64_t n = columns ? lines.inner : lines.length;
  ParallelFor(num_threads, runs, GrainFor(n), [&](int64_t begin, int64_t end) {
    for (int64_t run = begin; run < end; ++run) {
      body(run * n, n, columns ? run / lines.length * lines.inner : run);
    }
  });
}

// The gradient of element i from its probability, its label (0 or 1 for hard ones) and the gradient
// of its line; may be written over the probabilities.
template <typename T>
struct OfLogits {
  T operator()(T p, T label, T grad) const { return grad * (p - label); }
};
template <typename T>
struct OfProbabilities {
  T operator()(T p, T label, T grad) const { return label == 0 ? T{0} : -grad * label / p; }
};

template <typename T, typename Slope>
void SoftGrad(int num_threads, const Lines& lines, const T* p, const T* label, const T* grad,
              T* out, const Slope& slope) {
  const int64_t step = lines.inner > 1 ? 1 : 0;
  ForEachRun(num_threads, lines, [=](int64_t at, int64_t n, int64_t line) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      out[at + i] = slope(p[at + i], label[at + i], grad[line + i * step]);
    }
  });
}

// First as if no position were labelled, then that position: it needs the probability, which the
// first step may have written over.
template <typename T, typename Index, typename Slope>
void HardGrad(int num_threads, const Lines& lines, const T* p, const Index* labels, int64_t ignored,
              const T* grad, T* out, const Slope& slope) {
  ParallelFor(num_threads, lines.count(), GrainFor(lines.length), [=](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      const int64_t start = lines.Start(line);
      const bool counts = labels[line] != ignored;
      const int64_t labelled = start + (counts ? labels[line] : 0) * lines.inner;
      const T at_label = slope(p[labelled], T{1}, grad[line]);
      const T g = counts ? grad[line] : T{0};
      int64_t at = start;
#pragma GCC ivdep
      for (int64_t i = 0; i < lines.length; ++i, at += lines.inner) {
        out[at] = slope(p[at], T{0}, g);
      }
      if (counts) out[labelled] = at_label;
    }
  });
}

template <typename T, typename Slope>
absl::Status Run(KernelContext& ctx, const Slope& slope) {
  const auto& attrs = ctx.attrs<SoftmaxLossAttrs>();
  const Tensor& softmax = ctx.input(kSoftmax);
  const Lines lines = LinesAlong(softmax.shape, attrs.axis);
  const T* const p = softmax.data<T>();
  const T* const grad = ctx.input(kLossGrad).data<T>();
  T* const out = ctx.output(kLogitsGrad).mutable_data<T>();
  const Tensor& label = ctx.input(kLabel);
  if (attrs.soft_label) {
    SoftGrad(ctx.num_threads(), lines, p, label.data<T>(), grad, out, slope);
    return absl::OkStatus();
  }
  return WithLabels(label, [&](const auto* labels) {
    INTERP_RETURN_IF_ERROR(CheckLabels(labels, lines.count(), lines.length, attrs.ignore_index));
    HardGrad(ctx.num_threads(), lines, p, labels, attrs.ignore_index, grad, out, slope);
    return absl::OkStatus();
  });
}

template <typename T>
absl::Status SoftmaxLossGrad(KernelContext& ctx) {
  if (ctx.attrs<SoftmaxLossAttrs>().use_softmax) return Run<T>(ctx, OfLogits<T>());
  return Run<T>(ctx, OfProbabilities<T>());
}

INTERP_REGISTER_OP(OpDef{
    .type = "softmax_with_cross_entropy_grad",
    .inputs = {{"Softmax"}, {"Label", kAnyDType}, {"Loss@GRAD"}},
    .outputs = {{"Logits@GRAD"}},
    .parse = ParseAttrs<SoftmaxLossAttrs, SoftmaxLossAttrs::Read>,
    .infer = InferSoftmaxLossGrad,
    .kernels = {{DType::kFloat32, SoftmaxLossGrad<float>},
                {DType::kFloat64, SoftmaxLossGrad<double>}},
    .inplace = {{kSoftmax, kLogitsGrad}},
});

}  // namespace
}  // namespace interp
