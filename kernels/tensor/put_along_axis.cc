// put_along_axis: Result = Input, where the element that Index names along `Axis` takes the element
// of Value at the place of the index: instead of its own (assign), or added, multiplied, averaged
// (mean) or compared (amax, amin) with it and with what else comes to the same place. Without
// Include_self the element of Input itself does not count there.
#include "kernels/tensor/put_along_axis.h"

#include <algorithm>
#include <type_traits>

#include "kernels/util/arithmetic.h"
#include "kernels/util/copy.h"

namespace interp::put_along_axis {
namespace {

constexpr int kInput = 0;
constexpr int kIndex = 1;
constexpr int kValue = 2;
constexpr int kResult = 0;

absl::Status InferPut(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckShapes(ctx.attrs<Attrs>(), ctx.input(kInput).shape,
                                     ctx.input(kIndex).shape, ctx.input(kValue).shape));
  ctx.ShareShape(kInput, kResult);
  return absl::OkStatus();
}

template <typename T>
T Fold(Reduce reduce, T a, T b) {
  switch (reduce) {
    case Reduce::kAssign:
      return b;
    case Reduce::kAdd:
    case Reduce::kMean:
      return WrapAdd(a, b);
    case Reduce::kMultiply:
      return WrapMul(a, b);
    case Reduce::kMax:
      return b > a ? b : a;
    case Reduce::kMin:
      return b < a ? b : a;
  }
  return b;
}

template <typename T, typename Index>
absl::Status Put(KernelContext& ctx, const Index* indices) {
  const Attrs& attrs = ctx.attrs<Attrs>();
  Tensor& result = ctx.output(kResult);
  T* const out = result.mutable_data<T>();
  const Tensor& value = ctx.input(kValue);
  const T* const values = value.data<T>();
  const int axis = *NormalizeAxis(attrs.axis, result.shape.rank());
  const auto walk = [&](const auto& visit) {
    ForEachPut(ctx.input(kIndex), indices, axis, result, value, visit);
  };
  const bool counts = !attrs.include_self || attrs.reduce == Reduce::kMean;
  if (attrs.reduce == Reduce::kAssign || !counts) {
    walk([&](int64_t at, int64_t from) { out[at] = Fold(attrs.reduce, out[at], values[from]); });
    return absl::OkStatus();
  }
  const size_t size = static_cast<size_t>(result.numel());
  INTERP_ASSIGN_OR_RETURN(const Workspace work, ctx.workspace(size * sizeof(int64_t)));
  int64_t* const count = work.data<int64_t>();
  std::fill(count, count + size, attrs.include_self ? 1 : 0);
  walk([&](int64_t at, int64_t from) {
    out[at] = count[at]++ == 0 ? values[from] : Fold(attrs.reduce, out[at], values[from]);
  });
  if (attrs.reduce != Reduce::kMean) return absl::OkStatus();
  // The count of a small integer type's elements may not fit into it.
  using Wide = std::conditional_t<std::is_integral_v<T>, int64_t, T>;
  for (size_t i = 0; i < size; ++i) {
    if (count[i] > 1)
      out[i] = static_cast<T>(static_cast<Wide>(out[i]) / static_cast<Wide>(count[i]));
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status PutAlongAxis(KernelContext& ctx) {
  return WithIndex(ctx, ctx.input(kInput).shape, ctx.input(kIndex), [&](const auto* indices, int) {
    CopyUnlessShared(ctx.input(kInput), ctx.output(kResult));
    return Put<T>(ctx, indices);
  });
}

INTERP_REGISTER_OP(OpDef{
    .type = "put_along_axis",
    .inputs = {{"Input"}, {"Index", kAnyDType}, {"Value"}},
    .outputs = {{"Result"}},
    .parse = ParseAttrs<Attrs, ReadAttrs>,
    .infer = InferPut,
    .kernels = {{DType::kFloat32, PutAlongAxis<float>},
                {DType::kFloat64, PutAlongAxis<double>},
                {DType::kInt32, PutAlongAxis<int32_t>},
                {DType::kInt64, PutAlongAxis<int64_t>},
                {DType::kUInt8, PutAlongAxis<uint8_t>}},
    .inplace = {{kInput, kResult}},
    .gradient = {.inputs = {"Input", "Index", "Value", "Result", "Result@GRAD"},
                 .outputs = {"Input@GRAD", "Value@GRAD"}},
});

}  // namespace
}  // namespace interp::put_along_axis
