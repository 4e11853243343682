// repeat_interleave: Out = X with each slice along `dim` repeated `Repeats` times, or as often as
// RepeatsTensor says for it. X@GRAD = the sums of Out@GRAD over the repeats.
#include <vector>

#include "core/op_def.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/indices.h"
#include "kernels/util/lines.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kRepeats = 1;
constexpr int kOut = 0;

struct RepeatAttrs {
  int64_t repeats = 1;
  int64_t dim = 0;
};

RepeatAttrs ReadRepeatAttrs(AttrReader& reader) {
  return {reader.Int("Repeats", 1), reader.Int("dim", 0)};
}

// How often each slice of X is there.
absl::StatusOr<std::vector<int64_t>> CountsOf(const OpContext& ctx, int64_t length) {
  const Tensor* const tensor = ctx.optional_input(kRepeats);
  // An axis of a tensor without elements may be of any length.
  constexpr int64_t kMostEmptySlices = 1 << 20;
  if (length > kMostEmptySlices && ctx.input(kX).numel() == 0) {
    return ResourceExhausted("the axis has ", length, " slices without elements, at most ",
                             kMostEmptySlices, " are repeated");
  }
  std::vector<int64_t> counts(static_cast<size_t>(length), ctx.attrs<RepeatAttrs>().repeats);
  if (tensor != nullptr) {
    INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> given, InferContext::Integers(*tensor));
    if (tensor->shape.rank() != 1 || (given.size() != 1 && given.size() != counts.size())) {
      return InvalidArgument("'RepeatsTensor' is ", DescribeType(*tensor),
                             ", expected a vector of 1 or ", length, " elements");
    }
    for (size_t i = 0; i < counts.size(); ++i) counts[i] = given[given.size() == 1 ? 0 : i];
  }
  for (const int64_t count : counts) {
    if (count >= 0) continue;
    return InvalidArgument(tensor == nullptr ? "attribute 'Repeats'" : "'RepeatsTensor'",
                           " has the value ", count, ", expected 0 or more");
  }
  return counts;
}

// The shape of Out.
absl::StatusOr<Shape> RepeatedShape(const InferContext& ctx) {
  Shape shape = ctx.input(kX).shape;
  INTERP_ASSIGN_OR_RETURN(const int axis,
                          ResolveAxis(ctx.attrs<RepeatAttrs>().dim, shape.rank(), "dim"));
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> counts, CountsOf(ctx, shape[axis]));
  shape[axis] = 0;
  for (const int64_t count : counts) {
    INTERP_ASSIGN_OR_RETURN(shape[axis], CheckedSum(shape[axis], count));
  }
  return shape;
}

absl::Status InferRepeat(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape shape, RepeatedShape(ctx));
  ctx.SetShape(kOut, shape);
  return absl::OkStatus();
}

absl::Status Repeat(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const Lines lines = LinesAlong(x.shape, ctx.attrs<RepeatAttrs>().dim);
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> counts, CountsOf(ctx, lines.length));
  if (ctx.output(kOut).numel() == 0) return absl::OkStatus();
  std::vector<int64_t> rows;
  for (size_t i = 0; i < counts.size(); ++i) rows.insert(rows.end(), counts[i], i);
  GatherRows(ctx.num_threads(),
             {lines.outer, lines.length, lines.inner * static_cast<int64_t>(SizeOf(x.dtype))},
             x.raw_data(), rows.data(), static_cast<int64_t>(rows.size()),
             ctx.output(kOut).mutable_raw_data());
  return absl::OkStatus();
}

constexpr int kCountFlags = kOptional | kAnyDType | kValueInInfer;

INTERP_REGISTER_OP(OpDef{
    .type = "repeat_interleave",
    .inputs = {{"X"}, {"RepeatsTensor", kCountFlags}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<RepeatAttrs, ReadRepeatAttrs>,
    .infer = InferRepeat,
    .kernels = {{DType::kUndefined, Repeat}},
    .gradient = {.inputs = {"X", "RepeatsTensor", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

constexpr int kOutGrad = 2;
constexpr int kXGrad = 0;

absl::Status InferRepeatGrad(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape shape, RepeatedShape(ctx));
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kOutGrad, "Out@GRAD", shape));
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

template <typename T>
absl::Status RepeatGrad(KernelContext& ctx) {
  const Shape& shape = ctx.input(kX).shape;
  const Lines lines = LinesAlong(shape, ctx.attrs<RepeatAttrs>().dim);
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> counts, CountsOf(ctx, lines.length));
  if (shape.numel() == 0) return absl::OkStatus();
  const T* grad = ctx.input(kOutGrad).data<T>();
  T* out = ctx.output(kXGrad).mutable_data<T>();
  for (int64_t n = 0; n < lines.outer * lines.length; ++n, out += lines.inner) {
    std::fill(out, out + lines.inner, T{0});
    for (int64_t i = 0; i < counts[n % lines.length]; ++i, grad += lines.inner) {
      for (int64_t k = 0; k < lines.inner; ++k) out[k] += grad[k];
    }
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "repeat_interleave_grad",
    .inputs = {{"X", kNoNeedBuffer}, {"RepeatsTensor", kCountFlags}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<RepeatAttrs, ReadRepeatAttrs>,
    .infer = InferRepeatGrad,
    .kernels = {{DType::kFloat32, RepeatGrad<float>}, {DType::kFloat64, RepeatGrad<double>}},
});

}  // namespace
}  // namespace interp
