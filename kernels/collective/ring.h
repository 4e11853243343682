// What the collective ops have in common. They keep the program's order (OpDef::side_effect), run
// on the host, and end when the collective has, whatever `use_calc_stream` says: only bucket.cc
// leaves one under way. Alone, a ring is one rank, and they are copies.
#pragma once

#include "core/comm/rings.h"
#include "core/op_def.h"

namespace interp {

// The ring of that number in the run's rings (CoreOptions::rings). Errors: those of Rings::Find.
absl::StatusOr<Communicator*> FindRing(const KernelContext& ctx, int ring_id);
// The run's rings.
absl::StatusOr<Rings*> RingsOf(const KernelContext& ctx);

// Attributes by which a ring is named and, for most ops, described once more.
struct RingAttrs {
  int ring_id = 0;
  int nranks = 0;  // 0: not said
  int rank = -1;   // -1: not said
  int root = 0;

  static RingAttrs Read(AttrReader& reader);
};

// The same, and InvalidArgument where the ring has another size or this process another rank in it
// than the op was made for.
absl::StatusOr<Communicator*> FindRing(const KernelContext& ctx, const RingAttrs& attrs);

// Checks that the first dimension of input `slot` is a multiple of `parts` and returns it divided.
absl::StatusOr<int64_t> RowsOfPart(const OpContext& ctx, int slot, int64_t parts);

}  // namespace interp
