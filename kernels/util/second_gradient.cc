#include "kernels/util/second_gradient.h"

#include <algorithm>
#include <utility>

namespace interp {
namespace {

bool AllEmpty(GradientMaker& maker, const ArgIds& args) {
  const VarId empty = maker.Empty();
  return std::all_of(args.begin(), args.end(), [empty](VarId arg) { return arg == empty; });
}

}  // namespace

absl::Status AddSecondGradient(const SecondGradient& second, GradientMaker& maker) {
  const auto wanted = [&maker](const SecondSlot& result) {
    return !result.slot.empty() && maker.Wants(result.of);
  };
  if (std::none_of(second.results.begin(), second.results.end(), wanted)) {
    return absl::OkStatus();
  }
  Op& op = maker.Add(second.type);
  op.attrs = maker.op().attrs;
  for (const SecondSlot& value : second.values) {
    if (value.slot.empty() || op.FindInput(value.slot) != nullptr) continue;
    AddInput(op, value.slot, maker.Arguments(value.of));
  }
  for (const SecondSlot& incoming : second.incoming) {
    if (incoming.slot.empty()) continue;
    ArgIds args = maker.OutputGradients(incoming.of);
    if (!AllEmpty(maker, args)) AddInput(op, incoming.slot, std::move(args));
  }
  for (const SecondSlot& result : second.results) {
    if (wanted(result)) AddOutput(op, result.slot, maker.InputGradients(result.of));
  }
  for (const SecondSlot& kept : second.kept) {
    if (!kept.slot.empty()) AddOutput(op, kept.slot, maker.Arguments(kept.of));
  }
  return absl::OkStatus();
}

}  // namespace interp
