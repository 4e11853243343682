// Rows of warpctc and warpctc_grad. Offsets lie on the host and go to the GPU with the work;
// lengths of padded sequences and labels lie there, so they are not checked.
#include <optional>

#include "kernels/crf/ctc_attrs.h"
#include "kernels/cuda/ctc.h"
#include "kernels/cuda/number_lists.h"
#include "kernels/cuda/row.h"
#include "kernels/sequence/lod.h"

namespace interp::cuda {
namespace {

// The rows of `logits` with the lengths, or else with offsets, which are list `list` of `numbers`.
CtcRows RowsOf(const Tensor& logits, const Tensor* lengths,
               const std::optional<NumberLists>& numbers) {
  if (lengths != nullptr) {
    return {.batch = logits.shape[1],
            .steps = logits.shape[0],
            .tags = logits.shape[2],
            .lengths = lengths->raw_data(),
            .length_dtype = lengths->dtype};
  }
  const Offsets offsets = logits.lod[0];
  return {.batch = SequenceCount(offsets),
          .steps = LongestSequence(offsets),
          .tags = logits.shape[1],
          .offsets = numbers->list(0)};
}

CtcLabels LabelsOf(const Tensor& label, const Tensor* lengths,
                   const std::optional<NumberLists>& numbers) {
  CtcLabels labels{.data = label.raw_data(), .dtype = label.dtype};
  if (lengths != nullptr) {
    labels.width = label.shape[1];
    labels.lengths = lengths->raw_data();
    labels.length_dtype = lengths->dtype;
  } else {
    labels.width = LongestSequence(label.lod[0]);
    labels.offsets = numbers->list(1);
  }
  return labels;
}

// Logits, Label, LogitsLength, LabelLength -> Loss, WarpCTCGrad.
absl::Status Row(KernelContext& ctx) {
  const Tensor& logits = ctx.input(0);
  const Tensor& label = ctx.input(1);
  const Tensor* const lengths = ctx.optional_input(2);
  std::optional<NumberLists> numbers;
  if (lengths == nullptr) {
    INTERP_ASSIGN_OR_RETURN(numbers, NumberLists::Make(ctx, {logits.lod[0], label.lod[0]}));
  }
  CtcArguments arguments{.rows = RowsOf(logits, lengths, numbers),
                         .labels = LabelsOf(label, ctx.optional_input(3), numbers),
                         .blank = ctx.attrs<crf::WarpCtcAttrs>().blank,
                         .logits = logits.raw_data(),
                         .loss = ctx.output(0).mutable_raw_data()};
  std::optional<Workspace> own_grad;
  if (Tensor* const grad = ctx.optional_output(1)) {
    arguments.grad = grad->mutable_raw_data();
  } else {
    const CtcRows& rows = arguments.rows;
    const auto count = static_cast<size_t>(rows.steps * rows.batch * rows.tags);
    INTERP_ASSIGN_OR_RETURN(own_grad, ctx.workspace(count * SizeOf(logits.dtype)));
    arguments.grad = own_grad->data();
  }
  return Ctc(logits.dtype, arguments, WorkspaceOf(ctx), StreamOf(ctx));
}

// Logits, WarpCTCGrad, LogitsLength, Loss@GRAD -> Logits@GRAD.
absl::Status GradientRow(KernelContext& ctx) {
  const Tensor& logits = ctx.input(0);
  const Tensor* const lengths = ctx.optional_input(2);
  Tensor* const out = ctx.optional_output(0);
  if (out == nullptr || out->numel() == 0) return absl::OkStatus();
  std::optional<NumberLists> numbers;
  if (lengths == nullptr) {
    INTERP_ASSIGN_OR_RETURN(numbers, NumberLists::Make(ctx, {logits.lod[0]}));
  }
  return CtcGradient(out->dtype,
                     {.rows = RowsOf(logits, lengths, numbers),
                      .num_rows = out->numel() / out->shape.back(),
                      .norm_by_times = ctx.attrs<crf::WarpCtcGradAttrs>().norm_by_times,
                      .grad = ctx.input(1).raw_data(),
                      .loss_grad = ctx.input(3).raw_data(),
                      .logits_grad = out->mutable_raw_data()},
                     StreamOf(ctx));
}

INTERP_REGISTER_KERNELS("warpctc", RowsFor({DType::kFloat32, DType::kFloat64}, Row));
INTERP_REGISTER_KERNELS("warpctc_grad", RowsFor({DType::kFloat32, DType::kFloat64}, GradientRow));

}  // namespace
}  // namespace interp::cuda
