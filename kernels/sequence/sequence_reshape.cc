// sequence_reshape: the elements of each sequence of X in rows of `new_dim` elements.
#include "core/op_def.h"
#include "kernels/sequence/lod.h"
#include "kernels/util/data_mover.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

struct SequenceReshapeAttrs {
  int64_t new_dim = 0;
};

SequenceReshapeAttrs ReadSequenceReshapeAttrs(AttrReader& reader) {
  const SequenceReshapeAttrs attrs = {reader.Int("new_dim", 0)};
  if (attrs.new_dim < 1) {
    reader.Fail(absl::StrCat("'new_dim' is ", attrs.new_dim, ", expected at least 1"));
  }
  return attrs;
}

absl::Status InferSequenceReshape(InferContext& ctx) {
  const Tensor& x = ctx.input(kX);
  if (x.shape.rank() != 2) {
    return InvalidArgument("input 'X' has shape ", ToString(x.shape), ", expected a matrix");
  }
  INTERP_ASSIGN_OR_RETURN(const Offsets offsets, OnlyLevelOffsets(x, "X"));
  const int64_t width = ctx.attrs<SequenceReshapeAttrs>().new_dim;
  std::vector<int64_t> level;
  level.reserve(offsets.size());
  for (const int64_t offset : offsets) {
    INTERP_ASSIGN_OR_RETURN(const int64_t elements, CheckedProduct(offset, x.shape[1]));
    if (elements % width != 0) {
      return InvalidArgument("sequence ", level.size() - 1, " of 'X' does not fill rows of ", width,
                             " elements, 'new_dim'");
    }
    level.push_back(elements / width);
  }
  ctx.SetShape(kOut, {level.back(), width});
  ctx.output(kOut).lod.push_back(std::move(level));
  return absl::OkStatus();
}

absl::Status SequenceReshape(KernelContext& ctx) {
  return CopyUnlessShared(ctx, ctx.input(kX), ctx.output(kOut));
}

INTERP_REGISTER_OP(OpDef{
    .type = "sequence_reshape",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<SequenceReshapeAttrs, ReadSequenceReshapeAttrs>,
    .infer = InferSequenceReshape,
    .kernels = MoveKernels(SequenceReshape),
    .view = {{kX, kOut}},
    .gradient = {.inputs = {"X", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

}  // namespace
}  // namespace interp
