// concat: Out = the tensors X one after the other along `axis`.
#include <algorithm>

#include "core/op_def.h"
#include "kernels/util/all_present.h"
#include "kernels/util/data_mover.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kAxisTensor = 1;
constexpr int kOut = 0;

struct ConcatAttrs {
  int64_t axis = 0;
};

ConcatAttrs ReadConcatAttrs(AttrReader& reader) { return {reader.Long("axis", 0)}; }

absl::StatusOr<int> ConcatAxis(const OpContext& ctx, int rank) {
  INTERP_ASSIGN_OR_RETURN(const int64_t axis, ReadInteger(ctx, kAxisTensor, "AxisTensor",
                                                          ctx.attrs<ConcatAttrs>().axis));
  return ResolveAxis(axis, rank);
}

// Joining along rows joins the sequences: every level goes on where the level before it ended.
void AppendLod(const Lod& lod, Lod& out) {
  for (size_t level = 0; level < lod.size(); ++level) {
    const int64_t end = out[level].empty() ? 0 : out[level].back();
    for (size_t i = 1; i < lod[level].size(); ++i) out[level].push_back(end + lod[level][i]);
  }
}

absl::Status InferConcat(InferContext& ctx) {
  const absl::Span<const Tensor* const> inputs = ctx.inputs(kX);
  if (inputs.empty()) return InvalidArgument("'X' has no argument");
  INTERP_RETURN_IF_ERROR(CheckAllPresent(inputs, "X"));
  Shape shape = inputs[0]->shape;
  INTERP_ASSIGN_OR_RETURN(const int axis, ConcatAxis(ctx, shape.rank()));
  bool joins = axis == 0;  // unless an input has no sequences to join
  for (size_t i = 1; i < inputs.size(); ++i) {
    Shape next = inputs[i]->shape;
    if (next.rank() == shape.rank()) next[axis] = shape[axis];
    if (!(next == shape)) {
      return InvalidArgument("'X' argument ", i, " has shape ", ToString(inputs[i]->shape),
                             ", expected that of argument 0, ", ToString(inputs[0]->shape),
                             ", but for axis ", axis);
    }
    INTERP_ASSIGN_OR_RETURN(shape[axis], CheckedSum(shape[axis], inputs[i]->shape[axis]));
    joins &= inputs[i]->lod.size() == inputs[0]->lod.size();
  }
  ctx.output(kOut).shape = shape;
  Lod& lod = ctx.output(kOut).lod;
  lod = inputs[0]->lod;
  for (size_t i = 1; joins && i < inputs.size(); ++i) AppendLod(inputs[i]->lod, lod);
  return absl::OkStatus();
}

// Indices [begin, end) of all inputs along dimension `cut`, which is not `axis`; of all of them
// along all dimensions for a cut of -1.
absl::Status CopySlice(const KernelContext& ctx, int axis, int cut, int64_t begin, int64_t end,
                       Tensor& out) {
  const Strides to = StridesOf(out);
  int64_t offset = cut < 0 ? 0 : begin * to[cut];
  for (const Tensor* x : ctx.inputs(kX)) {
    const Strides from = StridesOf(*x);
    CopyDims dims;
    for (int i = 0; i < x->shape.rank(); ++i) dims.push_back({x->shape[i], from[i], to[i]});
    if (cut >= 0) dims[cut].size = end - begin;
    const int64_t first = cut < 0 ? 0 : begin * from[cut];
    INTERP_RETURN_IF_ERROR(CopyStrided(ctx, dims, {*x, first}, {out, offset}));
    offset += x->shape[axis] * to[axis];
  }
  return absl::OkStatus();
}

// The outermost dimension of several indices, -1 where that is the axis or there is none.
int CutDim(const Tensor& out, int axis) {
  const Strides to = StridesOf(out);
  int outermost = -1;
  for (int i = 0; i < out.shape.rank(); ++i) {
    if (out.shape[i] > 1 && (outermost < 0 || to[i] > to[outermost])) outermost = i;
  }
  return outermost == axis ? -1 : outermost;
}

absl::Status Concat(KernelContext& ctx) {
  Tensor& out = ctx.output(kOut);
  INTERP_ASSIGN_OR_RETURN(const int axis, ConcatAxis(ctx, out.shape.rank()));
  const int cut = CutDim(out, axis);
  if (cut < 0 || MovesOnDevice(out)) return CopySlice(ctx, axis, -1, 0, 0, out);
  // Inputs share lines and pages of the output, which stay in the cache for the next of them.
  constexpr int64_t kBlockBytes = int64_t{128} << 10;
  const int64_t size = out.shape[cut];
  const int64_t bytes = static_cast<int64_t>(out.size_bytes()) / size;
  const int64_t step =
      std::max<int64_t>(kBlockBytes * ctx.num_threads() / std::max<int64_t>(bytes, 1), 1);
  for (int64_t i = 0; i < size; i += step) {
    INTERP_RETURN_IF_ERROR(CopySlice(ctx, axis, cut, i, std::min(i + step, size), out));
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "concat",
    .inputs = {{"X", kVariadic}, {"AxisTensor", kOptional | kAnyDType | kValueInInfer}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<ConcatAttrs, ReadConcatAttrs>,
    .infer = InferConcat,
    .kernels = MoveKernels(Concat),
    .layout = LayoutRule::kFollows,
    .gradient = {.inputs = {"X", "AxisTensor", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

}  // namespace
}  // namespace interp
