// meshgrid_grad: X@GRAD[k][i] = the sum of outputs@GRAD[k] over all positions with ik = i.
#include "core/op_def.h"
#include "kernels/util/reduce.h"
#include "kernels/util/sum_of.h"

namespace interp {
namespace {

constexpr int kOutputsGrad = 0;
constexpr int kOutGrad = 1;
constexpr int kX = 2;
constexpr int kXGrad = 0;

// Older programs call the slot Out@GRAD.
absl::Span<const Tensor* const> GradientsOf(const OpContext& ctx) {
  return ctx.inputs(kOutputsGrad).empty() ? ctx.inputs(kOutGrad) : ctx.inputs(kOutputsGrad);
}

absl::Status InferMeshgridGrad(InferContext& ctx) {
  const absl::Span<const Tensor* const> x = ctx.inputs(kX);
  const absl::Span<const Tensor* const> given = GradientsOf(ctx);
  const absl::Span<Tensor* const> wanted = ctx.outputs(kXGrad);
  if (x.size() != given.size() || x.size() != wanted.size()) {
    return InvalidArgument("'X' has ", x.size(), " arguments, there are ", given.size(),
                           " gradients of outputs and ", wanted.size(), " of 'X'");
  }
  for (size_t k = 0; k < x.size(); ++k) {
    if (wanted[k] == nullptr) continue;
    const int dim = static_cast<int>(k);
    const bool fits = x[k] != nullptr && given[k] != nullptr &&
                      given[k]->shape.rank() == static_cast<int>(x.size()) &&
                      given[k]->shape[dim] == x[k]->numel();
    if (!fits) return InvalidArgument("the gradient of output ", k, " does not fit 'X'");
    wanted[k]->shape = x[k]->shape;
    wanted[k]->lod.clear();
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status MeshgridGrad(KernelContext& ctx) {
  const absl::Span<const Tensor* const> given = GradientsOf(ctx);
  for (size_t k = 0; k < given.size(); ++k) {
    Tensor* const x_grad = ctx.outputs(kXGrad)[k];
    if (x_grad == nullptr) continue;
    Tensor vector = *x_grad;  // X may be a scalar
    vector.shape = {x_grad->numel()};
    DimSet reduced;
    for (size_t i = 0; i < given.size(); ++i) reduced.set(i, i != k);
    RunReduce(PlanReduce(*given[k], reduced, vector), ctx.num_threads(), given[k]->data<T>(),
              x_grad->mutable_data<T>(), SumOf<T>(),
              [](double sum, int64_t) { return static_cast<T>(sum); });
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "meshgrid_grad",
    .inputs = {{"outputs@GRAD", kVariadic | kOptional},
               {"Out@GRAD", kVariadic | kOptional},
               {"X", kVariadic | kNoNeedBuffer | kAnyDType | kAnyLayout}},
    .outputs = {{"X@GRAD", kVariadic | kOptional}},
    .infer = InferMeshgridGrad,
    .kernels = {{DType::kFloat32, MeshgridGrad<float>}, {DType::kFloat64, MeshgridGrad<double>}},
});

}  // namespace
}  // namespace interp
