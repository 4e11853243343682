// SlotDTypes: dtypes of the arguments of one side of an op, slot after slot, for DTypeContext.
#pragma once

#include <cstdint>
#include <vector>

#include "core/op_context.h"

namespace interp::testing {

struct SlotDTypes {
  std::vector<DType> dtypes;
  std::vector<int32_t> counts;  // by slot

  DTypeContext::Inputs AsInputs() const { return {dtypes, counts}; }
  DTypeContext::Outputs AsOutputs() { return {absl::MakeSpan(dtypes), counts}; }
};

}  // namespace interp::testing
