// maxout: channel c of Out is the maximum of the channels c * groups to (c + 1) * groups - 1 of X.
#include "kernels/pool/maxout.h"

#include <algorithm>

#include "core/op_def.h"
#include "kernels/util/parallel_for.h"

namespace interp::nn {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const MaxoutBlocks blocks,
                          ResolveMaxout(ctx.attrs<MaxoutAttrs>(), ctx.input(kX).shape));
  ctx.SetShape(kOut, blocks.out);
  ctx.output(kOut).lod = ctx.input(kX).lod;
  return absl::OkStatus();
}

template <typename T>
absl::Status Maxout(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const MaxoutBlocks blocks,
                          ResolveMaxout(ctx.attrs<MaxoutAttrs>(), ctx.input(kX).shape));
  if (ctx.output(kOut).numel() == 0) return absl::OkStatus();
  const int64_t inner = blocks.inner, groups = blocks.groups;
  const T* const x = ctx.input(kX).data<T>();
  T* const out = ctx.output(kOut).mutable_data<T>();
  const int64_t grain = GrainFor(inner * groups);
  ParallelFor(ctx.num_threads(), blocks.rows, grain, [=](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* const from = x + row * groups * inner;
      T* const to = out + row * inner;
      std::copy_n(from, inner, to);
      for (int64_t g = 1; g < groups; ++g) {
        for (int64_t i = 0; i < inner; ++i) to[i] = std::max(to[i], from[g * inner + i]);
      }
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "maxout",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<MaxoutAttrs, ReadMaxoutAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, Maxout<float>}, {DType::kFloat64, Maxout<double>}},
    .gradient = {.inputs = {"X", "Out", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

}  // namespace
}  // namespace interp::nn
