#include "core/device/cuda/nccl_calls.h"

#include <optional>

namespace interp::cuda {
namespace {

ncclRedOp_t OperationOf(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::kSum:
      return ncclSum;
    case ReduceKind::kMax:
      return ncclMax;
    case ReduceKind::kMin:
      return ncclMin;
    case ReduceKind::kProd:
      return ncclProd;
  }
  return ncclSum;
}

// What NCCL computes with.
std::optional<ncclDataType_t> NumbersOf(DType dtype) {
  switch (dtype) {
    case DType::kInt8:
      return ncclInt8;
    case DType::kUInt8:
      return ncclUint8;
    case DType::kInt32:
      return ncclInt32;
    case DType::kInt64:
      return ncclInt64;
    case DType::kFloat16:
      return ncclFloat16;
    case DType::kBFloat16:
      return ncclBfloat16;
    case DType::kFloat32:
      return ncclFloat32;
    case DType::kFloat64:
      return ncclFloat64;
    default:
      return std::nullopt;
  }
}

// Elements as NCCL sees them: what is only moved are bytes.
struct Elements {
  ncclDataType_t type;
  size_t count;
};
Elements ElementsOf(const CommCall& call) {
  const auto count = static_cast<size_t>(call.count);
  if (Reduces(call.kind)) return {NumbersOf(call.dtype).value_or(ncclUint8), count};
  return {ncclUint8, count * SizeOf(call.dtype)};
}

ncclResult_t AllToAll(const NcclLibrary& nccl, const CommCall& call, const NcclPlace& place) {
  const size_t bytes = ElementsOf(call).count;
  ncclResult_t first = nccl.group_start();
  if (first != ncclSuccess) return first;
  const auto goes_on = [&first] { return first == ncclSuccess || first == ncclInProgress; };
  for (int peer = 0; peer < place.size && goes_on(); ++peer) {
    const char* const from = static_cast<const char*>(call.in) + bytes * peer;
    char* const to = static_cast<char*>(call.out) + bytes * peer;
    first = nccl.send(from, bytes, ncclUint8, peer, place.comm, place.stream);
    if (!goes_on()) break;
    first = nccl.receive(to, bytes, ncclUint8, peer, place.comm, place.stream);
  }
  const ncclResult_t ended = nccl.group_end();  // whatever was before
  return goes_on() ? ended : first;
}

}  // namespace

absl::Status CheckNcclCall(const CommCall& call) {
  const bool messages = call.kind == CommKind::kBarrier || call.kind == CommKind::kScatter ||
                        IsPointToPoint(call.kind);
  if (!call.counts.empty() || messages) {
    return Unimplemented(Name(call.kind), " between GPUs");
  }
  if (!Reduces(call.kind) || NumbersOf(call.dtype).has_value()) return absl::OkStatus();
  return Unimplemented(Name(call.kind), " of ", Name(call.dtype), " between GPUs");
}

ncclResult_t StartNcclCall(const NcclLibrary& nccl, const CommCall& call, const NcclPlace& place) {
  const auto [type, count] = ElementsOf(call);
  const ncclRedOp_t operation = OperationOf(call.reduce);
  switch (call.kind) {
    case CommKind::kAllReduce:
      return nccl.all_reduce(call.in, call.out, count, type, operation, place.comm, place.stream);
    case CommKind::kReduce:
      return nccl.reduce(call.in, call.out, count, type, operation, call.root, place.comm,
                         place.stream);
    case CommKind::kBroadcast:
      return nccl.broadcast(call.in, call.out, count, type, call.root, place.comm, place.stream);
    case CommKind::kAllGather:
      return nccl.all_gather(call.in, call.out, count, type, place.comm, place.stream);
    case CommKind::kReduceScatter:
      return nccl.reduce_scatter(call.in, call.out, count, type, operation, place.comm,
                                 place.stream);
    case CommKind::kAllToAll:
      return AllToAll(nccl, call, place);
    case CommKind::kScatter:
    case CommKind::kBarrier:
    case CommKind::kSend:
    case CommKind::kReceive:
      break;
  }
  return ncclInvalidUsage;
}

}  // namespace interp::cuda
