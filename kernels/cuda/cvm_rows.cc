// Rows of cvm and cvm_grad.
#include <optional>

#include "kernels/cuda/cvm.h"
#include "kernels/cuda/number_lists.h"
#include "kernels/cuda/row.h"
#include "kernels/sequence/lod.h"
#include "kernels/tensor/cvm.h"

namespace interp::cuda {
namespace {

// X -> Y.
absl::Status Row(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  Tensor& y = ctx.output(0);
  if (y.numel() == 0) return absl::OkStatus();
  return Cvm(x.dtype,
             {.keeps_counts = ctx.attrs<CvmAttrs>().use_cvm,
              .rows = x.shape[0],
              .width = x.shape[1],
              .x = x.raw_data(),
              .y = y.mutable_raw_data()},
             StreamOf(ctx));
}

// Y@GRAD, X, CVM -> X@GRAD. Of X the shape and the LoD alone are there.
absl::Status GradientRow(KernelContext& ctx) {
  const Tensor& x = ctx.input(1);
  Tensor& x_grad = ctx.output(0);
  if (x_grad.numel() == 0) return absl::OkStatus();
  CvmGradientArguments arguments{.keeps_counts = ctx.attrs<CvmAttrs>().use_cvm,
                                 .rows = x_grad.shape[0],
                                 .width = x_grad.shape[1],
                                 .y_grad = ctx.input(0).raw_data(),
                                 .counts = ctx.input(2).raw_data(),
                                 .x_grad = x_grad.mutable_raw_data()};
  std::optional<NumberLists> numbers;
  if (!x.lod.empty()) {
    INTERP_ASSIGN_OR_RETURN(numbers, NumberLists::Make(ctx, {x.lod.back()}));
    arguments.offsets = numbers->list(0);
    arguments.sequences = SequenceCount(x.lod.back());
  }
  return CvmGradient(x_grad.dtype, arguments, StreamOf(ctx));
}

INTERP_REGISTER_KERNELS("cvm", RowsFor({DType::kFloat32, DType::kFloat64}, Row));
INTERP_REGISTER_KERNELS("cvm_grad", RowsFor({DType::kFloat32, DType::kFloat64}, GradientRow));

}  // namespace
}  // namespace interp::cuda
