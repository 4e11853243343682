// The calls of NCCL, on the machine that lives (nccl_group.h).
#include <nccl.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/cuda_emulation/library_work.h"
#include "tests/cuda_emulation/nccl_group.h"
#include "tests/cuda_emulation/nccl_sums.h"

namespace interp::cuda_emulation {
namespace {

std::string DescribeNccl(const char* name, size_t count, ncclDataType_t type, int more) {
  return absl::StrCat(name, " of ", count, " of type ", static_cast<int>(type), ", ", more);
}

std::vector<std::string> FirstParts(const std::vector<RankPart>& parts) {
  std::vector<std::string> sent;
  for (const RankPart& part : parts) sent.push_back(part.sent[0]);
  return sent;
}

// The messages of a group of calls of one thread.
struct OpenNcclGroup {
  int depth = 0;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  std::map<int, NcclCall::Sent> sent;  // by peer
  std::map<int, NcclCall::Taken> taken;
};
thread_local OpenNcclGroup open_group;

// Every rank sends to all and receives from all.
ncclResult_t ExchangeAll(const OpenNcclGroup& messages) {
  const size_t size = messages.comm->group->ranks.size();
  if (messages.sent.size() != size || messages.taken.size() != size) return ncclInvalidUsage;
  NcclCall call{.name = "ncclGroupEnd", .what = "exchange", .in_place = std::nullopt};
  for (const auto& [peer, sent] : messages.sent) call.sent.push_back(sent);
  for (const auto& [peer, taken] : messages.taken) call.taken.push_back(taken);
  call.happen = [size](const std::vector<RankPart>& parts) {
    RankResults outcome(size);
    for (size_t to = 0; to < size; ++to) {
      for (size_t from = 0; from < size; ++from) outcome[to].push_back(parts[from].sent[to]);
    }
    return outcome;
  };
  return EnqueueNccl(messages.comm, call, messages.stream);
}

}  // namespace
}  // namespace interp::cuda_emulation

namespace emulation = interp::cuda_emulation;

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = 22809;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclSystemError:
      return "unhandled system error";
    case ncclInternalError:
      return "internal error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
  }
  return "unknown result code";
}

const char* ncclGetLastError(ncclComm_t /*comm*/) {
  thread_local std::string text;
  text = emulation::LastNcclError();
  return text.c_str();
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  if (const ncclResult_t result = emulation::EnterNccl("ncclGetUniqueId"); result != ncclSuccess) {
    return result;
  }
  emulation::MakeNcclId(id);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  *comm = nullptr;
  if (const ncclResult_t result = emulation::EnterNccl("ncclCommInitRankConfig");
      result != ncclSuccess) {
    return result;
  }
  if (rank < 0 || rank >= size || config->blocking != 0) return ncclInvalidArgument;
  *comm = emulation::JoinNcclGroup(id, size, rank);
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  *error = ncclSuccess;
  if (const ncclResult_t result = emulation::EnterNccl("ncclCommGetAsyncError");
      result != ncclSuccess) {
    return result;
  }
  *error = emulation::StateOfNccl(comm);
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t /*comm*/) {
  return emulation::EnterNccl("ncclCommFinalize");
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  emulation::LeaveLibrary("ncclCommDestroy", comm->device, /*stream=*/nullptr);
  const ncclResult_t result = emulation::EnterNccl("ncclCommDestroy");
  emulation::EndNccl(comm);
  return result;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const ncclResult_t result = emulation::EnterNccl("ncclCommAbort");
  emulation::EndNccl(comm);
  return result;
}

ncclResult_t ncclGroupStart() {
  if (const ncclResult_t result = emulation::EnterNccl("ncclGroupStart"); result != ncclSuccess) {
    return result;
  }
  ++emulation::open_group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (emulation::open_group.depth != 1) return ncclInvalidUsage;
  const emulation::OpenNcclGroup messages = std::exchange(emulation::open_group, {});
  if (const ncclResult_t result = emulation::EnterNccl("ncclGroupEnd"); result != ncclSuccess) {
    return result;
  }
  return messages.comm == nullptr ? ncclSuccess : emulation::ExchangeAll(messages);
}

ncclResult_t ncclAllReduce(const void* in, void* out, size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  if (const ncclResult_t result = emulation::EnterNccl("ncclAllReduce"); result != ncclSuccess) {
    return result;
  }
  const size_t bytes = count * emulation::ElementBytes(type);
  return emulation::EnqueueNccl(
      comm,
      {.name = "ncclAllReduce",
       .what = emulation::DescribeNccl("all-reduce", count, type, operation),
       .sent = {{in, bytes}},
       .taken = {{out, bytes}},
       .happen =
           [=, first = static_cast<size_t>(comm->num_calls)](
               const std::vector<emulation::RankPart>& parts) {
             const std::string sum = emulation::ReduceRanks(
                 type, operation, emulation::FirstParts(parts), first % parts.size());
             return emulation::RankResults(parts.size(), {sum});
           }},
      stream);
}

