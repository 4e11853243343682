// broadcast_tensors: each Out = its X, repeated to the shape that all X broadcast to. Each X@GRAD =
// the sums of its Out@GRAD over what was repeated.
#include <algorithm>
#include <array>
#include <vector>

#include "core/op_def.h"
#include "kernels/util/all_present.h"
#include "kernels/util/data_mover.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

absl::StatusOr<Shape> CommonShape(const OpContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckAllPresent(ctx.inputs(kX), "X"));
  Shape common;
  for (const Tensor* x : ctx.inputs(kX)) {
    const int rank = std::max(common.rank(), x->shape.rank());
    Shape both;
    for (int i = rank; i > 0; --i) {
      const int64_t a = i <= common.rank() ? common.back(i) : 1;
      const int64_t b = i <= x->shape.rank() ? x->shape.back(i) : 1;
      if (a != b && a != 1 && b != 1) {
        return InvalidArgument("an input 'X' has shape ", ToString(x->shape),
                               ", which does not broadcast with ", ToString(common));
      }
      both.push_back(a == 1 ? b : a);
    }
    common = both;
  }
  return common;
}

// Strides of an operand along the dimensions of a tensor of `rank` dimensions; 0 where it repeats.
Strides RepeatedStrides(const Tensor& x, int rank) {
  const Strides own = StridesOf(x);
  const int added = rank - x.shape.rank();
  Strides strides = {};
  for (int i = 0; i < x.shape.rank(); ++i) strides[added + i] = x.shape[i] == 1 ? 0 : own[i];
  return strides;
}

absl::Status InferBroadcast(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape common, CommonShape(ctx));
  if (ctx.outputs(kOut).size() != ctx.inputs(kX).size()) {
    return InvalidArgument("there are ", ctx.inputs(kX).size(), " inputs 'X' and ",
                           ctx.outputs(kOut).size(), " outputs 'Out', expected as many");
  }
  for (size_t i = 0; i < ctx.outputs(kOut).size(); ++i) {
    Tensor* const out = ctx.outputs(kOut)[i];
    if (out == nullptr) continue;
    out->shape = common;
    ShareLod(*ctx.inputs(kX)[i], *out);
  }
  return absl::OkStatus();
}

absl::Status BroadcastAll(KernelContext& ctx) {
  for (size_t i = 0; i < ctx.inputs(kX).size(); ++i) {
    const Tensor& x = *ctx.inputs(kX)[i];
    Tensor* const out = ctx.outputs(kOut)[i];
    if (out == nullptr || out->numel() == 0) continue;
    const int rank = out->shape.rank();
    const Strides from = RepeatedStrides(x, rank);
    const Strides to = StridesOf(*out);
    CopyDims dims;
    for (int d = 0; d < rank; ++d) dims.push_back({out->shape[d], from[d], to[d]});
    INTERP_RETURN_IF_ERROR(CopyStrided(ctx, dims, {x}, {*out}));
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "broadcast_tensors",
    .inputs = {{"X", kVariadic}},
    .outputs = {{"Out", kVariadic}},
    .infer = InferBroadcast,
    .kernels = MoveKernels(BroadcastAll),
    .gradient = {.inputs = {"X", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

constexpr int kOutGrad = 1;
constexpr int kXGrad = 0;

absl::Status InferBroadcastGrad(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape common, CommonShape(ctx));
  const auto inputs = ctx.inputs(kX);
  const auto gradients = ctx.inputs(kOutGrad);
  const auto outputs = ctx.outputs(kXGrad);
  bool fits = gradients.size() == inputs.size() && outputs.size() <= inputs.size();
  for (size_t i = 0; fits && i < gradients.size(); ++i) {
    fits = gradients[i] != nullptr && gradients[i]->shape == common;
  }
  if (!fits) {
    return InvalidArgument("expected one 'Out@GRAD' of shape ", ToString(common), " for each 'X'");
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] == nullptr) continue;
    outputs[i]->shape = inputs[i]->shape;
    outputs[i]->lod = inputs[i]->lod;
  }
  return absl::OkStatus();
}

template <typename T>
void SumRepeats(const Tensor& grad, Tensor& x_grad) {
  const Shape& shape = grad.shape;
  const Strides steps = RepeatedStrides(x_grad, shape.rank());
  std::vector<double> sums(static_cast<size_t>(x_grad.numel()), 0);
  std::array<int64_t, kMaxRank> at = {};
  const T* const from = grad.data<T>();
  const int64_t count = grad.numel();
  int64_t to = 0;
  for (int64_t n = 0; n < count; ++n) {
    sums[to] += static_cast<double>(from[n]);
    for (int d = shape.rank() - 1; d >= 0; --d) {
      to += steps[d];
      if (++at[d] < shape[d]) break;
      to -= steps[d] * shape[d];
      at[d] = 0;
    }
  }
  T* const out = x_grad.mutable_data<T>();
  for (size_t i = 0; i < sums.size(); ++i) out[i] = static_cast<T>(sums[i]);
}

template <typename T>
absl::Status BroadcastGrad(KernelContext& ctx) {
  for (size_t i = 0; i < ctx.outputs(kXGrad).size(); ++i) {
    Tensor* const x_grad = ctx.outputs(kXGrad)[i];
    if (x_grad != nullptr) SumRepeats<T>(*ctx.inputs(kOutGrad)[i], *x_grad);
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "broadcast_tensors_grad",
    .inputs = {{"X", kVariadic | kNoNeedBuffer}, {"Out@GRAD", kVariadic}},
    .outputs = {{"X@GRAD", kVariadic | kOptional}},
    .infer = InferBroadcastGrad,
    .kernels = {{DType::kFloat32, BroadcastGrad<float>}, {DType::kFloat64, BroadcastGrad<double>}},
});

}  // namespace
}  // namespace interp
