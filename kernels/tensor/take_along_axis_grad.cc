// take_along_axis_grad, index_sample_grad: Input@GRAD = 0, plus every element of the output's
// gradient added where Index says that it comes from.
#include "core/op_def.h"
#include "kernels/util/fill_zero.h"
#include "kernels/util/gradient_rows.h"
#include "kernels/util/indices.h"
#include "kernels/util/shape_args.h"
#include "kernels/util/strided_copy.h"

namespace interp {
namespace {

constexpr int kResultGrad = 0;
constexpr int kInput = 1;
constexpr int kIndex = 2;
constexpr int kInputGrad = 0;

struct TakeAttrs {
  int64_t axis = 0;
};

TakeAttrs ReadTakeAttrs(AttrReader& reader) { return {reader.Long("Axis", 0)}; }
TakeAttrs SampleAttrs(AttrReader&) { return {1}; }

absl::Status InferTakeGrad(InferContext& ctx) {
  const Shape& input = ctx.input(kInput).shape;
  const Shape& index = ctx.input(kIndex).shape;
  INTERP_ASSIGN_OR_RETURN(const int axis, ResolveAxis(ctx.attrs<TakeAttrs>().axis, input.rank()));
  bool fits = index.rank() == input.rank() && index == ctx.input(kResultGrad).shape;
  for (int i = 0; fits && i < index.rank(); ++i) fits = i == axis || index[i] <= input[i];
  if (!fits) {
    return InvalidArgument("'Index' has shape ", ToString(index), ", the gradient ",
                           ToString(ctx.input(kResultGrad).shape),
                           ", expected one shape that fits into ", ToString(input),
                           " but for axis ", axis);
  }
  ctx.ShareShape(kInput, kInputGrad);
  return absl::OkStatus();
}

// A walk over Index beside the input.
template <typename T, typename Index>
struct Walk {
  const Shape& shape;  // of Index
  int axis;
  Strides at;  // of Index
  Strides to;  // of the input
  const Index* index;
  const T* gradient;
  T* out;

  // Adds what lies at positions [begin, end) of dimension `d`, all of the later ones.
  void Add(int d, int64_t begin, int64_t end, int64_t from, int64_t base) const {
    const int64_t step = d == axis ? 0 : to[d];
    if (d < shape.rank() - 1) {
      for (int64_t i = begin; i < end; ++i) {
        Add(d + 1, 0, shape[d + 1], from + i * at[d], base + i * step);
      }
      return;
    }
    for (int64_t i = begin; i < end; ++i) {
      out[base + i * step + static_cast<int64_t>(index[from + i]) * to[axis]] += gradient[from + i];
    }
  }
};

// Threads share out the first dimension, unless elements move along it.
template <typename T>
absl::Status TakeGrad(KernelContext& ctx) {
  const Tensor& index = ctx.input(kIndex);
  Tensor& input_grad = ctx.output(kInputGrad);
  const int axis = *NormalizeAxis(ctx.attrs<TakeAttrs>().axis, input_grad.shape.rank());
  FillZero(ctx.num_threads(), input_grad);
  if (index.numel() == 0) return absl::OkStatus();
  return WithIndices(index, "Index", [&](const auto* values) {
    INTERP_RETURN_IF_ERROR(CheckIndices(values, index.numel(), input_grad.shape[axis], "Index"));
    const Walk<T, std::remove_cvref_t<decltype(*values)>> walk = {index.shape,
                                                                  axis,
                                                                  StridesOf(index),
                                                                  StridesOf(input_grad),
                                                                  values,
                                                                  ctx.input(kResultGrad).data<T>(),
                                                                  input_grad.mutable_data<T>()};
    const int64_t length = index.shape[0];
    const int64_t grain = GrainForShare(index.numel(), length);
    ParallelFor(axis == 0 ? 1 : ctx.num_threads(), length, grain,
                [&](int64_t begin, int64_t end) { walk.Add(0, begin, end, 0, 0); });
    return absl::OkStatus();
  });
}

OpDef TakeGradDef(absl::string_view type, absl::string_view input, absl::string_view input_grad,
                  absl::string_view result_grad,
                  absl::StatusOr<ParsedAttrs> (*parse)(AttrReader& reader)) {
  return OpDef{
      .type = type,
      .inputs = {{result_grad},
                 {input, kNoNeedBuffer | kAnyDType | kAnyLayout},
                 {"Index", kAnyDType}},
      .outputs = {{input_grad}},
      .parse = parse,
      .infer = InferTakeGrad,
      .kernels = GradientRows([]<typename T>() -> KernelFn { return TakeGrad<T>; }),
  };
}

INTERP_REGISTER_OP(TakeGradDef("take_along_axis_grad", "Input", "Input@GRAD", "Result@GRAD",
                               ParseAttrs<TakeAttrs, ReadTakeAttrs>));
INTERP_REGISTER_OP(TakeGradDef("index_sample_grad", "X", "X@GRAD", "Out@GRAD",
                               ParseAttrs<TakeAttrs, SampleAttrs>));

}  // namespace
}  // namespace interp
