// sequence_expand_grad, sequence_expand_as_grad: the gradient of a row or sequence of X is the sum
// of those of its copies.
#include <algorithm>

#include "core/op_def.h"
#include "kernels/sequence/lod.h"
#include "kernels/sequence/repeat_level.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/parallel_for.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kY = 1;
constexpr int kOutGrad = 2;
constexpr int kXGrad = 0;

// A part of X, which has copies side by side in Out.
struct Part {
  int64_t begin = 0;  // its first row in X
  int64_t rows = 0;
  int64_t out_begin = 0;  // of the first copy in Out
  int64_t copies = 0;
};

// The parts of X: sequences, or rows when it has no LoD. InvalidArgument unless they fit `repeats`
// and Out@GRAD.
absl::StatusOr<std::vector<Part>> Parts(const OpContext& ctx, Offsets repeats, bool by_sequence) {
  const Tensor& x = ctx.input(kX);
  if (x.shape.rank() == 0) return InvalidArgument("input 'X' is a scalar, expected rows");
  Offsets offsets;
  if (by_sequence) {
    INTERP_ASSIGN_OR_RETURN(offsets, OnlyLevelOffsets(x, "X"));
  }
  const int64_t count = by_sequence ? SequenceCount(offsets) : x.shape[0];
  if (count != SequenceCount(repeats)) {
    return InvalidArgument("input 'X' has ", count, " parts, but the LoD of 'Y' has ",
                           SequenceCount(repeats));
  }
  std::vector<Part> parts(count);
  int64_t end = 0;
  for (int64_t i = 0; i < count; ++i) {
    Part& part = parts[i];
    part.begin = by_sequence ? offsets[i] : i;
    part.rows = by_sequence ? offsets[i + 1] - offsets[i] : 1;
    part.copies = repeats[i + 1] - repeats[i];
    part.out_begin = end;
    INTERP_ASSIGN_OR_RETURN(const int64_t rows, CheckedProduct(part.rows, part.copies));
    INTERP_ASSIGN_OR_RETURN(end, CheckedSum(end, rows));
  }
  Shape shape = x.shape;
  shape[0] = end;
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kOutGrad, "Out@GRAD", shape));
  return parts;
}

absl::StatusOr<std::vector<Part>> ExpandParts(const OpContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Offsets repeats, RepeatLevel(ctx, kY));
  return Parts(ctx, repeats, !ctx.input(kX).lod.empty());
}

absl::StatusOr<std::vector<Part>> ExpandAsParts(const OpContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Offsets repeats, OnlyLevelOffsets(ctx.input(kY), "Y"));
  return Parts(ctx, repeats, /*by_sequence=*/false);
}

using PartsOf = absl::StatusOr<std::vector<Part>> (*)(const OpContext&);

template <PartsOf kParts>
absl::Status InferExpandGrad(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(kParts(ctx).status());
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

// out = the sum of `count` times `size` elements
template <typename T>
void SumCopies(const T* copies, int64_t count, int64_t size, T* out) {
  if (count == 0) {
    std::fill_n(out, size, T{0});
    return;
  }
  std::copy_n(copies, size, out);
  for (int64_t k = 1; k < count; ++k) {
    const T* const copy = copies + k * size;
    for (int64_t j = 0; j < size; ++j) out[j] += copy[j];
  }
}

template <typename T, PartsOf kParts>
absl::Status ExpandGrad(KernelContext& ctx) {
  Tensor* const x_grad = ctx.optional_output(kXGrad);
  if (x_grad == nullptr || x_grad->numel() == 0) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(const std::vector<Part> parts, kParts(ctx));
  const int64_t width = RowSize(*x_grad);
  const T* const grad = ctx.input(kOutGrad).data<T>();
  T* const out = x_grad->mutable_data<T>();
  const auto count = std::ssize(parts);
  const int64_t grain = GrainForShare(ctx.input(kOutGrad).numel(), count);
  ParallelFor(ctx.num_threads(), count, grain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const Part& part = parts[i];
      SumCopies(grad + part.out_begin * width, part.copies, part.rows * width,
                out + part.begin * width);
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "sequence_expand_grad",
    .inputs = {{"X", kNoNeedBuffer}, {"Y", kAnyDType | kNoNeedBuffer}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD", kOptional}},
    .parse = ParseAttrs<SequenceExpandAttrs, ReadSequenceExpandAttrs>,
    .infer = InferExpandGrad<ExpandParts>,
    .kernels = {{DType::kFloat32, ExpandGrad<float, ExpandParts>},
                {DType::kFloat64, ExpandGrad<double, ExpandParts>}},
});

INTERP_REGISTER_OP(OpDef{
    .type = "sequence_expand_as_grad",
    .inputs = {{"X", kNoNeedBuffer}, {"Y", kAnyDType | kNoNeedBuffer}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD", kOptional}},
    .infer = InferExpandGrad<ExpandAsParts>,
    .kernels = {{DType::kFloat32, ExpandGrad<float, ExpandAsParts>},
                {DType::kFloat64, ExpandGrad<double, ExpandAsParts>}},
});

}  // namespace
}  // namespace interp
