// Products of float16 matrices: as float. The CPUs that this runs on convert float16, but do not
// compute with it.
#include <optional>

#include "kernels/product/product.h"
#include "kernels/util/convert_elements.h"

namespace interp::nn {
namespace {

absl::StatusOr<Workspace> Widen(const KernelContext& ctx, const float16* from, int64_t count) {
  INTERP_ASSIGN_OR_RETURN(Workspace wide,
                          ctx.workspace(static_cast<size_t>(count) * sizeof(float)));
  ConvertElements(ctx.num_threads(), from, count, wide.data<float>());
  return wide;
}

absl::Status Run(KernelContext& ctx, const Product& p, const float16* x, const float16* y,
                 const float16* bias, float* out) {
  INTERP_ASSIGN_OR_RETURN(const Workspace wide_x, Widen(ctx, x, p.count_x() * p.m * p.k));
  INTERP_ASSIGN_OR_RETURN(const Workspace wide_y, Widen(ctx, y, p.count_y() * p.k * p.n));
  std::optional<Workspace> wide_bias;
  if (bias != nullptr) {
    INTERP_ASSIGN_OR_RETURN(wide_bias, Widen(ctx, bias, p.n));
  }
  return RunProduct<float>(ctx, p, wide_x.data<float>(), wide_y.data<float>(),
                           /*y_constant=*/false,
                           bias == nullptr ? nullptr : wide_bias->data<float>(), out);
}

}  // namespace

template <>
absl::Status RunProduct<float16>(KernelContext& ctx, const Product& product, const float16* x,
                                 const float16* y, bool /*y_constant*/, const float16* bias,
                                 float16* out, const char** method) {
  if (method != nullptr) *method = "as float32";
  const int64_t size = product.count() * product.m * product.n;
  INTERP_ASSIGN_OR_RETURN(const Workspace wide,
                          ctx.workspace(static_cast<size_t>(size) * sizeof(float)));
  INTERP_RETURN_IF_ERROR(Run(ctx, product, x, y, bias, wide.data<float>()));
  ConvertElements(ctx.num_threads(), wide.data<float>(), size, out);
  return absl::OkStatus();
}

absl::Status RunWideProduct(KernelContext& ctx, const Product& product, const float16* x,
                            const float16* y, float* out) {
  return Run(ctx, product, x, y, nullptr, out);
}

}  // namespace interp::nn
