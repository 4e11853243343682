// lookup_table_grad, lookup_table_v2_grad: row i of Out@GRAD is added to the row of W@GRAD that
// Ids[i] names. Selected rows keep them apart: they list the ids and hold Out@GRAD as it is. (As in
// Paddle, the rows of `padding_idx` are left out of a tensor but not of selected rows.)
#include <algorithm>

#include "core/op_def.h"
#include "kernels/tensor/lookup_table.h"
#include "kernels/util/indices.h"
#include "kernels/util/rows.h"

namespace interp {
namespace {

constexpr int kW = 0;
constexpr int kIds = 1;
constexpr int kOutGrad = 2;
constexpr int kWGrad = 0;

bool GivesRows(const OpContext& ctx) { return OutputIsRows(ctx, kWGrad); }

absl::Status Infer(InferContext& ctx) {
  const Shape& w = ctx.input(kW).shape;
  const Shape& ids = ctx.input(kIds).shape;
  const Shape& grad = ctx.input(kOutGrad).shape;
  if (w.rank() != 2) {
    return InvalidArgument("'W' has shape ", ToString(w), ", expected a matrix");
  }
  if (grad.rank() < 1 || grad.back() != w[1] || grad.numel(0, grad.rank() - 1) != ids.numel()) {
    return InvalidArgument("'Out@GRAD' has shape ", ToString(grad), ", expected ", ids.numel(),
                           " rows of ", w[1]);
  }
  if (!ctx.has_output(kWGrad)) return absl::OkStatus();
  ctx.SetShape(kWGrad, GivesRows(ctx) ? Shape{ids.numel(), w[1]} : w);
  return absl::OkStatus();
}

absl::Status GiveRows(KernelContext& ctx) {
  const Tensor& ids = ctx.input(kIds);
  const Tensor& grad = ctx.input(kOutGrad);
  Variable& out = ctx.output_variable(kWGrad);
  const int64_t height = ctx.input(kW).shape[0];
  INTERP_RETURN_IF_ERROR(WithIndices(ids, "Ids", [&](const auto* values) {
    INTERP_RETURN_IF_ERROR(CheckIndices(values, ids.numel(), height, "Ids"));
    out.selected_rows->rows.assign(values, values + ids.numel());
    return absl::OkStatus();
  }));
  out.selected_rows->height = height;
  out.tensor.shape = {ids.numel(), ctx.input(kW).shape[1]};
  out.tensor.dtype = grad.dtype;
  INTERP_RETURN_IF_ERROR(ctx.Allocate(out.tensor));
  if (grad.size_bytes() > 0) {
    std::memcpy(out.tensor.mutable_raw_data(), grad.raw_data(), grad.size_bytes());
  }
  return absl::OkStatus();
}

// Adds row i of `grad` to row ids[i], whose number lies in [begin, end), in the order of i.
template <typename T, typename Index>
void AddRows(const T* grad, const Index* ids, int64_t count, int64_t width, int64_t padding,
             int64_t begin, int64_t end, T* out) {
  std::fill(out + begin * width, out + end * width, T{0});
  for (int64_t i = 0; i < count; ++i, grad += width) {
    const int64_t row = ids[i];
    if (row < begin || row >= end || row == padding) continue;
    T* to = out + row * width;
    for (int64_t j = 0; j < width; ++j) to[j] += grad[j];
  }
}

template <typename T>
absl::Status GiveTensor(KernelContext& ctx) {
  const Tensor& ids = ctx.input(kIds);
  const Tensor& w = ctx.input(kW);
  const int64_t height = w.shape[0];
  const int64_t padding = ctx.attrs<LookupAttrs>().padding_idx;
  const T* grad = ctx.input(kOutGrad).data<T>();
  T* out = ctx.output(kWGrad).mutable_data<T>();
  return WithIndices(ids, "Ids", [&](const auto* values) {
    // Each thread owns a range of rows: what goes to one row is added in the order of the ids.
    for (int64_t i = 0; i < ids.numel(); ++i) {
      if (values[i] == padding && padding >= 0) continue;
      INTERP_RETURN_IF_ERROR(CheckIndices(values + i, 1, height, "Ids"));
    }
    const int64_t work = w.numel() + ctx.input(kOutGrad).numel();
    const int64_t grain = GrainForShare(work, height);
    ParallelFor(ctx.num_threads(), height, grain, [&](int64_t begin, int64_t end) {
      AddRows(grad, values, ids.numel(), w.shape[1], padding, begin, end, out);
    });
    return absl::OkStatus();
  });
}

template <typename T>
absl::Status LookupGrad(KernelContext& ctx) {
  if (!ctx.has_output(kWGrad)) return absl::OkStatus();
  return GivesRows(ctx) ? GiveRows(ctx) : GiveTensor<T>(ctx);
}

OpDef GradDef(absl::string_view type) {
  return OpDef{
      .type = type,
      .inputs = {{"W", kNoNeedBuffer}, {"Ids", kAnyDType}, {"Out@GRAD"}},
      .outputs = {{"W@GRAD", kOptional | kMayBeRows}},
      .parse = ParseAttrs<LookupAttrs, ReadLookupAttrs>,
      .infer = Infer,
      .kernels = {{DType::kFloat32, LookupGrad<float>}, {DType::kFloat64, LookupGrad<double>}},
  };
}

INTERP_REGISTER_OP(GradDef("lookup_table_grad"));
INTERP_REGISTER_OP(GradDef("lookup_table_v2_grad"));

}  // namespace
}  // namespace interp
