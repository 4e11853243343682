// The row of crf_decoding. Lengths of padded sequences lie on the GPU, so they are not checked.
#include <iterator>
#include <optional>

#include "kernels/cuda/crf_decode.h"
#include "kernels/cuda/number_lists.h"
#include "kernels/cuda/row.h"

namespace interp::cuda {
namespace {

// Emission, Transition, Label, Length -> ViterbiPath.
template <typename T>
absl::Status CrfDecode(KernelContext& ctx) {
  const Tensor& emission = ctx.input(/*slot=*/0);
  const Tensor* const label = ctx.optional_input(/*slot=*/2);
  const Tensor* const length = ctx.optional_input(/*slot=*/3);
  Tensor& path = ctx.output(/*slot=*/0);
  if (path.numel() == 0) return absl::OkStatus();
  CrfDecoding decoding = {.rows = path.numel(),
                          .tags = emission.shape.back(),
                          .emission = emission.raw_data(),
                          .transition = ctx.input(/*slot=*/1).raw_data(),
                          .path = path.mutable_data<int64_t>()};
  if (label != nullptr) {
    decoding.label = label->raw_data();
    decoding.label_dtype = label->dtype;
  }
  std::optional<NumberLists> numbers;
  if (length == nullptr) {
    INTERP_ASSIGN_OR_RETURN(numbers, NumberLists::Make(ctx, {emission.lod[0]}));
    decoding.offsets = numbers->list(0);
    decoding.sequences = std::ssize(emission.lod[0]) - 1;
  } else {
    decoding.sequences = emission.shape[0];
    decoding.steps = emission.shape[1];
    decoding.lengths = length->raw_data();
    decoding.length_dtype = length->dtype;
  }
  const auto scores_bytes = static_cast<size_t>(decoding.sequences * 2 * decoding.tags) * sizeof(T);
  INTERP_ASSIGN_OR_RETURN(const Workspace scores, ctx.workspace(scores_bytes));
  INTERP_ASSIGN_OR_RETURN(const Workspace from,
                          ctx.workspace(static_cast<size_t>(emission.numel()) * sizeof(int32_t)));
  decoding.scores = scores.data();
  decoding.from = from.data<int32_t>();
  return DecodeCrf(emission.dtype, decoding, StreamOf(ctx));
}

INTERP_REGISTER_KERNELS("crf_decoding", RowsFor({DType::kFloat32}, CrfDecode<float>));
INTERP_REGISTER_KERNELS("crf_decoding", RowsFor({DType::kFloat64}, CrfDecode<double>));

}  // namespace
}  // namespace interp::cuda
