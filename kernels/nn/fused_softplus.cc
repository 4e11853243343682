// fused_softplus: activation(log(1 + e^(beta X)) / beta), as Paddle's oneDNN passes fuse it; like
// oneDNN it knows no threshold.
#include <algorithm>
#include <cmath>

#include "core/op_def.h"
#include "kernels/nn/fused_activation.h"
#include "kernels/util/parallel_for.h"
#include "kernels/util/vector_math.h"

namespace interp::nn {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

struct Attrs {
  float beta = 1;
  FusedActivation activation;
};

Attrs ReadAttrs(AttrReader& reader) {
  const Attrs attrs = {reader.Float("beta", 1), ReadActivation(reader, "fuse_activation")};
  if (attrs.beta == 0) reader.Fail("attribute 'beta' is 0");
  return attrs;
}

absl::Status Infer(InferContext& ctx) {
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

absl::Status Softplus(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<Attrs>();
  const float* const x = ctx.input(kX).data<float>();
  float* const out = ctx.output(kOut).mutable_data<float>();
  ParallelFor(ctx.num_threads(), ctx.output(kOut).numel(), kElementwiseGrain,
              [=, &attrs](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const float scaled = attrs.beta * x[i];
                  // Without overflow.
                  const float curve = std::max(scaled, 0.0F) + Log1p(Exp(-std::abs(scaled)));
                  out[i] = curve / attrs.beta;
                }
                ApplyActivation(attrs.activation, out + begin, end - begin);
              });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "fused_softplus",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<Attrs, ReadAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, Softplus}},
    .inplace = {{kX, kOut}},
});

}  // namespace
}  // namespace interp::nn
