// mean_iou: of predicted and true classes, OutCorrect counts the hits of each class, and OutWrong
// the misses by both, the predicted and the true one. The overlap of a class is correct / (correct
// + wrong), and OutMeanIou the mean over the classes that occur; without any it is NaN. Counts and
// means of earlier batches are added. (Paddle before 2.6: fluid/operators/mean_iou_op.h.)
#include <vector>

#include "core/op_def.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/indices.h"

namespace interp {
namespace {

constexpr int kPredictions = 0;
constexpr int kLabels = 1;
constexpr int kInWrongs = 2;
constexpr int kInCorrects = 3;
constexpr int kInMeanIou = 4;
constexpr int kOutMeanIou = 0;
constexpr int kOutWrong = 1;
constexpr int kOutCorrect = 2;

struct Attrs {
  int64_t num_classes = 0;
};

Attrs ReadAttrs(AttrReader& reader) {
  const Attrs attrs = {reader.Int("num_classes", 0)};
  if (attrs.num_classes <= 0) {
    reader.Fail(
        absl::StrCat("attribute 'num_classes' is ", attrs.num_classes, ", expected more than 0"));
  }
  return attrs;
}

absl::Status CheckEarlier(const InferContext& ctx, int slot, absl::string_view name, DType dtype,
                          int64_t length) {
  for (const Tensor* const earlier : ctx.inputs(slot)) {
    if (earlier != nullptr && earlier->dtype == dtype && earlier->numel() == length) continue;
    return InvalidArgument("input '", name, "' is ",
                           earlier == nullptr ? "missing" : DescribeType(*earlier), ", expected ",
                           Name(dtype), ToString(Shape{length}));
  }
  return absl::OkStatus();
}

absl::Status Infer(InferContext& ctx) {
  const int64_t classes = ctx.attrs<Attrs>().num_classes;
  INTERP_RETURN_IF_ERROR(CheckSameShape(ctx, kLabels, "Labels", kPredictions, "Predictions"));
  INTERP_RETURN_IF_ERROR(CheckEarlier(ctx, kInWrongs, "InWrongs", DType::kInt32, classes));
  INTERP_RETURN_IF_ERROR(CheckEarlier(ctx, kInCorrects, "InCorrects", DType::kInt32, classes));
  INTERP_RETURN_IF_ERROR(CheckEarlier(ctx, kInMeanIou, "InMeanIou", DType::kFloat32, 1));
  ctx.SetShape(kOutMeanIou, {1});
  ctx.SetShape(kOutWrong, {classes});
  ctx.SetShape(kOutCorrect, {classes});
  return absl::OkStatus();
}

// The sums of the arguments of a slot.
template <typename T>
std::vector<T> SumOf(const KernelContext& ctx, int slot, int64_t length) {
  std::vector<T> sum(static_cast<size_t>(length));
  for (const Tensor* const earlier : ctx.inputs(slot)) {
    for (int64_t i = 0; i < length; ++i) sum[i] += earlier->data<T>()[i];
  }
  return sum;
}

float MeanOverlap(const std::vector<int32_t>& wrong, const std::vector<int32_t>& correct) {
  float sum = 0;
  int classes = 0;
  for (size_t i = 0; i < wrong.size(); ++i) {
    const int32_t all = wrong[i] + correct[i];
    if (all == 0) continue;
    sum += static_cast<float>(correct[i]) / static_cast<float>(all);
    if (all > 0) ++classes;
  }
  return sum / static_cast<float>(classes);
}

template <typename T>
absl::Status MeanIou(KernelContext& ctx) {
  const int64_t classes = ctx.attrs<Attrs>().num_classes;
  const int64_t count = ctx.input(kPredictions).numel();
  const T* const predictions = ctx.input(kPredictions).data<T>();
  const T* const labels = ctx.input(kLabels).data<T>();
  INTERP_RETURN_IF_ERROR(CheckIndices(predictions, count, classes, "Predictions"));
  INTERP_RETURN_IF_ERROR(CheckIndices(labels, count, classes, "Labels"));
  std::vector<int32_t> wrong = SumOf<int32_t>(ctx, kInWrongs, classes);
  std::vector<int32_t> correct = SumOf<int32_t>(ctx, kInCorrects, classes);
  const float before = SumOf<float>(ctx, kInMeanIou, 1)[0];
  for (int64_t i = 0; i < count; ++i) {
    if (predictions[i] == labels[i]) {
      ++correct[predictions[i]];
    } else {
      ++wrong[labels[i]];
      ++wrong[predictions[i]];
    }
  }
  // Outputs may be the variables of the earlier counts.
  std::copy(wrong.begin(), wrong.end(), ctx.output(kOutWrong).mutable_data<int32_t>());
  std::copy(correct.begin(), correct.end(), ctx.output(kOutCorrect).mutable_data<int32_t>());
  *ctx.output(kOutMeanIou).mutable_data<float>() = before + MeanOverlap(wrong, correct);
  return absl::OkStatus();
}

void InferTypes(DTypeContext& ctx) {
  ctx.Set(kOutMeanIou, DType::kFloat32);
  ctx.Set(kOutWrong, DType::kInt32);
  ctx.Set(kOutCorrect, DType::kInt32);
}

constexpr int kEarlier = kOptional | kVariadic | kAnyDType;

INTERP_REGISTER_OP(OpDef{
    .type = "mean_iou",
    .inputs = {{"Predictions"},
               {"Labels"},
               {"InWrongs", kEarlier},
               {"InCorrects", kEarlier},
               {"InMeanIou", kEarlier}},
    .outputs = {{"OutMeanIou"}, {"OutWrong"}, {"OutCorrect"}},
    .parse = ParseAttrs<Attrs, ReadAttrs>,
    .infer_dtype = InferTypes,
    .infer = Infer,
    .kernels = {{DType::kInt32, MeanIou<int32_t>}, {DType::kInt64, MeanIou<int64_t>}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
