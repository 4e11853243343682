// send_v2: X goes to rank `peer` of the ring. It returns as soon as X is copied, and waits for the
// one before only when it is run again: stages of a pipeline that send to each other do not block.
// recv_v2: Out = what that rank has sent.
// partial_send, partial_recv: the same for part `id` of `num` equal ones of the elements; the rest
// of Out is 0.
//
// In front of each tensor goes a header with its dtype and shape, so that ranks that differ find
// it out; with dynamic_shape the shape is as the header says, else `out_shape` holds.
#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <vector>

#include "kernels/collective/ring.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

struct SendAttrs {
  int ring_id = 0;
  int peer = 0;
  int num = 1;
  int id = 0;
  bool dynamic = false;
  DType dtype = DType::kFloat32;
  std::vector<int64_t> out_shape;

  static SendAttrs Read(AttrReader& reader) {
    SendAttrs attrs;
    attrs.ring_id = reader.Int("ring_id", 0);
    attrs.peer = reader.Int("peer", 0);
    attrs.num = reader.Int("num", 1);
    attrs.id = reader.Int("id", 0);
    attrs.dynamic = reader.Bool("dynamic_shape", false);
    attrs.dtype = reader.Type("dtype", DType::kFloat32);
    attrs.out_shape = reader.Ints("out_shape");
    if (attrs.out_shape.size() > kMaxRank) {
      reader.Fail(absl::StrCat("'out_shape' has ", attrs.out_shape.size(),
                               " dims, expected at most ", kMaxRank));
    }
    if (attrs.num < 1 || attrs.id < 0 || attrs.id >= attrs.num) {
      reader.Fail(absl::StrCat("part ", attrs.id, " of ", attrs.num));
    }
    return attrs;
  }
};

struct Header {
  int32_t dtype = -1;
  int32_t rank = 0;  // number of dimensions
  std::array<int64_t, kMaxRank> dims = {};
};
static_assert(std::is_trivially_copyable_v<Header>);

CommCall BytesOf(CommKind kind, int peer, void* data, size_t bytes, absl::string_view name) {
  return {.kind = kind,
          .dtype = DType::kUInt8,
          .root = peer,
          .count = static_cast<int64_t>(bytes),
          .in = data,
          .out = data,
          .name = std::string(name)};
}

// What was sent last and may still be under way.
struct SendState : KernelState {
  BufferRef memory;  // a header and the data behind it
  std::vector<std::shared_ptr<CommRequest>> requests;

  absl::Status Keep(const Header& header, const char* data, size_t bytes) {
    const size_t needed = sizeof(header) + bytes;
    if (!memory || memory->size_bytes < needed) {
      INTERP_ASSIGN_OR_RETURN(memory, SystemAllocator().Allocate(needed));
    }
    std::memcpy(memory->data, &header, sizeof(header));
    if (bytes > 0) std::memcpy(Data(), data, bytes);
    return absl::OkStatus();
  }
  char* Data() const { return static_cast<char*>(memory->data) + sizeof(Header); }

  absl::Status Wait() {
    absl::Status status;
    for (const auto& request : requests) status.Update(request->Wait());
    requests.clear();
    return status;
  }
  ~SendState() override { Wait().IgnoreError(); }
};

absl::Status CheckParts(const Tensor& tensor, const SendAttrs& attrs) {
  if (tensor.numel() % attrs.num == 0) return absl::OkStatus();
  return InvalidArgument("a tensor ", DescribeType(tensor), " cannot be cut into ", attrs.num,
                         " equal parts");
}

absl::Status Send(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<SendAttrs>();
  INTERP_ASSIGN_OR_RETURN(Communicator* const ring, FindRing(ctx, attrs.ring_id));
  const Tensor& x = ctx.input(kX);
  INTERP_RETURN_IF_ERROR(CheckParts(x, attrs));
  auto& state = ctx.state<SendState>();
  INTERP_RETURN_IF_ERROR(state.Wait());
  Header header = {.dtype = static_cast<int32_t>(x.dtype), .rank = x.shape.rank()};
  for (int i = 0; i < x.shape.rank(); ++i) header.dims[i] = x.shape[i];
  const size_t part = x.size_bytes() / attrs.num;
  const char* const from = static_cast<const char*>(x.raw_data()) + part * attrs.id;
  const absl::Status kept = state.Keep(header, from, part);
  if (!kept.ok()) {
    ring->Fail(kept);  // the other side waits
    return kept;
  }
  const auto start = [&](void* data, size_t bytes) -> absl::Status {
    INTERP_ASSIGN_OR_RETURN(
        auto request,
        ring->Start(BytesOf(CommKind::kSend, attrs.peer, data, bytes, "send_v2"), {state.memory}));
    state.requests.push_back(std::move(request));
    return absl::OkStatus();
  };
  INTERP_RETURN_IF_ERROR(start(state.memory->data, sizeof(Header)));
  return start(state.Data(), part);
}

