// cvm: rows that start with a show and a click count. With `use_cvm`, Y = X with log(show + 1) and
// log(click + 1) - log(show + 1) in place of the two; without, Y = X without the two. CVM serves
// the gradient alone.
#include "kernels/tensor/cvm.h"

#include <algorithm>

#include "core/op_def.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kY = 0;

absl::Status InferCvm(InferContext& ctx) {
  const Tensor& x = ctx.input(kX);
  if (x.shape.rank() != 2 || x.shape[1] < kCvmCounts) {
    return InvalidArgument("input 'X' has shape ", ToString(x.shape),
                           ", expected [rows, 2 or more]");
  }
  const bool keeps_counts = ctx.attrs<CvmAttrs>().use_cvm;
  ctx.SetShape(kY, {x.shape[0], keeps_counts ? x.shape[1] : x.shape[1] - kCvmCounts});
  ctx.output(kY).lod = x.lod;
  return absl::OkStatus();
}

template <typename T>
absl::Status Cvm(KernelContext& ctx) {
  const bool use_cvm = ctx.attrs<CvmAttrs>().use_cvm;
  const Tensor& x_tensor = ctx.input(kX);
  const int64_t width = x_tensor.shape[1];
  const T* x = x_tensor.data<T>();
  T* y = ctx.output(kY).mutable_data<T>();
  for (int64_t row = 0; row < x_tensor.shape[0]; ++row, x += width) {
    if (use_cvm) {
      LogCounts(x, y);
      y += kCvmCounts;
    }
    y = std::copy(x + kCvmCounts, x + width, y);
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "cvm",
    .inputs = {{"X"}, {"CVM", kNoNeedBuffer | kAnyDType}},
    .outputs = {{"Y"}},
    .parse = ParseAttrs<CvmAttrs, ReadCvm>,
    .infer = InferCvm,
    .kernels = {{DType::kFloat32, Cvm<float>}, {DType::kFloat64, Cvm<double>}},
    .gradient = {.inputs = {"X", "CVM", "Y@GRAD"}, .outputs = {"X@GRAD"}},
});

}  // namespace
}  // namespace interp
