// bce_loss: Out = -(Label log X + (1 - Label) log(1 - X)) for probabilities X. Logarithms below
// -100 count as -100.
#include <algorithm>

#include "kernels/loss/pair_loss.h"
#include "kernels/util/vector_math.h"

namespace interp {
namespace {

struct BinaryCrossEntropy {
  static constexpr PairLossSlots kSlots = {.input = "X", .target = "Label", .loss = "Out"};
  template <typename T>
  T operator()(T x, T label) const {
    const T log_no = std::max(T(Log(T{1} - x)), T{-100});
    const T log_yes = std::max(T(Log(x)), T{-100});
    return (label - T{1}) * log_no - label * log_yes;
  }
};

template <typename T>
absl::Status BceLoss(KernelContext& ctx) {
  const Tensor& x = ctx.input(pair_loss::kInput);
  const T* const values = x.data<T>();
  const int64_t n = x.numel();
  bool inside = true;  // false for NaN as well
  for (int64_t i = 0; i < n; ++i) inside &= values[i] >= T{0} && values[i] <= T{1};
  if (!inside) return InvalidArgument("input 'X' has values outside [0, 1]");
  return PairLoss<BinaryCrossEntropy, T>(ctx);
}

INTERP_REGISTER_OP(PairLossDef<BinaryCrossEntropy>(
    "bce_loss", {{DType::kFloat32, BceLoss<float>}, {DType::kFloat64, BceLoss<double>}},
    {.inputs = {"X", "Label", "Out@GRAD"}, .outputs = {"X@GRAD"}}));

}  // namespace
}  // namespace interp
