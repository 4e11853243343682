// c_gen_nccl_id (of any library) makes what ranks find each other by; here they have met before the
// program starts, and it does nothing.
// c_comm_init: the ring `ring_id` of `nranks` ranks, of which this one is `rank`. A ring of all
// ranks is made on the spot; which ranks a smaller one has, the op does not say: it has to be there
// already (Rings::Add). c_comm_init_all, c_comm_init_multitrainer: the ring has all ranks.
#include <numeric>
#include <vector>

#include "kernels/collective/ring.h"

namespace interp {
namespace {

absl::Status DoNothing(KernelContext& ctx) {
  static_cast<void>(ctx);
  return absl::OkStatus();
}

absl::Status AddAll(Rings& rings, int ring_id) {
  if (rings.Has(ring_id)) return absl::OkStatus();
  std::vector<int> everybody(rings.size());
  std::iota(everybody.begin(), everybody.end(), 0);
  return rings.Add(ring_id, std::move(everybody));
}

absl::Status InitAll(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(Rings* const rings, RingsOf(ctx));
  return AddAll(*rings, ctx.attrs<RingAttrs>().ring_id);
}

absl::Status Init(KernelContext& ctx) {
  const RingAttrs& attrs = ctx.attrs<RingAttrs>();
  INTERP_ASSIGN_OR_RETURN(Rings* const rings, RingsOf(ctx));
  if (attrs.nranks > rings->size()) {
    return InvalidArgument("the op makes a ring of ", attrs.nranks, " ranks, and there are ",
                           rings->size(), ": start that many, as with `mpirun -n ", attrs.nranks,
                           "`");
  }
  if (attrs.nranks == rings->size()) INTERP_RETURN_IF_ERROR(AddAll(*rings, attrs.ring_id));
  return FindRing(ctx, attrs).status();
}

OpDef MakeIdDef(absl::string_view type) {
  return OpDef{
      .type = type,
      .inputs = {},
      .outputs = {{"Out", kTensorArray}},
      .kernels = {{DType::kUndefined, DoNothing}},
      .dynamic_outputs = true,
      .host_only = true,
  };
}

OpDef InitDef(absl::string_view type, KernelFn run) {
  return OpDef{
      .type = type,
      .inputs = {{"X", kOptional | kTensorArray | kMayBeEmpty}},
      .outputs = {},
      .parse = ParseAttrs<RingAttrs, RingAttrs::Read>,
      .infer = [](InferContext&) { return absl::OkStatus(); },
      .kernels = {{DType::kUndefined, run}},
      .side_effect = true,
      .host_only = true,
  };
}

INTERP_REGISTER_OP(MakeIdDef("gen_nccl_id"));
INTERP_REGISTER_OP(MakeIdDef("c_gen_nccl_id"));
INTERP_REGISTER_OP(MakeIdDef("c_gen_bkcl_id"));
INTERP_REGISTER_OP(MakeIdDef("c_gen_xccl_id"));
INTERP_REGISTER_OP(InitDef("c_comm_init", Init));
INTERP_REGISTER_OP(InitDef("c_comm_init_all", InitAll));
INTERP_REGISTER_OP(InitDef("c_comm_init_multitrainer", InitAll));

}  // namespace
}  // namespace interp
