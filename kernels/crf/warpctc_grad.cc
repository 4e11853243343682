// warpctc_grad: Logits@GRAD = WarpCTCGrad * Loss@GRAD of the sequence, divided by the rows of the
// sequence with norm_by_times. WarpCTCGrad is [steps, batch, tags], see warpctc.cc; the rows of
// Logits are laid out like that, with lengths, or joined, with a LoD.
#include "core/op_def.h"
#include "kernels/crf/ctc_attrs.h"
#include "kernels/crf/sequences.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/parallel_for.h"

namespace interp::crf {
namespace {

constexpr int kLogits = 0;
constexpr int kWarpCtcGrad = 1;
constexpr int kLogitsLength = 2;
constexpr int kLossGrad = 3;
constexpr int kLogitsGrad = 0;

// The shape of WarpCTCGrad that belongs to these logits.
absl::StatusOr<Shape> StepsShape(const InferContext& ctx) {
  const Tensor& logits = ctx.input(kLogits);
  if (ctx.has_input(kLogitsLength)) {
    if (logits.shape.rank() == 3) return logits.shape;
    return InvalidArgument("input 'Logits' has shape ", ToString(logits.shape),
                           ", expected [steps, batch, tags] with 'LogitsLength'");
  }
  INTERP_ASSIGN_OR_RETURN(const Offsets offsets, OnlyLevelOffsets(logits, "Logits"));
  if (logits.shape.rank() != 2) {
    return InvalidArgument("input 'Logits' has shape ", ToString(logits.shape),
                           ", expected [rows, tags] with a LoD");
  }
  return Shape{LongestSequence(offsets), SequenceCount(offsets), logits.shape[1]};
}

absl::Status InferWarpCtcGrad(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape steps, StepsShape(ctx));
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kWarpCtcGrad, "WarpCTCGrad", steps));
  if (ctx.input(kLossGrad).numel() != steps[1]) {
    return InvalidArgument("input 'Loss@GRAD' has shape ", ToString(ctx.input(kLossGrad).shape),
                           ", expected a number for each of ", steps[1], " sequences");
  }
  const Tensor* lengths = ctx.optional_input(kLogitsLength);
  if (lengths != nullptr && lengths->numel() != steps[1]) {
    return InvalidArgument("input 'LogitsLength' has shape ", ToString(lengths->shape),
                           ", expected ", steps[1], " elements");
  }
  ctx.ShareShape(kLogits, kLogitsGrad);
  return absl::OkStatus();
}

// What the gradient of the loss of each sequence is multiplied by.
template <typename T>
absl::StatusOr<std::vector<T>> Factors(const KernelContext& ctx, const Shape& steps) {
  const T* const loss_grad = ctx.input(kLossGrad).data<T>();
  std::vector<T> factors(loss_grad, loss_grad + steps[1]);
  if (!ctx.attrs<WarpCtcGradAttrs>().norm_by_times) return factors;
  std::vector<Sequence> sequences;
  if (const Tensor* lengths = ctx.optional_input(kLogitsLength)) {
    INTERP_ASSIGN_OR_RETURN(sequences, PaddedSequences(*lengths, "LogitsLength", steps[0]));
  } else {
    sequences = LodSequences(ctx.input(kLogits).lod[0]);
  }
  for (int64_t i = 0; i < steps[1]; ++i) {
    factors[i] /= static_cast<T>(std::max<int64_t>(sequences[i].length, 1));
  }
  return factors;
}

template <typename T>
void Scale(const T* x, T factor, int64_t size, T* out) {
  for (int64_t k = 0; k < size; ++k) out[k] = x[k] * factor;
}

template <typename T>
absl::Status WarpCtcGrad(KernelContext& ctx) {
  Tensor* const out = ctx.optional_output(kLogitsGrad);
  if (out == nullptr || out->numel() == 0) return absl::OkStatus();
  const Shape& steps = ctx.input(kWarpCtcGrad).shape;
  const int64_t batch = steps[1];
  const int64_t tags = steps[2];
  INTERP_ASSIGN_OR_RETURN(const std::vector<T> factors, Factors<T>(ctx, steps));
  const T* const x = ctx.input(kWarpCtcGrad).data<T>();
  T* const grad = out->mutable_data<T>();
  const bool padded = ctx.has_input(kLogitsLength);
  const Offsets offsets = padded ? Offsets() : Offsets(ctx.input(kLogits).lod[0]);
  ParallelFor(ctx.num_threads(), steps[0], GrainFor(batch * tags), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      for (int64_t i = 0; i < batch; ++i) {
        if (!padded && t >= offsets[i + 1] - offsets[i]) continue;
        const int64_t row = padded ? t * batch + i : offsets[i] + t;
        Scale(x + (t * batch + i) * tags, factors[i], tags, grad + row * tags);
      }
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "warpctc_grad",
    .inputs = {{"Logits", kNoNeedBuffer},
               {"WarpCTCGrad"},
               {"LogitsLength", kOptional | kAnyDType},
               {"Loss@GRAD"}},
    .outputs = {{"Logits@GRAD", kOptional}},
    .parse = ParseAttrs<WarpCtcGradAttrs, ReadWarpCtcGrad>,
    .infer = InferWarpCtcGrad,
    .kernels = {{DType::kFloat32, WarpCtcGrad<float>}, {DType::kFloat64, WarpCtcGrad<double>}},
});

}  // namespace
}  // namespace interp::crf
