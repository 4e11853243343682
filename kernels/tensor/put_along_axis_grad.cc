// put_along_axis_grad: Input@GRAD = Result@GRAD, but where an index points, the part that the own
// element has in the result; Value@GRAD = the parts of what was put there. Equal extremes share the
// gradient evenly. Of several assigned elements the last one has it.
#include <algorithm>

#include "kernels/tensor/put_along_axis.h"
#include "kernels/util/fill_zero.h"
#include "kernels/util/gradient_shape.h"

namespace interp::put_along_axis {
namespace {

constexpr int kResultGrad = 0;
constexpr int kInput = 1;
constexpr int kIndex = 2;
constexpr int kValue = 3;
constexpr int kResult = 4;
constexpr int kInputGrad = 0;
constexpr int kValueGrad = 1;

absl::Status InferPutGrad(InferContext& ctx) {
  const Shape& input = ctx.input(kInput).shape;
  INTERP_RETURN_IF_ERROR(
      CheckShapes(ctx.attrs<Attrs>(), input, ctx.input(kIndex).shape, ctx.input(kValue).shape));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kResultGrad, "Result@GRAD", input));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kResult, "Result", input));
  ctx.ShareShape(kInput, kInputGrad);
  ctx.ShareShape(kValue, kValueGrad);
  return absl::OkStatus();
}

// One call: what the walk over Index looks at, by place in Input.
template <typename T>
struct Puts {
  Attrs attrs;
  const T* grad;
  const T* input;
  const T* value;
  const T* result;
  int64_t* count;  // how many share the gradient of an element of the result

  bool compares() const { return attrs.reduce == Reduce::kMax || attrs.reduce == Reduce::kMin; }

  // The elements of Value that count, before any gradient is taken. Of assigned ones, the position
  // of the last.
  void Count(int64_t at, int64_t from) const {
    if (attrs.reduce == Reduce::kAssign) {
      count[at] = from;
    } else if (!compares() || value[from] == result[at]) {
      ++count[at];
    }
  }
  // Whether the element of Input has a part where an index points.
  bool SelfCounts(int64_t at) const {
    if (!attrs.include_self || attrs.reduce == Reduce::kAssign) return false;
    return !compares() || input[at] == result[at];
  }
  int64_t Sharers(int64_t at) const {
    const bool self = compares() ? input[at] == result[at] : attrs.include_self;
    return count[at] + (self ? 1 : 0);
  }
  T OfInput(int64_t at) const {
    if (!SelfCounts(at)) return T{0};
    if (attrs.reduce == Reduce::kAdd) return grad[at];
    if (attrs.reduce == Reduce::kMultiply) return grad[at] * result[at] / input[at];
    return grad[at] / static_cast<T>(Sharers(at));
  }
  T OfValue(int64_t at, int64_t from) const {
    switch (attrs.reduce) {
      case Reduce::kAssign:
        return count[at] == from ? grad[at] : T{0};
      case Reduce::kAdd:
        return grad[at];
      case Reduce::kMultiply:
        return grad[at] * (result[at] / value[from]);
      case Reduce::kMean:
        return grad[at] / static_cast<T>(Sharers(at));
      default:
        return value[from] == result[at] ? grad[at] / static_cast<T>(Sharers(at)) : T{0};
    }
  }
};

template <typename T, typename Index>
absl::Status Differentiate(KernelContext& ctx, const Index* indices, int axis) {
  const Tensor& input = ctx.input(kInput);
  const Tensor& value = ctx.input(kValue);
  const size_t size = static_cast<size_t>(input.numel());
  INTERP_ASSIGN_OR_RETURN(const Workspace work, ctx.workspace(size * sizeof(int64_t)));
  const Puts<T> puts = {ctx.attrs<Attrs>(), ctx.input(kResultGrad).data<T>(), input.data<T>(),
                        value.data<T>(),    ctx.input(kResult).data<T>(),     work.data<int64_t>()};
  std::fill(puts.count, puts.count + size, 0);
  const auto walk = [&](const auto& visit) {
    ForEachPut(ctx.input(kIndex), indices, axis, input, value, visit);
  };
  walk([&](int64_t at, int64_t from) { puts.Count(at, from); });
  if (Tensor* const input_grad = ctx.optional_output(kInputGrad)) {
    T* const out = input_grad->mutable_data<T>();
    std::copy(puts.grad, puts.grad + size, out);
    walk([&](int64_t at, int64_t) { out[at] = puts.OfInput(at); });
  }
  if (Tensor* const value_grad = ctx.optional_output(kValueGrad)) {
    T* const out = value_grad->mutable_data<T>();
    FillZero(ctx.num_threads(), *value_grad);
    walk([&](int64_t at, int64_t from) { out[from] = puts.OfValue(at, from); });
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status PutGrad(KernelContext& ctx) {
  return WithIndex(
      ctx, ctx.input(kInput).shape, ctx.input(kIndex),
      [&](const auto* indices, int axis) { return Differentiate<T>(ctx, indices, axis); });
}

INTERP_REGISTER_OP(OpDef{
    .type = "put_along_axis_grad",
    .inputs = {{"Result@GRAD"}, {"Input"}, {"Index", kAnyDType}, {"Value"}, {"Result"}},
    .outputs = {{"Input@GRAD", kOptional}, {"Value@GRAD", kOptional}},
    .parse = ParseAttrs<Attrs, ReadAttrs>,
    .infer = InferPutGrad,
    .kernels = {{DType::kFloat32, PutGrad<float>}, {DType::kFloat64, PutGrad<double>}},
});

}  // namespace
}  // namespace interp::put_along_axis
