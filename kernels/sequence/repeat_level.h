// How often sequence_expand repeats; the same for its gradient.
#pragma once

#include <cstdint>

#include "core/op_def.h"
#include "kernels/sequence/lod.h"

namespace interp {

struct SequenceExpandAttrs {
  int64_t ref_level = -1;  // -1: the lowest
};

inline SequenceExpandAttrs ReadSequenceExpandAttrs(AttrReader& reader) {
  return {reader.Int("ref_level", -1)};
}

// The level of Y whose parts say how often: their lengths count, whatever lies below. `slot` is
// that of Y.
absl::StatusOr<Offsets> RepeatLevel(const OpContext& ctx, int slot);

}  // namespace interp
