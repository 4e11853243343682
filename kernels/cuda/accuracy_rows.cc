// The row of accuracy.
#include "kernels/cuda/accuracy.h"
#include "kernels/cuda/row.h"

namespace interp::cuda {
namespace {

absl::Status Row(KernelContext& ctx) {
  constexpr int kOut = 0;
  const Shape& shape = ctx.input(kOut).shape;
  const Tensor& indices = ctx.input(1);
  const Tensor& label = ctx.input(2);
  return Accuracy({.indices = indices.raw_data(),
                   .index_dtype = indices.dtype,
                   .labels = label.raw_data(),
                   .label_dtype = label.dtype,
                   .samples = shape[0],
                   .k = shape[1],
                   .accuracy = ctx.output(0).mutable_data<float>(),
                   .correct = ctx.output(1).mutable_data<int32_t>(),
                   .total = ctx.output(2).mutable_data<int32_t>()},
                  StreamOf(ctx));
}

INTERP_REGISTER_KERNELS("accuracy", RowsFor({DType::kFloat32}, Row));

}  // namespace
}  // namespace interp::cuda
