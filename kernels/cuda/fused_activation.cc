#include "kernels/cuda/fused_activation.h"

#include <optional>

namespace interp::cuda {
namespace {

// The function, or nothing where no single one does it.
std::optional<ElementwiseStep> StepOf(const nn::FusedActivation& activation) {
  const float a = activation.alpha;
  const float b = activation.beta;
  switch (activation.kind) {
    case nn::ActivationKind::kRelu:
      return ElementwiseStep{.op = ElementwiseOp::kRelu};
    case nn::ActivationKind::kRelu6:
      return ElementwiseStep{.op = ElementwiseOp::kClip, .a = 0, .b = a};
    case nn::ActivationKind::kLeakyRelu:
      return ElementwiseStep{.op = ElementwiseOp::kLeakyRelu, .a = a};
    case nn::ActivationKind::kHardSigmoid:
      return ElementwiseStep{.op = ElementwiseOp::kHardSigmoid, .a = a, .b = b};
    case nn::ActivationKind::kHardSwish:
      if (a != 1.0F / 6 || b != 0.5F) return std::nullopt;
      return ElementwiseStep{.op = ElementwiseOp::kHardSwish};
    case nn::ActivationKind::kSigmoid:
      return ElementwiseStep{.op = ElementwiseOp::kSigmoid};
    case nn::ActivationKind::kSwish:
      return ElementwiseStep{.op = ElementwiseOp::kSwish, .a = a};
    case nn::ActivationKind::kTanh:
      return ElementwiseStep{.op = ElementwiseOp::kTanh};
    case nn::ActivationKind::kMish:
      return ElementwiseStep{.op = ElementwiseOp::kMish};
    case nn::ActivationKind::kGelu:
      return ElementwiseStep{.op = ElementwiseOp::kGelu};
    case nn::ActivationKind::kAbs:
      return ElementwiseStep{.op = ElementwiseOp::kAbs};
    case nn::ActivationKind::kSqrt:
      return ElementwiseStep{.op = ElementwiseOp::kSqrt};
    case nn::ActivationKind::kGeluTanh:
    case nn::ActivationKind::kClip:
    case nn::ActivationKind::kNone:
      break;
  }
  return std::nullopt;
}

}  // namespace

bool TakesActivation(const nn::FusedActivation& activation) {
  return activation.kind == nn::ActivationKind::kNone || StepOf(activation).has_value();
}

void AppendActivation(const nn::FusedActivation& activation, std::vector<ElementwiseStep>& steps) {
  if (const auto step = StepOf(activation)) steps.push_back(*step);
}

}  // namespace interp::cuda
