#include "kernels/sequence/repeat_level.h"

namespace interp {

absl::StatusOr<Offsets> RepeatLevel(const OpContext& ctx, int slot) {
  const Lod& lod = ctx.input(slot).lod;
  const auto levels = static_cast<int64_t>(lod.size());
  if (levels == 0) return InvalidArgument("input 'Y' has no LoD, which says how often to repeat");
  const int64_t wanted = ctx.attrs<SequenceExpandAttrs>().ref_level;
  if (wanted < -1 || wanted >= levels) {
    return InvalidArgument("'ref_level' is ", wanted, ", but the LoD of input 'Y' has ", levels,
                           " levels");
  }
  const Offsets level = lod[wanted == -1 ? levels - 1 : wanted];
  INTERP_RETURN_IF_ERROR(CheckOffsets(level, level.empty() ? 0 : level.back(), "Y"));
  return level;
}

}  // namespace interp
