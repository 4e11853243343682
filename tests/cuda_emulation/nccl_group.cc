#include "tests/cuda_emulation/nccl_group.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/cuda_emulation/library_work.h"

namespace interp::cuda_emulation {
namespace {

std::mutex nccl_mutex;  // guards all of it; after the machine's locks
std::map<uint64_t, std::shared_ptr<NcclGroup>>& NcclGroups() {
  static auto& groups = *new std::map<uint64_t, std::shared_ptr<NcclGroup>>();
  return groups;
}
uint64_t last_nccl_id = 0;
std::string& LastError() {
  static auto& text = *new std::string();
  return text;
}

ncclResult_t ToNccl(cudaError_t error) {
  if (error == cudaSuccess) return ncclSuccess;
  return error == cudaErrorInvalidValue || error == cudaErrorInvalidResourceHandle
             ? ncclInvalidArgument
             : ncclUnhandledCudaError;
}

// REQUIRES: nccl_mutex is held.
void SpoilGroup(NcclGroup& group, ncclResult_t error, const std::string& text) {
  group.error = error;
  LastError() = text;
}

// The collective is over. REQUIRES: nccl_mutex is held.
void EndMeeting(NcclGroup& group, int64_t number, const RankResults& results) {
  const NcclMeeting& meeting = group.meetings[number];
  for (size_t rank = 0; rank < meeting.parts.size(); ++rank) {
    const RankPart& part = meeting.parts[rank];
    for (size_t i = 0; i < part.out.size(); ++i) {
      std::memcpy(part.out[i], results[rank][i].data(), results[rank][i].size());
    }
    part.until->Finish();
    group.ranks[rank]->holds.erase(number);
  }
  group.meetings.erase(number);
}

// A rank's stream has come to its part of collective `number`.
void ArriveAt(NcclGroup& group, int rank, int64_t number, const NcclCall& call, RankPart part) {
  const std::scoped_lock lock(nccl_mutex);
  if (group.left || group.error != ncclSuccess) return;
  NcclMeeting& meeting = group.meetings[number];
  if (meeting.parts.empty()) {
    meeting.what = call.what;
    meeting.parts.resize(group.ranks.size());
  }
  if (meeting.what != call.what) {
    return SpoilGroup(group, ncclInternalError,
                      absl::StrCat("ranks differ: ", meeting.what, " and ", call.what));
  }
  meeting.parts[rank] = std::move(part);
  if (++meeting.num_here < group.ranks.size()) return;
  EndMeeting(group, number, call.happen(meeting.parts));
}

// Whether it writes what it sends otherwise than in place, of which NCCL makes anything.
bool OverlapsItself(const NcclCall& call) {
  for (const auto& sent : call.sent) {
    for (const auto& taken : call.taken) {
      const auto* const from = static_cast<const char*>(sent.data);
      const auto* const to = static_cast<const char*>(taken.data);
      const bool apart = from + sent.bytes <= to || to + taken.bytes <= from;
      if (!apart && call.in_place != from - to) return true;
    }
  }
  return false;
}

ncclResult_t PushNccl(ncclComm_t comm, const NcclCall& call, cudaStream_t stream) {
  const int64_t number = comm->num_calls++;
  LibraryWork work{.name = call.name};
  for (const auto& sent : call.sent) work.ranges.push_back({sent.data, sent.bytes, false});
  for (const auto& taken : call.taken) work.ranges.push_back({taken.data, taken.bytes, true});
  const auto until = std::make_shared<std::shared_ptr<SimPoint>>();
  work.run = [=, group = comm->group, rank = comm->rank](absl::Span<char* const> bytes) {
    RankPart part{.until = *until};
    for (size_t i = 0; i < call.sent.size(); ++i) {
      part.sent.emplace_back(bytes[i], call.sent[i].bytes);
    }
    const auto out = bytes.subspan(call.sent.size());
    part.out.assign(out.begin(), out.end());
    ArriveAt(*group, rank, number, call, std::move(part));
  };
  return ToNccl(
      EnqueueHeldLibraryWork(std::move(work), stream, [&](const std::shared_ptr<SimPoint>& point) {
        *until = point;
        const std::scoped_lock lock(nccl_mutex);
        comm->holds[number] = point;
      }));
}

}  // namespace

ncclResult_t EnterNccl(const char* name) { return ToNccl(EnterLibrary(name)); }

void MakeNcclId(ncclUniqueId* id) {
  const std::scoped_lock lock(nccl_mutex);
  LastError().clear();
  ++last_nccl_id;
  *id = {};
  std::memcpy(id->internal, &last_nccl_id, sizeof(last_nccl_id));
}

ncclComm_t JoinNcclGroup(const ncclUniqueId& id, int size, int rank) {
  uint64_t number = 0;
  std::memcpy(&number, id.internal, sizeof(number));
  const std::scoped_lock lock(nccl_mutex);
  auto& group = NcclGroups()[number];
  if (group == nullptr) {
    group = std::make_shared<NcclGroup>();
    group->ranks.resize(size);
  }
  const ncclComm_t comm = new ncclComm{.group = group, .rank = rank, .device = LibraryDevice()};
  for (const ncclComm_t other : group->ranks) {
    if (other == nullptr || other->device != comm->device) continue;
    SpoilGroup(*group, ncclInvalidUsage,
               absl::StrCat("Duplicate GPU detected : rank ", rank, " and rank ", other->rank,
                            " both on CUDA device ", comm->device));
  }
  group->ranks[rank] = comm;
  ++group->num_joined;
  return comm;
}

ncclResult_t StateOfNccl(ncclComm_t comm) {
  std::function<ncclResult_t()> connecting;
  {
    const std::scoped_lock lock(nccl_mutex);
    const NcclGroup& group = *comm->group;
    if (group.error != ncclSuccess) return group.error;
    if (group.num_joined < group.ranks.size()) return ncclInProgress;
    connecting.swap(comm->connecting);
  }
  return connecting ? connecting() : ncclSuccess;
}

ncclResult_t EnqueueNccl(ncclComm_t comm, const NcclCall& call, cudaStream_t stream) {
  if (comm->connecting || comm->device != LibraryDevice()) return ncclInvalidUsage;
  if (OverlapsItself(call)) return ncclInvalidArgument;
  if (const ncclResult_t state = StateOfNccl(comm); state != ncclSuccess) {
    return state == ncclInProgress ? ncclInvalidUsage : state;
  }
  if (comm->num_calls > 0) return PushNccl(comm, call, stream);
  comm->connecting = [=] { return PushNccl(comm, call, stream); };
  return ncclInProgress;
}

void EndNccl(ncclComm_t comm) {
  std::map<int64_t, std::shared_ptr<SimPoint>> holds;
  {
    const std::scoped_lock lock(nccl_mutex);
    comm->group->ranks[comm->rank] = nullptr;
    comm->group->left = true;
    holds.swap(comm->holds);
  }
  for (const auto& [number, point] : holds) point->Finish();
  delete comm;
}

std::string LastNcclError() {
  const std::scoped_lock lock(nccl_mutex);
  return LastError();
}

}  // namespace interp::cuda_emulation
