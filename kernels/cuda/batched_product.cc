#include "kernels/cuda/batched_product.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/device/device.h"
#include "core/resource/float32_products.h"
#include "core/resource/place_resources.h"
#include "kernels/cuda/fused_activation.h"
#include "kernels/cuda/row.h"

namespace interp::cuda {
namespace {

// Neighbouring dims of a batch in which all matrices lie in one step.
struct BatchLoop {
  int64_t count = 1;
  int64_t x_step = 0;  // in matrices
  int64_t y_step = 0;
  int64_t out_step = 0;
};

// The longest one first.
std::vector<BatchLoop> LoopsOf(const nn::Product& product) {
  std::vector<BatchLoop> loops;
  int64_t out_step = 1;
  for (int d = product.batch.rank() - 1; d >= 0; out_step *= product.batch[d--]) {
    const BatchLoop loop = {product.batch[d], product.x_steps[d], product.y_steps[d], out_step};
    if (loop.count == 1) continue;
    if (!loops.empty() && loop.x_step == loops.back().x_step * loops.back().count &&
        loop.y_step == loops.back().y_step * loops.back().count) {
      loops.back().count *= loop.count;
    } else {
      loops.push_back(loop);
    }
  }
  if (loops.empty()) loops.emplace_back();
  std::iter_swap(loops.begin(),
                 std::max_element(loops.begin(), loops.end(),
                                  [](const auto& a, const auto& b) { return a.count < b.count; }));
  return loops;
}

absl::StatusOr<const BlasHandle*> BlasOf(const KernelContext& ctx, ProductState& state) {
  if (state.blas == nullptr) {
    INTERP_ASSIGN_OR_RETURN(const Float32Products* const products,
                            Float32Products::Of(ctx.place_resources()));
    state.tf32 = products->as_tf32;
    INTERP_ASSIGN_OR_RETURN(state.blas,
                            ctx.place_resources().GetOrMake<BlasHandle>(
                                absl::StrCat("stream ", ctx.stream().index()), BlasHandle::Make));
  }
  return state.blas;
}

ProductShape ShapeOf(const nn::Product& product, const BatchLoop& loop) {
  return {.m = product.m,
          .n = product.n,
          .k = product.k,
          .trans_x = product.trans_x,
          .trans_y = product.trans_y,
          .count = loop.count,
          .x_step = loop.x_step * product.m * product.k,
          .y_step = loop.y_step * product.k * product.n,
          .out_step = loop.out_step * product.m * product.n,
          .alpha = product.alpha};
}

// Calls the library once for each step of all loops but the first.
absl::Status RunLoops(KernelContext& ctx, const nn::Product& product, ProductShape shape,
                      absl::Span<const BatchLoop> others, const ProductOperands& operands) {
  auto& state = ctx.state<ProductState>();
  INTERP_ASSIGN_OR_RETURN(const BlasHandle* const blas, BlasOf(ctx, state));
  shape.tf32 = state.tf32;
  int64_t calls = 1;
  for (const BatchLoop& loop : others) calls *= loop.count;
  const auto bytes = static_cast<int64_t>(SizeOf(shape.dtype));
  const auto out_bytes = static_cast<int64_t>(SizeOf(shape.out_dtype));
  for (int64_t call = 0; call < calls; ++call) {
    int64_t x = 0;
    int64_t y = 0;
    int64_t out = 0;
    int64_t rest = call;
    for (const BatchLoop& loop : others) {
      const int64_t step = rest % loop.count;
      rest /= loop.count;
      x += step * loop.x_step;
      y += step * loop.y_step;
      out += step * loop.out_step;
    }
    const ProductOperands at = {
        .x = static_cast<const char*>(operands.x) + x * product.m * product.k * bytes,
        .y = static_cast<const char*>(operands.y) + y * product.k * product.n * bytes,
        .bias = operands.bias,
        .out = static_cast<char*>(operands.out) + out * product.m * product.n * out_bytes};
    INTERP_RETURN_IF_ERROR(state.plans.Run(*blas, shape, at, StreamOf(ctx), WorkspaceOf(ctx)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunProduct(KernelContext& ctx, const nn::Product& product, DType dtype,
                        DType out_dtype, const ProductOperands& operands, double beta) {
  nn::Product p = product;
  const int64_t size = p.count() * p.m * p.n;
  if (size == 0) return absl::OkStatus();
  nn::FoldBatch(p);
  const std::vector<BatchLoop> loops = LoopsOf(p);
  ProductShape shape = ShapeOf(p, loops[0]);
  shape.dtype = dtype;
  shape.out_dtype = out_dtype;
  shape.beta = beta;
  shape.bias = operands.bias != nullptr;
  const bool relu = p.activation.kind == nn::ActivationKind::kRelu;
  if (relu) shape.activation = ProductActivation::kRelu;
  INTERP_RETURN_IF_ERROR(RunLoops(ctx, p, shape, absl::MakeConstSpan(loops).subspan(1), operands));
  if (relu || p.activation.kind == nn::ActivationKind::kNone) return absl::OkStatus();
  std::vector<ElementwiseStep> steps;
  AppendActivation(p.activation, steps);
  return Elementwise(out_dtype, steps, {{operands.out, {size}}}, {size}, operands.out,
                     StreamOf(ctx));
}

}  // namespace interp::cuda
