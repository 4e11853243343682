// gather_tree: Out = the whole beams of a search, of shape [steps, batch, beams]: from each beam of
// the last step back along Parents, the Ids of all steps.
#include "core/op_def.h"
#include "kernels/util/indices.h"

namespace interp {
namespace {

constexpr int kIds = 0;
constexpr int kParents = 1;
constexpr int kOut = 0;

absl::Status InferGatherTree(InferContext& ctx) {
  const Shape& ids = ctx.input(kIds).shape;
  const Shape& parents = ctx.input(kParents).shape;
  if (ids.rank() != 3 || ids != parents) {
    return InvalidArgument("'Ids' has shape ", ToString(ids), " and 'Parents' ", ToString(parents),
                           ", expected one shape [steps,batch,beams]");
  }
  ctx.SetShape(kOut, ctx.input(kIds).shape);
  return absl::OkStatus();
}

template <typename T>
absl::Status GatherTree(KernelContext& ctx) {
  const Shape& shape = ctx.input(kIds).shape;
  const T* const ids = ctx.input(kIds).data<T>();
  const T* const parents = ctx.input(kParents).data<T>();
  T* const out = ctx.output(kOut).mutable_data<T>();
  if (shape.numel() == 0) return absl::OkStatus();
  const int64_t beams = shape[2];
  const int64_t step = shape[1] * beams;
  // Parents of the first step lead nowhere.
  INTERP_RETURN_IF_ERROR(CheckIndices(parents + step, (shape[0] - 1) * step, beams, "Parents"));
  for (int64_t i = 0; i < step; ++i) {
    const int64_t first = i / beams * beams;
    int64_t at = i;
    for (int64_t t = shape[0] - 1; t >= 0; --t) {
      out[t * step + i] = ids[t * step + at];
      if (t > 0) at = first + static_cast<int64_t>(parents[t * step + at]);
    }
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "gather_tree",
    .inputs = {{"Ids"}, {"Parents"}},
    .outputs = {{"Out"}},
    .infer = InferGatherTree,
    .kernels = {{DType::kInt32, GatherTree<int32_t>}, {DType::kInt64, GatherTree<int64_t>}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
