// VarUses: where a program uses each variable. The common ground of passes that reason about
// liveness; computed in one sweep over all blocks.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "core/op_def.h"
#include "core/program.h"

namespace interp {

struct VarUse {
  static constexpr int32_t kNowhere = -1;
  static constexpr int32_t kSeveralBlocks = -2;

  // The block whose ops name the variable. kSeveralBlocks when more than one does: then ops with
  // sub-blocks use it in ways that positions cannot tell, and passes leave it alone.
  int32_t block = kNowhere;
  // Positions of ops in that block, -1 for none. Inputs whose memory is not read do not count.
  int32_t first = -1;
  int32_t last = -1;
  int32_t last_write = -1;
  int32_t last_change = -1;  // the last of `writes`
  // Arguments in that block, by the same rule. Outputs left as they are (LeavesUntouched in
  // op_effects.h) count as no write here, but as one in the positions.
  int32_t reads = 0;
  int32_t writes = 0;
  // The first of the uses above is a read: the value comes from outside the block, or from the
  // previous iteration.
  bool read_first = false;
  // Inputs whose memory is not read, and the position of the first in that block, -1 for none.
  int32_t shape_reads = 0;
  int32_t first_shape_read = -1;
  // Arguments of any kind.
  int32_t mentions = 0;
  bool fed = false;
  bool fetched = false;
  bool persistable = false;  // in any declaration
  // The last declaration (names are rarely declared twice), null without one. Points into the
  // program: gone when its declarations change.
  const Var* var = nullptr;

  // The value outlives the run, comes from outside, or is used by sub-blocks.
  bool pinned() const { return fed || fetched || persistable || block == kSeveralBlocks; }
};

// By VarId. REQUIRES: the program is valid (VerifyProgram).
std::vector<VarUse> FindVarUses(const Program& program, const OpRegistry& ops);

// Whether block 0 has an op of one of these types: passes that look for them can tell at little
// cost that they have nothing to do.
bool HasOpOf(const Program& program, absl::Span<const absl::string_view> types);

}  // namespace interp
