// What split_lod_tensor and merge_lod_tensor share: a mask over sequences, and their level.
#pragma once

#include "absl/strings/str_cat.h"
#include "core/attr_reader.h"
#include "core/status.h"
#include "core/tensor.h"

namespace interp {

struct LodLevelAttrs {
  int32_t level = 0;
};

inline LodLevelAttrs ReadLodLevelAttrs(AttrReader& reader) {
  const LodLevelAttrs attrs = {reader.Int("level", 0)};
  if (attrs.level < 0) reader.Fail("attribute 'level' is negative");
  return attrs;
}

// One bool for each sequence.
inline absl::StatusOr<absl::Span<const bool>> MaskOf(const Tensor& mask) {
  if (mask.dtype != DType::kBool || mask.shape.rank() == 0 || mask.numel() != mask.shape[0]) {
    return InvalidArgument("input 'Mask' is ", DescribeType(mask), ", expected bool[n,1]");
  }
  return absl::MakeConstSpan(mask.data<bool>(), static_cast<size_t>(mask.numel()));
}

}  // namespace interp
