// cross_entropy_grad: X@GRAD = -Y@GRAD Label / X, where a hard label is 1 at its position and 0
// elsewhere. cross_entropy_grad2 takes MatchX, X at Label, in place of X. Ignored labels give 0.
#include <algorithm>

#include "kernels/loss/cross_entropy.h"
#include "kernels/loss/loss_attrs.h"
#include "kernels/util/gradient_shape.h"

namespace interp {
namespace {

constexpr int kYGrad = 0;
constexpr int kLabel = 1;
constexpr int kXGrad = 0;

// InvalidArgument unless Y@GRAD has an element per row of X.
absl::Status CheckRows(const OpContext& ctx, const Shape& x) {
  const Shape& grad = ctx.input(kYGrad).shape;
  if (grad.numel() == RowsOf(x).count()) return absl::OkStatus();
  return InvalidArgument("input 'Y@GRAD' has shape ", ToString(grad), ", expected an element per ",
                         "row of 'X' ", ToString(x));
}

// x_grad = 0 but at the labels, where it is -grad / matched(line, position).
template <typename T, typename Matched>
absl::Status HardGrad(KernelContext& ctx, const Lines& lines, int64_t ignored,
                      const Matched& matched) {
  const T* const grad = ctx.input(kYGrad).data<T>();
  T* const x_grad = ctx.output(kXGrad).mutable_data<T>();
  return WithIndices(ctx.input(kLabel), "Label", [&](const auto* labels) {
    INTERP_RETURN_IF_ERROR(CheckLabels(labels, lines.count(), lines.length, ignored));
    ParallelFor(ctx.num_threads(), lines.count(), GrainFor(lines.length),
                [=](int64_t begin, int64_t end) {
                  const int64_t length = lines.length;
                  std::fill(x_grad + begin * length, x_grad + end * length, T{0});
                  for (int64_t line = begin; line < end; ++line) {
                    if (labels[line] == ignored) continue;
                    const int64_t at = line * length + labels[line];
                    x_grad[at] = -grad[line] / matched(line, at);
                  }
                });
    return absl::OkStatus();
  });
}

namespace by_x {

constexpr int kX = 2;

absl::Status Infer(InferContext& ctx) {
  const Tensor& x = ctx.input(kX);
  INTERP_RETURN_IF_ERROR(
      CheckLabelShape(x, ctx.input(kLabel), ctx.attrs<CrossEntropyAttrs>().soft_label));
  INTERP_RETURN_IF_ERROR(CheckRows(ctx, x.shape));
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

template <typename T>
absl::Status Run(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<CrossEntropyAttrs>();
  const Lines lines = RowsOf(ctx.input(kX).shape);
  const T* const x = ctx.input(kX).data<T>();
  if (!attrs.soft_label) {
    return HardGrad<T>(ctx, lines, attrs.ignore_index, [x](int64_t, int64_t at) { return x[at]; });
  }
  const T* const label = ctx.input(kLabel).data<T>();
  const T* const grad = ctx.input(kYGrad).data<T>();
  T* const x_grad = ctx.output(kXGrad).mutable_data<T>();
  ParallelFor(ctx.num_threads(), lines.count(), GrainFor(lines.length),
              [=](int64_t begin, int64_t end) {
                for (int64_t line = begin; line < end; ++line) {
                  const int64_t stop = (line + 1) * lines.length;
                  for (int64_t i = line * lines.length; i < stop; ++i) {
                    x_grad[i] = -grad[line] * label[i] / x[i];
                  }
                }
              });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "cross_entropy_grad",
    .inputs = {{"Y@GRAD"}, {"Label", kAnyDType}, {"X"}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<CrossEntropyAttrs, CrossEntropyAttrs::Read>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, Run<float>}, {DType::kFloat64, Run<double>}},
});

}  // namespace by_x

namespace by_match {

constexpr int kMatchX = 2;
constexpr int kXShape = 3;

// XShape is the shape of X and a 0.
absl::Status Infer(InferContext& ctx) {
  Shape x = ctx.input(kXShape).shape;
  if (x.rank() < 2) return InvalidArgument("input 'XShape' has shape ", ToString(x));
  x.resize(x.rank() - 1);
  INTERP_RETURN_IF_ERROR(CheckRows(ctx, x));
  const int64_t rows = RowsOf(x).count();
  for (const int slot : {kLabel, kMatchX}) {
    if (ctx.input(slot).numel() == rows) continue;
    return InvalidArgument("input '", slot == kLabel ? "Label" : "MatchX", "' has shape ",
                           ToString(ctx.input(slot).shape), " for 'X' ", ToString(x));
  }
  ctx.SetShape(kXGrad, x);
  ctx.output(kXGrad).lod = ctx.input(kYGrad).lod;
  return absl::OkStatus();
}

template <typename T>
absl::Status Run(KernelContext& ctx) {
  const T* const match = ctx.input(kMatchX).data<T>();
  return HardGrad<T>(ctx, RowsOf(ctx.output(kXGrad).shape),
                     ctx.attrs<CrossEntropyAttrs>().ignore_index,
                     [match](int64_t line, int64_t) { return match[line]; });
}

INTERP_REGISTER_OP(OpDef{
    .type = "cross_entropy_grad2",
    .inputs = {{"Y@GRAD"}, {"Label", kAnyDType}, {"MatchX"}, {"XShape", kNoNeedBuffer | kAnyDType}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<CrossEntropyAttrs, CrossEntropyAttrs::ReadHard>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, Run<float>}, {DType::kFloat64, Run<double>}},
});

}  // namespace by_match
}  // namespace
}  // namespace interp
