// add_position_encoding_grad: X@GRAD = alpha * Out@GRAD.
#include "core/op_def.h"
#include "kernels/util/infer_like.h"
#include "kernels/util/parallel_for.h"

namespace interp {
namespace {

constexpr int kOutGrad = 0;
constexpr int kXGrad = 0;

struct EncodingGradAttrs {
  float alpha = 1;
};

EncodingGradAttrs ReadEncodingGradAttrs(AttrReader& reader) { return {reader.Float("alpha", 1)}; }

template <typename T>
absl::Status EncodingGrad(KernelContext& ctx) {
  Tensor* const x_grad = ctx.optional_output(kXGrad);
  if (x_grad == nullptr) return absl::OkStatus();
  const T alpha = static_cast<T>(ctx.attrs<EncodingGradAttrs>().alpha);
  const T* const grad = ctx.input(kOutGrad).data<T>();
  T* const out = x_grad->mutable_data<T>();
  ParallelFor(ctx.num_threads(), x_grad->numel(), kElementwiseGrain,
              [=](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) out[i] = alpha * grad[i];
              });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "add_position_encoding_grad",
    .inputs = {{"Out@GRAD"}},
    .outputs = {{"X@GRAD", kOptional}},
    .parse = ParseAttrs<EncodingGradAttrs, ReadEncodingGradAttrs>,
    .infer = InferLike<kOutGrad, kXGrad>,
    .kernels = {{DType::kFloat32, EncodingGrad<float>}, {DType::kFloat64, EncodingGrad<double>}},
    .inplace = {{kOutGrad, kXGrad}},
});

}  // namespace
}  // namespace interp
