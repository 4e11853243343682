// index_add: Out = X, with slice i of AddValue along `axis` added to slice Index[i].
// index_add_grad: X@GRAD = Out@GRAD, AddValue@GRAD = the slices of Out@GRAD that Index names.
#include "core/op_def.h"
#include "kernels/util/arithmetic.h"
#include "kernels/util/copy.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/indices.h"
#include "kernels/util/lines.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kIndex = 1;
constexpr int kAddValue = 2;
constexpr int kOut = 0;

struct IndexAddAttrs {
  int64_t axis = 0;
};

IndexAddAttrs ReadIndexAddAttrs(AttrReader& reader) { return {reader.Long("axis", 0)}; }

absl::Status CheckAdded(const IndexAddAttrs& attrs, const Shape& x, const Shape& index,
                        const Shape& added) {
  INTERP_ASSIGN_OR_RETURN(const int axis, ResolveAxis(attrs.axis, x.rank()));
  if (index.rank() != 1) {
    return InvalidArgument("'Index' has shape ", ToString(index), ", expected a vector");
  }
  Shape expected = x;
  expected[axis] = index[0];
  if (added == expected) return absl::OkStatus();
  return InvalidArgument("'AddValue' has shape ", ToString(added), ", expected ",
                         ToString(expected));
}

absl::Status InferIndexAdd(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckAdded(ctx.attrs<IndexAddAttrs>(), ctx.input(kX).shape,
                                    ctx.input(kIndex).shape, ctx.input(kAddValue).shape));
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

// Threads share out what lies in front of the axis, so that repeated indices add up in order.
template <typename T>
absl::Status IndexAdd(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const Tensor& index = ctx.input(kIndex);
  const int axis = *NormalizeAxis(ctx.attrs<IndexAddAttrs>().axis, x.shape.rank());
  const Lines lines = LinesAlong(x.shape, axis);
  const T* const added = ctx.input(kAddValue).data<T>();
  T* const out = ctx.output(kOut).mutable_data<T>();
  return WithIndices(index, "Index", [&](const auto* values) {
    const int64_t count = index.numel();
    INTERP_RETURN_IF_ERROR(CheckIndices(values, count, lines.length, "Index"));
    CopyUnlessShared(x, ctx.output(kOut));
    if (ctx.input(kAddValue).numel() == 0) return absl::OkStatus();
    ParallelFor(ctx.num_threads(), lines.outer, GrainFor(count * lines.inner),
                [=](int64_t begin, int64_t end) {
                  for (int64_t n = begin * count; n < end * count; ++n) {
                    const T* const from = added + n * lines.inner;
                    const int64_t row = n / count * lines.length + values[n % count];
                    T* const to = out + row * lines.inner;
                    for (int64_t i = 0; i < lines.inner; ++i) to[i] = WrapAdd(to[i], from[i]);
                  }
                });
    return absl::OkStatus();
  });
}

INTERP_REGISTER_OP(OpDef{
    .type = "index_add",
    .inputs = {{"X"}, {"Index", kAnyDType}, {"AddValue"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<IndexAddAttrs, ReadIndexAddAttrs>,
    .infer = InferIndexAdd,
    .kernels = {{DType::kFloat32, IndexAdd<float>},
                {DType::kFloat64, IndexAdd<double>},
                {DType::kInt32, IndexAdd<int32_t>},
                {DType::kInt64, IndexAdd<int64_t>}},
    .inplace = {{kX, kOut}},
    .gradient = {.inputs = {"Index", "AddValue", "Out@GRAD"},
                 .outputs = {"X@GRAD", "AddValue@GRAD"}},
});

constexpr int kOutGrad = 0;
constexpr int kGradIndex = 1;
constexpr int kGradAddValue = 2;
constexpr int kXGrad = 0;
constexpr int kAddValueGrad = 1;

absl::Status InferIndexAddGrad(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckAdded(ctx.attrs<IndexAddAttrs>(), ctx.input(kOutGrad).shape,
                                    ctx.input(kGradIndex).shape, ctx.input(kGradAddValue).shape));
  ctx.ShareShape(kOutGrad, kXGrad);
  ctx.ShareShape(kGradAddValue, kAddValueGrad);
  return absl::OkStatus();
}

absl::Status IndexAddGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.input(kOutGrad);
  const Tensor& index = ctx.input(kGradIndex);
  const int axis = *NormalizeAxis(ctx.attrs<IndexAddAttrs>().axis, grad.shape.rank());
  const Lines lines = LinesAlong(grad.shape, axis);
  return WithIndices(index, "Index", [&](const auto* values) {
    INTERP_RETURN_IF_ERROR(CheckIndices(values, index.numel(), lines.length, "Index"));
    if (Tensor* const added = ctx.optional_output(kAddValueGrad)) {
      const int64_t row_bytes = lines.inner * static_cast<int64_t>(SizeOf(grad.dtype));
      if (added->numel() > 0) {
        GatherRows(ctx.num_threads(), {lines.outer, lines.length, row_bytes}, grad.raw_data(),
                   values, index.numel(), added->mutable_raw_data());
      }
    }
    if (Tensor* const x = ctx.optional_output(kXGrad)) CopyUnlessShared(grad, *x);
    return absl::OkStatus();
  });
}

INTERP_REGISTER_OP(OpDef{
    .type = "index_add_grad",
    .inputs = {{"Out@GRAD"}, {"Index", kAnyDType}, {"AddValue", kNoNeedBuffer}},
    .outputs = {{"X@GRAD", kOptional}, {"AddValue@GRAD", kOptional}},
    .parse = ParseAttrs<IndexAddAttrs, ReadIndexAddAttrs>,
    .infer = InferIndexAddGrad,
    .kernels = {{DType::kFloat32, IndexAddGrad}, {DType::kFloat64, IndexAddGrad}},
});

}  // namespace
}  // namespace interp
