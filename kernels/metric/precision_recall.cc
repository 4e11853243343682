// precision_recall: of class indices beside labels, precision, recall and F1 as means over the
// classes and of all samples together. BatchMetrics is of this batch; AccumMetrics of the states
// StatesInfo brings (true and false positives, true and false negatives by class) with this batch
// added, which AccumStatesInfo holds. The op may update the states in place.
#include <array>

#include "core/op_def.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kMaxProbs = 0;
constexpr int kIndices = 1;
constexpr int kLabels = 2;
constexpr int kWeights = 3;
constexpr int kStatesInfo = 4;
constexpr int kBatchMetrics = 0;
constexpr int kAccumMetrics = 1;
constexpr int kAccumStatesInfo = 2;

constexpr int64_t kTruePositive = 0;
constexpr int64_t kFalsePositive = 1;
constexpr int64_t kTrueNegative = 2;
constexpr int64_t kFalseNegative = 3;
constexpr int64_t kStates = 4;
constexpr int64_t kMetrics = 6;

struct PrecisionRecallAttrs {
  int64_t classes = 0;
};

PrecisionRecallAttrs ReadPrecisionRecallAttrs(AttrReader& reader) {
  const int64_t classes = reader.Int("class_number", 0);
  if (classes < 1) reader.Fail("attribute 'class_number' is below 1");
  return {classes};
}

void InferDTypes(DTypeContext& ctx) {
  for (const int slot : {kBatchMetrics, kAccumMetrics}) ctx.Set(slot, DType::kFloat64);
}

// InvalidArgument unless the input, when there is one, has this dtype and shape.
absl::Status CheckInput(const InferContext& ctx, int slot, absl::string_view name, DType dtype,
                        const Shape& shape) {
  const Tensor* const tensor = ctx.optional_input(slot);
  if (tensor == nullptr || (tensor->dtype == dtype && tensor->shape == shape)) {
    return absl::OkStatus();
  }
  return InvalidArgument("input '", name, "' is ", DescribeType(*tensor), ", expected ",
                         Name(dtype), ToString(shape));
}

absl::Status InferPrecisionRecall(InferContext& ctx) {
  const Tensor& probs = ctx.input(kMaxProbs);
  if (probs.shape.rank() != 2 || probs.shape[1] != 1) {
    return InvalidArgument("input 'MaxProbs' has shape ", ToString(probs.shape),
                           ", expected [samples,1]");
  }
  const Shape states = {ctx.attrs<PrecisionRecallAttrs>().classes, kStates};
  INTERP_RETURN_IF_ERROR(CheckInput(ctx, kIndices, "Indices", DType::kInt32, probs.shape));
  INTERP_RETURN_IF_ERROR(CheckInput(ctx, kLabels, "Labels", DType::kInt32, probs.shape));
  INTERP_RETURN_IF_ERROR(CheckInput(ctx, kWeights, "Weights", probs.dtype, probs.shape));
  INTERP_RETURN_IF_ERROR(CheckInput(ctx, kStatesInfo, "StatesInfo", probs.dtype, states));
  ctx.SetShape(kBatchMetrics, {kMetrics});
  ctx.SetShape(kAccumMetrics, {kMetrics});
  ctx.SetShape(kAccumStatesInfo, states);
  return absl::OkStatus();
}

absl::Status CheckClasses(const Tensor& tensor, absl::string_view name, int64_t classes) {
  const auto* const values = tensor.data<int32_t>();
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    if (values[i] >= 0 && values[i] < classes) continue;
    return InvalidArgument("input '", name, "' has the value ", values[i], " at position ", i,
                           ", expected 0 to ", classes - 1);
  }
  return absl::OkStatus();
}

