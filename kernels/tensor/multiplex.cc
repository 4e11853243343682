// multiplex: row i of Out = row i of the tensor X[Ids[i]].
// multiplex_grad: each X@GRAD has the rows of Out@GRAD that came from it, and zeros.
#include <algorithm>
#include <cstring>

#include "core/op_def.h"
#include "kernels/util/all_present.h"
#include "kernels/util/fill_zero.h"
#include "kernels/util/indices.h"

namespace interp {
namespace {

constexpr int kIds = 0;
constexpr int kX = 1;
constexpr int kOut = 0;

absl::Status CheckCandidates(const InferContext& ctx, int slot, const Shape& ids) {
  INTERP_RETURN_IF_ERROR(CheckAllPresent(ctx.inputs(slot), "X"));
  const Shape& first = ctx.input(slot).shape;
  if (first.rank() < 2) {
    return InvalidArgument("input 'X' has shape ", ToString(first), ", expected rank 2 or more");
  }
  if (ids.rank() != 2 || ids[1] != 1 || ids[0] < first[0]) {
    return InvalidArgument("input 'Ids' has shape ", ToString(ids), ", expected [", first[0],
                           ",1]");
  }
  for (const Tensor* x : ctx.inputs(slot)) {
    if (x->shape == first) continue;
    return InvalidArgument("an input 'X' has shape ", ToString(x->shape), ", expected ",
                           ToString(first));
  }
  return absl::OkStatus();
}

absl::Status InferMultiplex(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckCandidates(ctx, kX, ctx.input(kIds).shape));
  ctx.SetShape(kOut, ctx.input(kX).shape);
  return absl::OkStatus();
}

size_t RowBytes(const Tensor& x) {
  return static_cast<size_t>(x.shape.numel(1, x.shape.rank())) * SizeOf(x.dtype);
}

absl::Status Multiplex(KernelContext& ctx) {
  const auto candidates = ctx.inputs(kX);
  Tensor& out = ctx.output(kOut);
  const size_t bytes = RowBytes(out);
  const Tensor& ids = ctx.input(kIds);
  char* const to = static_cast<char*>(out.mutable_raw_data());
  return WithIndices(ids, "Ids", [&](const auto* values) {
    const int64_t limit = static_cast<int64_t>(candidates.size());
    INTERP_RETURN_IF_ERROR(CheckIndices(values, out.shape[0], limit, "Ids"));
    for (int64_t i = 0; bytes > 0 && i < out.shape[0]; ++i) {
      const char* const from = static_cast<const char*>(candidates[values[i]]->raw_data());
      std::memcpy(to + i * bytes, from + i * bytes, bytes);
    }
    return absl::OkStatus();
  });
}

INTERP_REGISTER_OP(OpDef{
    .type = "multiplex",
    .inputs = {{"Ids", kAnyDType}, {"X", kVariadic}},
    .outputs = {{"Out"}},
    .kernel_dtype = [](const DTypeContext& ctx) { return ctx.input(kX); },
    .infer = InferMultiplex,
    .kernels = {{DType::kUndefined, Multiplex}},
    .gradient = {.inputs = {"Ids", "X", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

constexpr int kOutGrad = 2;
constexpr int kXGrad = 0;

absl::Status InferMultiplexGrad(InferContext& ctx) {
  const Shape& grad = ctx.input(kOutGrad).shape;
  INTERP_RETURN_IF_ERROR(CheckCandidates(ctx, kX, ctx.input(kIds).shape));
  if (grad != ctx.input(kX).shape || ctx.outputs(kXGrad).size() > ctx.inputs(kX).size()) {
    return InvalidArgument("input 'Out@GRAD' has shape ", ToString(grad), ", expected ",
                           ToString(ctx.input(kX).shape), ", and as many outputs 'X@GRAD' as 'X'");
  }
  for (Tensor* x_grad : ctx.outputs(kXGrad)) {
    if (x_grad == nullptr) continue;
    x_grad->shape = grad;
    x_grad->lod.clear();
  }
  return absl::OkStatus();
}

absl::Status MultiplexGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.input(kOutGrad);
  const size_t bytes = RowBytes(grad);
  const auto gradients = ctx.outputs(kXGrad);
  const char* const from = static_cast<const char*>(grad.raw_data());
  return WithIndices(ctx.input(kIds), "Ids", [&](const auto* values) {
    const int64_t limit = static_cast<int64_t>(ctx.inputs(kX).size());
    INTERP_RETURN_IF_ERROR(CheckIndices(values, grad.shape[0], limit, "Ids"));
    for (Tensor* x_grad : gradients) {
      if (x_grad != nullptr) FillZero(ctx.num_threads(), *x_grad);
    }
    for (int64_t i = 0; bytes > 0 && i < grad.shape[0]; ++i) {
      const size_t id = static_cast<size_t>(values[i]);
      Tensor* const x_grad = id < gradients.size() ? gradients[id] : nullptr;
      if (x_grad == nullptr) continue;
      std::memcpy(static_cast<char*>(x_grad->mutable_raw_data()) + i * bytes, from + i * bytes,
                  bytes);
    }
    return absl::OkStatus();
  });
}

INTERP_REGISTER_OP(OpDef{
    .type = "multiplex_grad",
    .inputs = {{"Ids", kAnyDType}, {"X", kVariadic | kNoNeedBuffer}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD", kVariadic | kOptional}},
    .kernel_dtype = [](const DTypeContext& ctx) { return ctx.input(kOutGrad); },
    .infer = InferMultiplexGrad,
    .kernels = {{DType::kFloat32, MultiplexGrad}, {DType::kFloat64, MultiplexGrad}},
});

}  // namespace
}  // namespace interp
