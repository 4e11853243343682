// Gradients of log_loss, hinge_loss and bce_loss.
#include <algorithm>

#include "kernels/loss/loss_attrs.h"
#include "kernels/loss/pair_loss_grad.h"
#include "kernels/util/without_lod.h"

namespace interp {
namespace {

struct LogLossGrad : LogLossAttrs {
  using Attrs = LogLossAttrs;
  static constexpr PairLossGradSlots kSlots = {"Predicted", "Labels", "Loss@GRAD",
                                               "Predicted@GRAD"};
  template <typename T>
  T operator()(T x, T label, T grad) const {
    const T small = static_cast<T>(epsilon);
    return grad * ((T{1} - label) / (T{1} - x + small) - label / (x + small));
  }
};

struct HingeGrad {
  static constexpr PairLossGradSlots kSlots = {"Logits", "Labels", "Loss@GRAD", "Logits@GRAD"};
  template <typename T>
  T operator()(T x, T label, T grad) const {
    const T sign = T{2} * label - T{1};
    return x * sign < T{1} ? -grad * sign : T{0};
  }
};

// Bounded at 0 and 1, where it is infinite.
struct BinaryCrossEntropyGrad {
  static constexpr PairLossGradSlots kSlots = {"X", "Label", "Out@GRAD", "X@GRAD"};
  template <typename T>
  T operator()(T x, T label, T grad) const {
    return grad * ((x - label) / std::max((T{1} - x) * x, T(1e-12)));
  }
};

OpDef HingeLossGradDef() {
  OpDef def = PairLossGradDef<HingeGrad>("hinge_loss_grad");
  def.infer = WithoutLod<InferPairLossGrad<HingeGrad>, pair_loss::kInputGrad>;
  return def;
}

INTERP_REGISTER_OP(PairLossGradDef<LogLossGrad>("log_loss_grad"));
INTERP_REGISTER_OP(HingeLossGradDef());
INTERP_REGISTER_OP(PairLossGradDef<BinaryCrossEntropyGrad>("bce_loss_grad"));

}  // namespace
}  // namespace interp
