// cumsum: Out[i] = X[0] + ... + X[i] along `axis`; `exclusive` leaves X[i] out, `reverse` starts at
// the end, `flatten` takes the tensor as one line.
#include "kernels/math/cumsum.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kAxisTensor = 1;
constexpr int kOut = 0;

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const CumSumAttrs attrs, CumSumAttrsOf(ctx, kAxisTensor));
  return InferCumSum(ctx, attrs);
}

template <typename T>
absl::Status CumSum(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const CumSumAttrs attrs, CumSumAttrsOf(ctx, kAxisTensor));
  RunCumSum(ctx.num_threads(), attrs, ctx.input(kX).shape, ctx.input(kX).data<T>(),
            ctx.output(kOut).mutable_data<T>());
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "cumsum",
    .inputs = {{"X"}, {"AxisTensor", kOptional | kAnyDType | kValueInInfer, "axis"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<CumSumAttrs, CumSumAttrs::Read>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, CumSum<float>},
                {DType::kFloat64, CumSum<double>},
                {DType::kInt32, CumSum<int32_t>},
                {DType::kInt64, CumSum<int64_t>},
                {DType::kInt16, CumSum<int16_t>}},
    .inplace = {{kX, kOut}},
    .gradient = {.inputs = {"X", "AxisTensor", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

}  // namespace
}  // namespace interp
