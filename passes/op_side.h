// One side of an op bound to its definition, as rules for dtypes want it (core/infer_dtypes.h).
#pragma once

#include <algorithm>
#include <type_traits>
#include <vector>

#include "core/op_def.h"
#include "core/program.h"

namespace interp {

// The arguments in the order of the definition's slots. Id: VarId, or const VarId where the op is
// only looked at. Borrows the op.
template <typename Id>
struct OpSide {
  std::vector<Id*> args;
  std::vector<int> flags;       // of the argument's slot
  std::vector<int32_t> counts;  // by slot
  std::vector<DType> dtypes;    // by argument, kUndefined at first
};

// `slots`: a std::vector<Slot>, const or not.
template <typename Slots>
auto BindSide(Slots& slots, const std::vector<SlotDef>& defs) {
  OpSide<std::remove_pointer_t<decltype(slots.front().args.data())>> side;
  for (const SlotDef& def : defs) {
    const auto slot =
        std::find_if(slots.begin(), slots.end(), [&](const Slot& s) { return s.name == def.name; });
    const bool present = slot != slots.end();
    side.counts.push_back(present ? static_cast<int32_t>(slot->args.size()) : 0);
    if (!present) continue;
    for (auto& id : slot->args) {
      side.args.push_back(&id);
      side.flags.push_back(def.flags);
    }
  }
  side.dtypes.resize(side.args.size(), DType::kUndefined);
  return side;
}

}  // namespace interp
