#include "passes/op_inputs.h"

#include "absl/algorithm/container.h"
#include "core/attr_reader.h"

namespace interp {

bool ReadsOnly(const Op& op, std::initializer_list<absl::string_view> slots) {
  return absl::c_all_of(op.inputs, [&](const Slot& slot) {
    return slot.args.empty() || absl::c_linear_search(slots, slot.name);
  });
}

std::optional<VarId> OnlyInput(const Op& op, absl::string_view name) {
  const Slot* const slot = op.FindInput(name);
  const bool one = slot != nullptr && slot->args.size() == 1 && ReadsOnly(op, {name});
  return one ? std::optional(slot->args[0]) : std::nullopt;
}

int64_t ChannelAxisOf(const Op& op, absl::string_view name) {
  return AttrReader(op).String(name, "NCHW") == "NHWC" ? 3 : 1;
}

}  // namespace interp
