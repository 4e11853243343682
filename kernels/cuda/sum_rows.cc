// The row of sum. Selected rows and arrays are summed on the host.
#include "kernels/cuda/row.h"
#include "kernels/cuda/sum.h"

namespace interp::cuda {
namespace {

// Inputs without elements count as absent, as on the host.
absl::Status Row(KernelContext& ctx) {
  Tensor& out = ctx.output(0);
  std::vector<const void*> inputs;
  for (const Tensor* x : ctx.inputs(0)) {
    if (x != nullptr && x->numel() != 0) inputs.push_back(x->raw_data());
  }
  if (inputs.empty()) return absl::OkStatus();  // Out has no elements, too
  return SumTensors(out.dtype, inputs, out.mutable_raw_data(), out.numel(), StreamOf(ctx));
}

INTERP_REGISTER_KERNELS("sum", RowsFor({DType::kFloat32, DType::kFloat64, DType::kFloat16,
                                        DType::kBFloat16, DType::kInt32, DType::kInt64},
                                       Row));

}  // namespace
}  // namespace interp::cuda
