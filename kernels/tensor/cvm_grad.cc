// cvm_grad: the first two columns of X@GRAD are CVM, the show and click counts themselves, which is
// no derivative but what Paddle's trainers count with; the others are those of Y@GRAD. CVM has a
// row for each row of X, or where X has a LoD for each of its sequences.
#include <algorithm>

#include "core/op_def.h"
#include "kernels/tensor/cvm.h"

namespace interp {
namespace {

constexpr int kYGrad = 0;
constexpr int kX = 1;
constexpr int kCvm = 2;
constexpr int kXGrad = 0;

absl::Status InferCvmGrad(InferContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const Shape& given = ctx.input(kYGrad).shape;
  if (x.shape.rank() != 2 || x.shape[1] < kCvmCounts) {
    return InvalidArgument("input 'X' has shape ", ToString(x.shape),
                           ", expected [rows, 2 or more]");
  }
  const int64_t left_out = ctx.attrs<CvmAttrs>().use_cvm ? 0 : kCvmCounts;
  if (!(given == Shape{x.shape[0], x.shape[1] - left_out})) {
    return InvalidArgument("'Y@GRAD' has shape ", ToString(given), " for 'X' of shape ",
                           ToString(x.shape));
  }
  INTERP_RETURN_IF_ERROR(CheckLod(x.lod, x.shape));
  const int64_t rows = x.lod.empty() ? x.shape[0] : std::ssize(x.lod.back()) - 1;
  const Shape& counts = ctx.input(kCvm).shape;
  // Row i is that of sequence i; more rows are left over.
  if (counts.rank() != 2 || counts[0] < rows || counts[1] != kCvmCounts) {
    return InvalidArgument("'CVM' has shape ", ToString(counts), ", expected [", rows,
                           " or more,2]");
  }
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

template <typename T>
absl::Status CvmGrad(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const int64_t width = x.shape[1];
  const int64_t skipped = ctx.attrs<CvmAttrs>().use_cvm ? kCvmCounts : 0;
  const T* y_grad = ctx.input(kYGrad).data<T>();
  const T* counts = ctx.input(kCvm).data<T>();
  T* x_grad = ctx.output(kXGrad).mutable_data<T>();
  int64_t sequence = 0;
  for (int64_t row = 0; row < x.shape[0]; ++row) {
    int64_t of = row;
    if (!x.lod.empty()) {
      while (x.lod.back()[sequence + 1] <= row) ++sequence;
      of = sequence;
    }
    x_grad = std::copy_n(counts + of * kCvmCounts, kCvmCounts, x_grad);
    x_grad = std::copy_n(y_grad + skipped, width - kCvmCounts, x_grad);
    y_grad += skipped + width - kCvmCounts;
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "cvm_grad",
    .inputs = {{"Y@GRAD"}, {"X", kNoNeedBuffer | kAnyDType | kAnyLayout}, {"CVM"}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<CvmAttrs, ReadCvm>,
    .infer = InferCvmGrad,
    .kernels = {{DType::kFloat32, CvmGrad<float>}, {DType::kFloat64, CvmGrad<double>}},
});

}  // namespace
}  // namespace interp
