// c_softmax_with_cross_entropy: softmax_with_cross_entropy whose classes are dealt out over ranks:
// rank r has columns r C to (r + 1) C - 1 of the logits, and Label counts over all of them. Softmax
// has this rank's columns; Loss is the same on all ranks, 0 for labels of `ignore_index`.
// Three small all-reduces: the largest logit of each row, the label's, and the sum of exponentials.
#include <cmath>
#include <vector>

#include "kernels/collective/ring.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/indices.h"

namespace interp {
namespace {

constexpr int kLogits = 0;
constexpr int kLabel = 1;
constexpr int kSoftmax = 0;
constexpr int kLoss = 1;

// Of the gradient.
constexpr int kSoftmaxIn = 0;
constexpr int kLossGrad = 2;
constexpr int kLogitsGrad = 0;

struct LossAttrs {
  RingAttrs ring;
  int64_t ignore_index = -100;
};

LossAttrs ReadLossAttrs(AttrReader& reader) {
  return {.ring = RingAttrs::Read(reader), .ignore_index = reader.Long("ignore_index", -100)};
}

absl::StatusOr<Shape> LossShape(const Tensor& logits, const Tensor& label) {
  Shape shape = logits.shape;
  const int64_t rows = shape.rank() == 0 ? 0 : shape.numel(0, shape.rank() - 1);
  if (shape.rank() == 0 || label.numel() != rows) {
    return InvalidArgument("'Label' is ", DescribeType(label), ", expected one for each row of ",
                           "'Logits', which has shape ", ToString(shape));
  }
  shape[shape.rank() - 1] = 1;
  return shape;
}

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape loss, LossShape(ctx.input(kLogits), ctx.input(kLabel)));
  ctx.ShareShape(kLogits, kSoftmax);
  ctx.SetShape(kLoss, loss);
  return absl::OkStatus();
}

// The column of each row's label in this rank's columns, or -1 where another rank has it; -2 for
// ignored ones.
absl::StatusOr<std::vector<int64_t>> Columns(const Tensor& label, const Communicator& ring,
                                             int64_t classes, int64_t ignore_index) {
  std::vector<int64_t> columns(label.numel());
  const int64_t first = classes * ring.rank();
  INTERP_RETURN_IF_ERROR(WithIndices(label, "Label", [&](const auto* values) {
    for (int64_t i = 0; i < label.numel(); ++i) {
      if (values[i] == ignore_index) {
        columns[i] = -2;
        continue;
      }
      INTERP_RETURN_IF_ERROR(CheckIndices(values + i, 1, classes * ring.size(), "Label"));
      const int64_t column = values[i] - first;
      columns[i] = column >= 0 && column < classes ? column : -1;
    }
    return absl::OkStatus();
  }));
  return columns;
}

template <typename T>
absl::Status AllReduce(Communicator& ring, ReduceKind kind, std::vector<T>& values) {
  return ring.Run({.kind = CommKind::kAllReduce,
                   .dtype = DTypeOf<T>,
                   .reduce = kind,
                   .count = std::ssize(values),
                   .in = values.data(),
                   .out = values.data(),
                   .name = "c_softmax_with_cross_entropy"});
}

template <typename T>
absl::Status SoftmaxLoss(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<LossAttrs>();
  INTERP_ASSIGN_OR_RETURN(Communicator* const ring, FindRing(ctx, attrs.ring));
  const Tensor& logits = ctx.input(kLogits);
  const int64_t classes = logits.shape.back();
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> columns,
                          Columns(ctx.input(kLabel), *ring, classes, attrs.ignore_index));
  const int64_t rows = std::ssize(columns);
  const T* const x = logits.data<T>();
  T* const softmax = ctx.output(kSoftmax).mutable_data<T>();
  T* const loss = ctx.output(kLoss).mutable_data<T>();
  std::vector<T> largest(rows, -std::numeric_limits<T>::infinity());
  for (int64_t i = 0; i < rows * classes; ++i) {
    largest[i / classes] = std::max(largest[i / classes], x[i]);
  }
  INTERP_RETURN_IF_ERROR(AllReduce(*ring, ReduceKind::kMax, largest));
  std::vector<T> of_label(rows, T{0});
  std::vector<T> sums(rows, T{0});
  for (int64_t i = 0; i < rows; ++i) {
    if (columns[i] >= 0) of_label[i] = x[i * classes + columns[i]] - largest[i];
    for (int64_t k = i * classes; k < (i + 1) * classes; ++k) {
      softmax[k] = std::exp(x[k] - largest[i]);
      sums[i] += softmax[k];
    }
  }
  INTERP_RETURN_IF_ERROR(AllReduce(*ring, ReduceKind::kSum, of_label));
  INTERP_RETURN_IF_ERROR(AllReduce(*ring, ReduceKind::kSum, sums));
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t k = i * classes; k < (i + 1) * classes; ++k) softmax[k] /= sums[i];
    loss[i] = columns[i] == -2 ? T{0} : std::log(sums[i]) - of_label[i];
  }
  return absl::OkStatus();
}

absl::Status InferGrad(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape loss, LossShape(ctx.input(kSoftmaxIn), ctx.input(kLabel)));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kLossGrad, "Loss@GRAD", loss));
  ctx.ShareShape(kSoftmaxIn, kLogitsGrad);
  return absl::OkStatus();
}

template <typename T>
absl::Status SoftmaxLossGrad(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<LossAttrs>();
  INTERP_ASSIGN_OR_RETURN(Communicator* const ring, FindRing(ctx, attrs.ring));
  const Tensor& softmax = ctx.input(kSoftmaxIn);
  const int64_t classes = softmax.shape.back();
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> columns,
                          Columns(ctx.input(kLabel), *ring, classes, attrs.ignore_index));
  const T* const p = softmax.data<T>();
  const T* const grad = ctx.input(kLossGrad).data<T>();
  T* const out = ctx.output(kLogitsGrad).mutable_data<T>();
  for (int64_t i = 0; i < std::ssize(columns); ++i) {
    for (int64_t k = 0; k < classes; ++k) {
      const T own = k == columns[i] ? T{1} : T{0};
      const int64_t at = i * classes + k;
      out[at] = columns[i] == -2 ? T{0} : (p[at] - own) * grad[i];
    }
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "c_softmax_with_cross_entropy",
    .inputs = {{"Logits"}, {"Label", kAnyDType}},
    .outputs = {{"Softmax"}, {"Loss"}},
    .parse = ParseAttrs<LossAttrs, ReadLossAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, SoftmaxLoss<float>}, {DType::kFloat64, SoftmaxLoss<double>}},
    .precision = PrecisionRule::kFull,
    .side_effect = true,
    .host_only = true,
    .gradient = {.inputs = {"Softmax", "Label", "Loss@GRAD"}, .outputs = {"Logits@GRAD"}},
});
INTERP_REGISTER_OP(OpDef{
    .type = "c_softmax_with_cross_entropy_grad",
    .inputs = {{"Softmax"}, {"Label", kAnyDType}, {"Loss@GRAD"}},
    .outputs = {{"Logits@GRAD"}},
    .parse = ParseAttrs<LossAttrs, ReadLossAttrs>,
    .infer = InferGrad,
    .kernels = {{DType::kFloat32, SoftmaxLossGrad<float>},
                {DType::kFloat64, SoftmaxLossGrad<double>}},
    .inplace = {{kSoftmaxIn, kLogitsGrad}},
    .host_only = true,
});

}  // namespace
}  // namespace interp
