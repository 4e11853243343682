// bernoulli: Out = 1 with the probability that X holds, element by element, else 0.
#include <algorithm>

#include "kernels/random/draw.h"
#include "kernels/util/infer_like.h"

namespace interp::random {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

template <typename T>
absl::Status Bernoulli(KernelContext& ctx) {
  const T* const x = ctx.input(kX).data<T>();
  const int64_t n = ctx.input(kX).numel();
  const T* const bad = std::find_if_not(x, x + n, [](T p) { return p >= 0 && p <= 1; });
  if (bad != x + n) {
    return InvalidArgument("element ", bad - x, " of 'X' is ", *bad, ", expected a probability");
  }
  T* const out = ctx.output(kOut).mutable_data<T>();
  // Drawn finer than T resolves 1, for the sake of small probabilities.
  ForEachBits64(ctx, n, [=](int64_t i, uint64_t bits) {
    out[i] = UnitDouble(bits) < static_cast<double>(x[i]) ? T{1} : T{0};
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "bernoulli",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .infer = InferLike<kX, kOut>,
    .kernels = {{DType::kFloat32, Bernoulli<float>}, {DType::kFloat64, Bernoulli<double>}},
    .inplace = {{kX, kOut}},
    .random = true,
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp::random
