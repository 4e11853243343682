#include "kernels/collective/ring.h"

#include "core/resource/place_resources.h"

namespace interp {

absl::StatusOr<Rings*> RingsOf(const KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(
      const RingsHandle* const handle,
      ctx.place_resources().GetOrMake<RingsHandle>(
          "", []() -> absl::StatusOr<std::unique_ptr<RingsHandle>> {
            return std::make_unique<RingsHandle>(RingsHandle{.rings = Rings::Alone()});
          }));
  return handle->rings.get();
}

absl::StatusOr<Communicator*> FindRing(const KernelContext& ctx, int ring_id) {
  INTERP_ASSIGN_OR_RETURN(Rings* const rings, RingsOf(ctx));
  return rings->Find(ring_id);
}

RingAttrs RingAttrs::Read(AttrReader& reader) {
  RingAttrs attrs;
  attrs.ring_id = reader.Int("ring_id", 0);
  attrs.nranks = reader.Int("nranks", 0);
  attrs.rank = reader.Int("rank", -1);
  // c_reduce_* call it by another name than all other ops.
  attrs.root = reader.Int(reader.Has("root_id") ? "root_id" : "root", 0);
  return attrs;
}

absl::StatusOr<Communicator*> FindRing(const KernelContext& ctx, const RingAttrs& attrs) {
  INTERP_ASSIGN_OR_RETURN(Communicator* const ring, FindRing(ctx, attrs.ring_id));
  if (attrs.nranks > 0 && attrs.nranks != ring->size()) {
    return InvalidArgument("the op is for ", attrs.nranks, " ranks, and ring ", attrs.ring_id,
                           " has ", ring->size(), ": start that many, as with `mpirun -n ",
                           attrs.nranks, "`");
  }
  if (attrs.rank >= 0 && attrs.rank != ring->rank()) {
    return InvalidArgument("the op is for rank ", attrs.rank, " of ring ", attrs.ring_id,
                           ", and this process is rank ", ring->rank());
  }
  return ring;
}

absl::StatusOr<int64_t> RowsOfPart(const OpContext& ctx, int slot, int64_t parts) {
  const Shape& shape = ctx.input(slot).shape;
  if (shape.rank() > 0 && parts > 0 && shape[0] % parts == 0) return shape[0] / parts;
  return InvalidArgument("'X' has shape ", ToString(shape), ", expected a first dimension that ",
                         parts, " ranks can share");
}

}  // namespace interp
