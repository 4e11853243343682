#include "kernels/util/gradient_op.h"

#include "absl/strings/strip.h"
#include "core/attr_reader.h"
#include "core/op_def.h"
#include "core/status.h"

namespace interp {

absl::Status AddGradientOp(GradientMaker& maker, absl::string_view type,
                           std::initializer_list<GradientOpSlot> inputs,
                           std::initializer_list<GradientOpSlot> outputs) {
  bool wanted = false;
  for (const auto& [name, of] : outputs) {
    wanted |= maker.Wants(absl::StripSuffix(of, kGradientSuffix));
  }
  if (!wanted) return absl::OkStatus();
  Op& gradient = maker.Add(type);
  for (const auto& [name, of] : inputs) {
    const absl::string_view slot = absl::StripSuffix(of, kGradientSuffix);
    AddInput(gradient, name,
             slot.size() < of.size() ? maker.OutputGradients(slot) : maker.Arguments(of));
  }
  for (const auto& [name, of] : outputs) {
    AddOutput(gradient, name, maker.InputGradients(absl::StripSuffix(of, kGradientSuffix)));
  }
  gradient.attrs = maker.op().attrs;
  return absl::OkStatus();
}

absl::Status AddTrainingGradient(GradientMaker& maker) {
  INTERP_RETURN_IF_ERROR(CheckInTraining(maker));
  maker.AddByTable(OpRegistry::Global().Find(maker.op().type)->gradient);
  return absl::OkStatus();
}

absl::Status CheckInTraining(const GradientMaker& maker) {
  if (!AttrReader(maker.op()).Bool("is_test", false)) return absl::OkStatus();
  return InvalidArgument("attribute 'is_test' is set: the op keeps nothing for its gradient; ",
                         "train the program as it was before clone(for_test=True)");
}

}  // namespace interp
