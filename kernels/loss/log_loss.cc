// log_loss: Loss = -Labels log(Predicted + epsilon) - (1 - Labels) log(1 - Predicted + epsilon).
// hinge_loss: Loss = max(0, 1 - Logits (2 Labels - 1)), for labels 0 and 1.
#include <algorithm>

#include "kernels/loss/loss_attrs.h"
#include "kernels/loss/pair_loss.h"
#include "kernels/util/vector_math.h"

namespace interp {
namespace {

struct LogLoss : LogLossAttrs {
  using Attrs = LogLossAttrs;
  static constexpr PairLossSlots kSlots = {
      .input = "Predicted", .target = "Labels", .loss = "Loss", .column = true};
  template <typename T>
  T operator()(T x, T label) const {
    const T small = static_cast<T>(epsilon);
    return -(label * Log(x + small)) - (T{1} - label) * Log(T{1} - x + small);
  }
};

struct HingeLoss {
  static constexpr PairLossSlots kSlots = {
      .input = "Logits", .target = "Labels", .loss = "Loss", .column = true};
  template <typename T>
  T operator()(T x, T label) const {
    return std::max(T{1} - x * (T{2} * label - T{1}), T{0});
  }
};

INTERP_REGISTER_OP(PairLossDef<LogLoss>("log_loss", PairLossKernels<LogLoss, float, double>(),
                                        {.inputs = {"Predicted", "Labels", "Loss@GRAD"},
                                         .outputs = {"Predicted@GRAD"}}));
INTERP_REGISTER_OP(PairLossDef<HingeLoss>("hinge_loss", PairLossKernels<HingeLoss, float, double>(),
                                          {.inputs = {"Logits", "Labels", "Loss@GRAD"},
                                           .outputs = {"Logits@GRAD"}}));

}  // namespace
}  // namespace interp
