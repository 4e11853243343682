// log_loss: Loss = -Labels log(Predicted + epsilon) - (1 - Labels) log(1 - Predicted + epsilon).
// hinge_loss: Loss = max(0, 1 - Logits (2 Labels - 1)), for labels 0 and 1.
#include <algorithm>

#include "kernels/loss/pair_loss.h"
#include "kernels/util/vector_math.h"

namespace interp {
namespace {

struct LogLoss {
  static constexpr PairLossSlots kSlots = {
      .input = "Predicted", .target = "Labels", .loss = "Loss", .column = true};
  float epsilon = 1e-4f;
  static LogLoss Read(AttrReader& reader) { return {reader.Float("epsilon", 1e-4f)}; }
  template <typename T>
  T operator()(T x, T label) const {
    return -(label * Log(x + epsilon)) - (T{1} - label) * Log(T{1} - x + epsilon);
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

INTERP_REGISTER_OP(PairLossDef<LogLoss>("log_loss", PairLossKernels<LogLoss, float>()));
INTERP_REGISTER_OP(PairLossDef<HingeLoss>("hinge_loss", PairLossKernels<HingeLoss, float>()));

}  // namespace
}  // namespace interp