// What the op says of the shape, where it says something, is what has to come.
absl::Status CheckHeader(const SendAttrs& attrs, const Header& header) {
  std::string expected = std::string(Name(attrs.dtype));
  const int rank = std::clamp(header.rank, 0, int{kMaxRank});
  const absl::Span<const int64_t> dims(header.dims.data(), rank);
  bool fits = header.dtype == static_cast<int32_t>(attrs.dtype) && rank == header.rank &&
              Shape(dims).CheckedNumel().has_value();
  if (!attrs.dynamic) {
    Shape shape;
    for (const int64_t dim : attrs.out_shape) shape.push_back(dim);
    absl::StrAppend(&expected, ToString(shape));
    fits =
        fits && std::equal(dims.begin(), dims.end(), attrs.out_shape.begin(), attrs.out_shape.end(),
                           [](int64_t came, int64_t said) { return said == -1 || came == said; });
  }
  if (fits) return absl::OkStatus();
  const auto dtype = DTypeFromCode(header.dtype);
  return InvalidArgument("rank ", attrs.peer, " of ring ", attrs.ring_id, " has sent ",
                         dtype.has_value() ? Name(*dtype) : "no tensor", ToString(Shape(dims)),
                         ", expected ", expected);
}

absl::Status Receive(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<SendAttrs>();
  INTERP_ASSIGN_OR_RETURN(Communicator* const ring, FindRing(ctx, attrs.ring_id));
  Header header;
  INTERP_RETURN_IF_ERROR(
      ring->Run(BytesOf(CommKind::kReceive, attrs.peer, &header, sizeof(header), "recv_v2")));
  INTERP_RETURN_IF_ERROR(CheckHeader(attrs, header));
  Tensor& out = ctx.output(kOut);
  out.dtype = attrs.dtype;
  out.lod.clear();
  out.shape = Shape();
  for (int i = 0; i < header.rank; ++i) out.shape.push_back(header.dims[i]);
  INTERP_RETURN_IF_ERROR(CheckParts(out, attrs));
  INTERP_RETURN_IF_ERROR(ctx.Allocate(out));
  const size_t part = out.size_bytes() / attrs.num;
  char* const to = static_cast<char*>(out.mutable_raw_data());
  if (attrs.num > 1) std::memset(to, 0, out.size_bytes());
  return ring->Run(BytesOf(CommKind::kReceive, attrs.peer, to + part * attrs.id, part, "recv_v2"),
                   {out.buffer()});
}

OpDef SendDef(absl::string_view type) {
  return OpDef{
      .type = type,
      .inputs = {{"X"}},
      .outputs = {},
      .parse = ParseAttrs<SendAttrs, SendAttrs::Read>,
      .infer = [](InferContext&) { return absl::OkStatus(); },
      .kernels = {{DType::kUndefined, Send}},
      .side_effect = true,
      .host_only = true,
  };
}

OpDef ReceiveDef(absl::string_view type) {
  return OpDef{
      .type = type,
      .inputs = {},
      .outputs = {{"Out"}},
      .parse = ParseAttrs<SendAttrs, SendAttrs::Read>,
      .kernels = {{DType::kUndefined, Receive}},
      .dynamic_outputs = true,
      .side_effect = true,
      .host_only = true,
  };
}

INTERP_REGISTER_OP(SendDef("send_v2"));
INTERP_REGISTER_OP(SendDef("partial_send"));
INTERP_REGISTER_OP(ReceiveDef("recv_v2"));
INTERP_REGISTER_OP(ReceiveDef("partial_recv"));

}  // namespace
}  // namespace interp