ncclResult_t ncclReduce(const void* in, void* out, size_t count, ncclDataType_t type,
                        ncclRedOp_t operation, int root, ncclComm_t comm, cudaStream_t stream) {
  if (const ncclResult_t result = emulation::EnterNccl("ncclReduce"); result != ncclSuccess) {
    return result;
  }
  const size_t bytes = count * emulation::ElementBytes(type);
  emulation::NcclCall call{.name = "ncclReduce",
                           .what = emulation::DescribeNccl("reduce", count, type, operation) +
                                   " to " + std::to_string(root),
                           .sent = {{in, bytes}},
                           .happen = [=](const std::vector<emulation::RankPart>& parts) {
                             const std::string sum = emulation::ReduceRanks(
                                 type, operation, emulation::FirstParts(parts), 0);
                             return emulation::RankResults(parts.size(), {sum});
                           }};
  if (comm->rank == root) call.taken = {{out, bytes}};
  return emulation::EnqueueNccl(comm, call, stream);
}

ncclResult_t ncclBroadcast(const void* in, void* out, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  if (const ncclResult_t result = emulation::EnterNccl("ncclBroadcast"); result != ncclSuccess) {
    return result;
  }
  const size_t bytes = count * emulation::ElementBytes(type);
  emulation::NcclCall call{.name = "ncclBroadcast",
                           .what = emulation::DescribeNccl("broadcast", count, type, root),
                           .taken = {{out, bytes}},
                           .happen = [=](const std::vector<emulation::RankPart>& parts) {
                             return emulation::RankResults(parts.size(), {parts[root].sent[0]});
                           }};
  if (comm->rank == root) call.sent = {{in, bytes}};
  return emulation::EnqueueNccl(comm, call, stream);
}

ncclResult_t ncclAllGather(const void* in, void* out, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  if (const ncclResult_t result = emulation::EnterNccl("ncclAllGather"); result != ncclSuccess) {
    return result;
  }
  const size_t bytes = count * emulation::ElementBytes(type);
  return emulation::EnqueueNccl(comm,
                                {.name = "ncclAllGather",
                                 .what = emulation::DescribeNccl("all-gather", count, type, 0),
                                 .sent = {{in, bytes}},
                                 .taken = {{out, bytes * comm->group->ranks.size()}},
                                 .in_place = comm->rank * static_cast<std::ptrdiff_t>(bytes),
                                 .happen =
                                     [](const std::vector<emulation::RankPart>& parts) {
                                       std::string all;
                                       for (const auto& part : parts) all += part.sent[0];
                                       return emulation::RankResults(parts.size(), {all});
                                     }},
                                stream);
}

ncclResult_t ncclReduceScatter(const void* in, void* out, size_t count, ncclDataType_t type,
                               ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  if (const ncclResult_t result = emulation::EnterNccl("ncclReduceScatter");
      result != ncclSuccess) {
    return result;
  }
  const size_t bytes = count * emulation::ElementBytes(type);
  return emulation::EnqueueNccl(
      comm,
      {.name = "ncclReduceScatter",
       .what = emulation::DescribeNccl("reduce-scatter", count, type, operation),
       .sent = {{in, bytes * comm->group->ranks.size()}},
       .taken = {{out, bytes}},
       .in_place = -comm->rank * static_cast<std::ptrdiff_t>(bytes),
       .happen =
           [=](const std::vector<emulation::RankPart>& parts) {
             const std::string sum =
                 emulation::ReduceRanks(type, operation, emulation::FirstParts(parts), 0);
             emulation::RankResults outcome;
             for (size_t rank = 0; rank < parts.size(); ++rank) {
               outcome.push_back({sum.substr(rank * bytes, bytes)});
             }
             return outcome;
           }},
      stream);
}

ncclResult_t ncclSend(const void* in, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  if (const ncclResult_t result = emulation::EnterNccl("ncclSend"); result != ncclSuccess) {
    return result;
  }
  emulation::OpenNcclGroup& group = emulation::open_group;
  if (group.depth == 0) return ncclInvalidUsage;  // which interp does not do
  group.comm = comm;
  group.stream = stream;
  group.sent[peer] = {in, count * emulation::ElementBytes(type)};
  return ncclSuccess;
}

ncclResult_t ncclRecv(void* out, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  if (const ncclResult_t result = emulation::EnterNccl("ncclRecv"); result != ncclSuccess) {
    return result;
  }
  emulation::OpenNcclGroup& group = emulation::open_group;
  if (group.depth == 0) return ncclInvalidUsage;
  group.comm = comm;
  group.stream = stream;
  group.taken[peer] = {out, count * emulation::ElementBytes(type)};
  return ncclSuccess;
}
}
