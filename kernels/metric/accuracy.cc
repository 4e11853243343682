// accuracy: Correct = the samples whose Label is among their Indices, Total = the samples, Accuracy
// = Correct / Total. Out (the scores of the k best) gives but the number of samples and k.
#include "core/op_def.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/indices.h"

namespace interp {
namespace {

constexpr int kOut = 0;
constexpr int kIndices = 1;
constexpr int kLabel = 2;
constexpr int kAccuracy = 0;
constexpr int kCorrect = 1;
constexpr int kTotal = 2;

void InferDTypes(DTypeContext& ctx) {
  ctx.Set(kAccuracy, DType::kFloat32);
  ctx.Set(kCorrect, DType::kInt32);
  ctx.Set(kTotal, DType::kInt32);
}

absl::Status InferAccuracy(InferContext& ctx) {
  const Shape& out = ctx.input(kOut).shape;
  const Shape& label = ctx.input(kLabel).shape;
  if (out.rank() != 2) {
    return InvalidArgument("input 'Out' has shape ", ToString(out), ", expected [samples,k]");
  }
  INTERP_RETURN_IF_ERROR(CheckSameShape(ctx, kIndices, "Indices", kOut, "Out"));
  if (label.rank() == 0 || label[0] < out[0] || label.numel() < out[0]) {
    return InvalidArgument("input 'Label' has shape ", ToString(label), ", expected ", out[0],
                           " labels");
  }
  for (const int slot : {kAccuracy, kCorrect, kTotal}) ctx.SetShape(slot, {});
  return absl::OkStatus();
}

template <typename Index, typename Label>
absl::StatusOr<int32_t> CountCorrect(const Shape& shape, const Index* indices,
                                     const Label* labels) {
  int32_t correct = 0;
  for (int64_t i = 0; i < shape[0]; ++i) {
    if (labels[i] < 0) {
      return InvalidArgument("'Label' has the value ", labels[i], " at position ", i,
                             ", expected 0 or more");
    }
    bool found = false;
    for (int64_t j = 0; j < shape[1]; ++j) {
      found |= int64_t{indices[i * shape[1] + j]} == int64_t{labels[i]};
    }
    correct += found ? 1 : 0;
  }
  return correct;
}

absl::Status Accuracy(KernelContext& ctx) {
  const Shape& shape = ctx.input(kOut).shape;
  const Tensor& label = ctx.input(kLabel);
  const Tensor& index = ctx.input(kIndices);
  return WithIndices(index, "Indices", [&](const auto* indices) {
    return WithIndices(label, "Label", [&](const auto* labels) -> absl::Status {
      INTERP_ASSIGN_OR_RETURN(const int32_t correct, CountCorrect(shape, indices, labels));
      const auto total = static_cast<int32_t>(shape[0]);
      *ctx.output(kCorrect).mutable_data<int32_t>() = correct;
      *ctx.output(kTotal).mutable_data<int32_t>() = total;
      *ctx.output(kAccuracy).mutable_data<float>() =
          total == 0 ? 0.0f : static_cast<float>(correct) / static_cast<float>(total);
      return absl::OkStatus();
    });
  });
}

INTERP_REGISTER_OP(OpDef{
    .type = "accuracy",
    .inputs = {{"Out", kNoNeedBuffer}, {"Indices", kAnyDType}, {"Label", kAnyDType}},
    .outputs = {{"Accuracy"}, {"Correct"}, {"Total"}},
    .infer_dtype = InferDTypes,
    .infer = InferAccuracy,
    .kernels = {{DType::kFloat32, Accuracy}, {DType::kFloat64, Accuracy}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
