// label_smooth: Out = (1 - epsilon) * X + epsilon * prior, where the prior is PriorDist along the
// last dimension, or the same for all classes without it.
#include "kernels/tensor/label_smooth.h"

#include "core/op_def.h"
#include "kernels/util/data_or_null.h"
#include "kernels/util/parallel_for.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kPriorDist = 1;
constexpr int kOut = 0;

absl::Status InferLabelSmooth(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  if (x.rank() == 0) return InvalidArgument("'X' is 0-D, expected classes as last dimension");
  const Tensor* prior = ctx.optional_input(kPriorDist);
  if (prior != nullptr && prior->numel() != x.back()) {
    return InvalidArgument("'PriorDist' has shape ", ToString(prior->shape), ", expected ",
                           x.back(), " elements");
  }
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

template <typename T>
absl::Status LabelSmooth(KernelContext& ctx) {
  const Tensor& input = ctx.input(kX);
  const int64_t classes = input.shape.back();
  const T epsilon = static_cast<T>(ctx.attrs<LabelSmoothAttrs>().epsilon);
  const T* const x = input.data<T>();
  const Tensor* tensor = ctx.optional_input(kPriorDist);
  const T* const prior = DataOrNull<T>(tensor);
  T* const out = ctx.output(kOut).mutable_data<T>();
  const T uniform = classes == 0 ? T{0} : epsilon / static_cast<T>(classes);
  const int64_t rows = input.shape.numel(0, input.shape.rank() - 1);
  const int64_t grain = GrainFor(classes);
  ParallelFor(ctx.num_threads(), rows, grain, [=](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t i = 0; i < classes; ++i) {
        const T added = prior == nullptr ? uniform : epsilon * prior[i];
        out[r * classes + i] = (T{1} - epsilon) * x[r * classes + i] + added;
      }
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "label_smooth",
    .inputs = {{"X"}, {"PriorDist", kOptional}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<LabelSmoothAttrs, ReadLabelSmoothAttrs>,
    .infer = InferLabelSmooth,
    .kernels = {{DType::kFloat32, LabelSmooth<float>}, {DType::kFloat64, LabelSmooth<double>}},
    .inplace = {{kX, kOut}},
    .gradient = {.inputs = {"Out@GRAD"}, .outputs = {"X@GRAD"}},
});

}  // namespace
}  // namespace interp
