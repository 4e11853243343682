// take_along_axis: Result[i, j, ...] = Input[.., Index[i, j, ...], ..], the index standing at
// `Axis`. index_sample: Out[i, j] = X[i, Index[i, j]].
#include "core/op_def.h"
#include "kernels/util/indices.h"
#include "kernels/util/shape_args.h"
#include "kernels/util/strided_copy.h"

namespace interp {
namespace {

constexpr int kInput = 0;
constexpr int kIndex = 1;
constexpr int kOut = 0;

struct TakeAttrs {
  int64_t axis = 0;
};

TakeAttrs ReadTakeAttrs(AttrReader& reader) { return {reader.Long("Axis", 0)}; }
TakeAttrs SampleAttrs(AttrReader&) { return {1}; }

absl::Status InferTake(InferContext& ctx) {
  const Shape& input = ctx.input(kInput).shape;
  const Shape& index = ctx.input(kIndex).shape;
  INTERP_ASSIGN_OR_RETURN(const int axis, ResolveAxis(ctx.attrs<TakeAttrs>().axis, input.rank()));
  bool fits = index.rank() == input.rank();
  for (int i = 0; fits && i < index.rank(); ++i) fits = i == axis || index[i] <= input[i];
  if (!fits) {
    return InvalidArgument("'Index' has shape ", ToString(index), ", expected to fit into ",
                           ToString(input), " but for axis ", axis);
  }
  ctx.SetShape(kOut, index);
  return absl::OkStatus();
}

// Walks Index in memory order; `base` is the input's offset of the position with index 0.
template <typename Element, typename Index>
void Take(const Element* input, const Strides& from, int axis, const Shape& shape,
          const Index* index, Element* out) {
  const int rank = shape.rank();
  const int64_t row = shape.back();
  const int64_t row_step = axis == rank - 1 ? 0 : from[rank - 1];
  const int64_t count = shape.numel();
  std::array<int64_t, kMaxRank> at = {};
  int64_t base = 0;
  for (int64_t n = 0; n < count; n += row) {
    for (int64_t i = 0; i < row; ++i) {
      out[n + i] = input[base + i * row_step + static_cast<int64_t>(index[n + i]) * from[axis]];
    }
    for (int d = rank - 2; d >= 0; --d) {
      const int64_t step = d == axis ? 0 : from[d];
      base += step;
      if (++at[d] < shape[d]) break;
      base -= step * shape[d];
      at[d] = 0;
    }
  }
}

absl::Status TakeAlongAxis(KernelContext& ctx) {
  const Tensor& input = ctx.input(kInput);
  const Tensor& index = ctx.input(kIndex);
  Tensor& out = ctx.output(kOut);
  const int axis = *NormalizeAxis(ctx.attrs<TakeAttrs>().axis, input.shape.rank());
  if (index.numel() == 0) return absl::OkStatus();
  return WithIndices(index, "Index", [&](const auto* values) {
    INTERP_RETURN_IF_ERROR(CheckIndices(values, index.numel(), input.shape[axis], "Index"));
    WithElementSize(input.dtype, [&](auto element) {
      using Element = decltype(element);
      Take(static_cast<const Element*>(input.raw_data()), StridesOf(input), axis, index.shape,
           values, static_cast<Element*>(out.mutable_raw_data()));
    });
    return absl::OkStatus();
  });
}

INTERP_REGISTER_OP(OpDef{
    .type = "take_along_axis",
    .inputs = {{"Input"}, {"Index", kAnyDType}},
    .outputs = {{"Result"}},
    .parse = ParseAttrs<TakeAttrs, ReadTakeAttrs>,
    .infer = InferTake,
    .kernels = {{DType::kUndefined, TakeAlongAxis}},
    .gradient = {.inputs = {"Input", "Index", "Result@GRAD"}, .outputs = {"Input@GRAD"}},
});

absl::Status InferIndexSample(InferContext& ctx) {
  const Shape& x = ctx.input(kInput).shape;
  const Shape& index = ctx.input(kIndex).shape;
  if (x.rank() != 2 || index.rank() != 2 || x[0] != index[0]) {
    return InvalidArgument("'X' has shape ", ToString(x), " and 'Index' ", ToString(index),
                           ", expected matrices with as many rows");
  }
  ctx.ShareShape(kIndex, kOut);
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "index_sample",
    .inputs = {{"X"}, {"Index", kAnyDType}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<TakeAttrs, SampleAttrs>,
    .infer = InferIndexSample,
    .kernels = {{DType::kUndefined, TakeAlongAxis}},
    .gradient = {.inputs = {"X", "Index", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

}  // namespace
}  // namespace interp
