// cross_entropy: Y = -log of X at Label along the last dimension, or with `soft_label` the sum of
// -Label log X along it. X are probabilities.
// cross_entropy2: the first form alone; MatchX is X at Label. Ignored labels give 0.
#include "kernels/loss/cross_entropy.h"

#include "kernels/loss/loss_attrs.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kLabel = 1;
constexpr int kY = 0;
constexpr int kXShape = 1;
constexpr int kMatchX = 2;

absl::Status InferCrossEntropy(InferContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const Tensor& label = ctx.input(kLabel);
  INTERP_RETURN_IF_ERROR(CheckLabelShape(x, label, ctx.attrs<CrossEntropyAttrs>().soft_label));
  Shape shape = label.shape;
  if (shape.rank() == x.shape.rank()) shape[shape.rank() - 1] = 1;
  ctx.SetShape(kY, shape);
  ctx.output(kY).lod = x.lod;
  return absl::OkStatus();
}

template <typename T>
absl::Status CrossEntropy(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<CrossEntropyAttrs>();
  const Tensor& x = ctx.input(kX);
  const Tensor& label = ctx.input(kLabel);
  T* const y = ctx.output(kY).mutable_data<T>();
  if (!attrs.soft_label)
    return HardLoss(RowsOf(x.shape), x.data<T>(), label, attrs.ignore_index, y);
  SoftCrossEntropy(ctx.num_threads(), RowsOf(x.shape), x.data<T>(), label.data<T>(), y);
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "cross_entropy",
    .inputs = {{"X"}, {"Label", kAnyDType}},
    .outputs = {{"Y"}},
    .parse = ParseAttrs<CrossEntropyAttrs, CrossEntropyAttrs::Read>,
    .infer = InferCrossEntropy,
    .kernels = {{DType::kFloat32, CrossEntropy<float>}, {DType::kFloat64, CrossEntropy<double>}},
    .gradient = {.inputs = {"X", "Label", "Y@GRAD"}, .outputs = {"X@GRAD"}},
});

// XShape carries the shape of X to the gradient op: it has a 0 at the end and no data.
absl::Status InferCrossEntropy2(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(InferCrossEntropy(ctx));
  Shape shape = ctx.input(kX).shape;
  if (ctx.has_output(kXShape)) {
    if (shape.rank() == kMaxRank) return InvalidArgument("input 'X' has rank ", kMaxRank);
    Shape with_zero = shape;
    with_zero.push_back(0);
    ctx.SetShape(kXShape, with_zero);
  }
  shape[shape.rank() - 1] = 1;
  ctx.SetShape(kMatchX, shape);
  return absl::OkStatus();
}

template <typename T>
absl::Status CrossEntropy2(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  return HardLoss(RowsOf(x.shape), x.data<T>(), ctx.input(kLabel),
                  ctx.attrs<CrossEntropyAttrs>().ignore_index, ctx.output(kY).mutable_data<T>(),
                  ctx.output(kMatchX).mutable_data<T>());
}

INTERP_REGISTER_OP(OpDef{
    .type = "cross_entropy2",
    .inputs = {{"X"}, {"Label", kAnyDType}},
    .outputs = {{"Y"}, {"XShape", kOptional}, {"MatchX"}},
    .parse = ParseAttrs<CrossEntropyAttrs, CrossEntropyAttrs::ReadHard>,
    .infer = InferCrossEntropy2,
    .kernels = {{DType::kFloat32, CrossEntropy2<float>}, {DType::kFloat64, CrossEntropy2<double>}},
    .gradient = {.type = "cross_entropy_grad2",
                 .inputs = {"Label", "MatchX", "XShape", "Y@GRAD"},
                 .outputs = {"X@GRAD"}},
});

}  // namespace
}  // namespace interp
