// c_gen_nccl_id (of any library): Out = the ranks of a ring, in its order, where the op names them
// by their addresses: `other_endpoints`, among which `endpoint` is the `rank`-th. What they find
// each other by is no affair of the program here.
// c_comm_init: the ring `ring_id` of `nranks` ranks, of which this one is `rank`. A ring of all
// ranks is made on the spot. Of a smaller one either `endpoints` or what c_gen_nccl_id made tells
// which ranks it has; else it has to be there already (Rings::Add).
// c_comm_init_all, c_comm_init_multitrainer: the ring has all ranks.
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "kernels/collective/ring.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

struct IdAttrs {
  int ring_id = 0;
  int rank = 0;
  std::string endpoint;
  std::vector<std::string> others;

  static IdAttrs Read(AttrReader& reader) {
    IdAttrs attrs;
    attrs.ring_id = reader.Int("ring_id", 0);
    attrs.rank = reader.Int("rank", 0);
    attrs.endpoint = reader.String("endpoint", "");
    attrs.others = reader.Strings("other_endpoints");
    return attrs;
  }
};

struct InitAttrs {
  RingAttrs ring;
  std::vector<std::string> endpoints;

  static InitAttrs Read(AttrReader& reader) {
    InitAttrs attrs;
    attrs.ring = RingAttrs::Read(reader);
    attrs.endpoints = absl::StrSplit(reader.String("endpoints", ""), ',', absl::SkipEmpty());
    return attrs;
  }
};

absl::Status MakeId(KernelContext& ctx) {
  const IdAttrs& attrs = ctx.attrs<IdAttrs>();
  INTERP_ASSIGN_OR_RETURN(Rings* const rings, RingsOf(ctx));
  std::vector<Tensor>& id = ctx.output_array(kOut);
  id.clear();
  // All ranks need no names: they are in the order in which the launcher has started them.
  const int64_t size = std::ssize(attrs.others) + 1;
  if (size < 2 || size >= rings->size() || rings->Has(attrs.ring_id)) return absl::OkStatus();
  if (attrs.rank < 0 || attrs.rank >= size) {
    return InvalidArgument("attribute 'rank' is ", attrs.rank, ", and the ring has ", size,
                           " ranks");
  }
  std::vector<std::string> names = attrs.others;
  names.insert(names.begin() + attrs.rank, attrs.endpoint);
  INTERP_ASSIGN_OR_RETURN(const std::vector<int> ranks, rings->RanksNamed(attrs.endpoint, names));
  id.push_back(Tensor::Of<int32_t>({std::ssize(ranks)}, ranks));
  return absl::OkStatus();
}

// nullopt: the op does not tell, or it needs not.
absl::StatusOr<std::optional<std::vector<int>>> MembersOf(const KernelContext& ctx, Rings& rings) {
  const InitAttrs& attrs = ctx.attrs<InitAttrs>();
  if (rings.Has(attrs.ring.ring_id)) return std::nullopt;
  if (attrs.ring.nranks == rings.size()) return rings.AllRanks();
  const bool named = attrs.ring.rank >= 0 && attrs.ring.rank < std::ssize(attrs.endpoints);
  if (named && attrs.ring.nranks == std::ssize(attrs.endpoints)) {
    return rings.RanksNamed(attrs.endpoints[attrs.ring.rank], attrs.endpoints);
  }
  const Variable* const id = ctx.input_variables(kX).empty() ? nullptr : ctx.input_variables(kX)[0];
  if (id == nullptr || id->array.empty()) return std::nullopt;
  const Tensor& ranks = id->array.front();
  if (ranks.dtype != DType::kInt32 || !ranks.has_memory()) {
    return InvalidArgument("input 'X' is ", DescribeType(ranks),
                           ", expected what c_gen_nccl_id made");
  }
  return std::vector<int>(ranks.data<int32_t>(), ranks.data<int32_t>() + ranks.numel());
}

absl::Status InitAll(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(Rings* const rings, RingsOf(ctx));
  const int ring_id = ctx.attrs<InitAttrs>().ring.ring_id;
  return rings->Has(ring_id) ? absl::OkStatus() : rings->Add(ring_id, rings->AllRanks());
}

absl::Status Init(KernelContext& ctx) {
  const RingAttrs& attrs = ctx.attrs<InitAttrs>().ring;
  INTERP_ASSIGN_OR_RETURN(Rings* const rings, RingsOf(ctx));
  if (attrs.nranks > rings->size()) {
    return InvalidArgument("the op makes a ring of ", attrs.nranks, " ranks, and there are ",
                           rings->size(), ": start that many, as with `mpirun -n ", attrs.nranks,
                           "`");
  }
  INTERP_ASSIGN_OR_RETURN(std::optional<std::vector<int>> members, MembersOf(ctx, *rings));
  if (members.has_value()) INTERP_RETURN_IF_ERROR(rings->Add(attrs.ring_id, *std::move(members)));
  return FindRing(ctx, attrs).status();
}

OpDef MakeIdDef(absl::string_view type) {
  return OpDef{
      .type = type,
      .inputs = {},
      .outputs = {{"Out", kTensorArray}},
      .parse = ParseAttrs<IdAttrs, IdAttrs::Read>,
      .kernels = {{DType::kUndefined, MakeId}},
      .dynamic_outputs = true,
      .side_effect = true,
      .host_only = true,
  };
}

OpDef InitDef(absl::string_view type, KernelFn run) {
  return OpDef{
      .type = type,
      .inputs = {{"X", kOptional | kTensorArray | kMayBeEmpty}},
      .outputs = {},
      .parse = ParseAttrs<InitAttrs, InitAttrs::Read>,
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