// Adds the samples to the states. REQUIRES: classes have been checked.
template <typename T>
void AddSamples(const OpContext& ctx, int64_t classes, T* states) {
  const auto* const indices = ctx.input(kIndices).data<int32_t>();
  const auto* const labels = ctx.input(kLabels).data<int32_t>();
  const Tensor* const weights = ctx.optional_input(kWeights);
  for (int64_t i = 0; i < ctx.input(kIndices).numel(); ++i) {
    T* const found = states + indices[i] * kStates;
    T* const wanted = states + labels[i] * kStates;
    const T weight = weights != nullptr ? weights->data<T>()[i] : T{1};
    for (int64_t c = 0; c < classes; ++c) states[c * kStates + kTrueNegative] += weight;
    found[kTrueNegative] -= weight;
    if (found == wanted) {
      found[kTruePositive] += weight;
    } else {
      wanted[kFalseNegative] += weight;
      found[kFalsePositive] += weight;
      wanted[kTrueNegative] -= weight;
    }
  }
}

// hits / (hits + misses); 1 where there is nothing to hit or miss.
template <typename T>
T Share(T hits, T misses) {
  return hits > 0 || misses > 0 ? hits / (hits + misses) : T{1};
}

template <typename T>
T F1(T precision, T recall) {
  return precision > 0 || recall > 0 ? 2 * precision * recall / (precision + recall) : T{0};
}

template <typename T>
void ComputeMetrics(const T* states, int64_t classes, double* metrics) {
  std::array<T, kStates> total = {};
  T precision = 0;
  T recall = 0;
  for (int64_t c = 0; c < classes; ++c, states += kStates) {
    for (int64_t s = 0; s < kStates; ++s) total[s] += states[s];
    precision += Share(states[kTruePositive], states[kFalsePositive]);
    recall += Share(states[kTruePositive], states[kFalseNegative]);
  }
  precision /= static_cast<T>(classes);
  recall /= static_cast<T>(classes);
  metrics[0] = precision;
  metrics[1] = recall;
  metrics[2] = F1(precision, recall);
  precision = Share(total[kTruePositive], total[kFalsePositive]);
  recall = Share(total[kTruePositive], total[kFalseNegative]);
  metrics[3] = precision;
  metrics[4] = recall;
  metrics[5] = F1(precision, recall);
}

template <typename T>
absl::Status PrecisionRecall(KernelContext& ctx) {
  const int64_t classes = ctx.attrs<PrecisionRecallAttrs>().classes;
  INTERP_RETURN_IF_ERROR(CheckClasses(ctx.input(kIndices), "Indices", classes));
  INTERP_RETURN_IF_ERROR(CheckClasses(ctx.input(kLabels), "Labels", classes));
  std::vector<T> batch(static_cast<size_t>(classes * kStates), T{0});
  AddSamples(ctx, classes, batch.data());
  ComputeMetrics(batch.data(), classes, ctx.output(kBatchMetrics).mutable_data<double>());
  const Tensor* const before = ctx.optional_input(kStatesInfo);
  T* const states = ctx.output(kAccumStatesInfo).mutable_data<T>();
  for (size_t i = 0; i < batch.size(); ++i) {
    states[i] = before != nullptr ? batch[i] + before->data<T>()[i] : batch[i];
  }
  ComputeMetrics(states, classes, ctx.output(kAccumMetrics).mutable_data<double>());
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "precision_recall",
    .inputs = {{"MaxProbs", kNoNeedBuffer},
               {"Indices", kAnyDType},
               {"Labels", kAnyDType},
               {"Weights", kOptional},
               {"StatesInfo", kOptional}},
    .outputs = {{"BatchMetrics"}, {"AccumMetrics"}, {"AccumStatesInfo"}},
    .parse = ParseAttrs<PrecisionRecallAttrs, ReadPrecisionRecallAttrs>,
    .infer_dtype = InferDTypes,
    .infer = InferPrecisionRecall,
    .kernels = {{DType::kFloat32, PrecisionRecall<float>},
                {DType::kFloat64, PrecisionRecall<double>}},
    .inplace = {{kStatesInfo, kAccumStatesInfo}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
