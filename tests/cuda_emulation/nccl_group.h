// Communicators of the emulated NCCL: what ranks, threads of this process with a GPU each, bring to
// a collective, and when it happens: when the streams of all ranks have come to it. Until then they
// wait, as on GPUs, and an abort lets them go.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/device/sim_executor.h"

namespace interp::cuda_emulation {

// What one rank brings to a collective.
struct RankPart {
  std::vector<std::string> sent = {};  // one, or one for each rank
  std::vector<char*> out = {};         // likewise: where the host finds the memory
  std::shared_ptr<SimPoint> until;     // its stream waits for this
};

// What is to happen, and who has come.
struct NcclMeeting {
  std::string what;  // all that has to be the same on all ranks
  std::vector<RankPart> parts;
  size_t num_here = 0;
};

struct NcclGroup {
  std::vector<ncclComm_t> ranks;
  size_t num_joined = 0;
  std::map<int64_t, NcclMeeting> meetings;  // by number
  bool left = false;                        // one has gone: nothing is completed any more
  ncclResult_t error = ncclSuccess;
};

// What each rank gets, by rank, one after the other as in RankPart::out.
using RankResults = std::vector<std::vector<std::string>>;

// One rank's call of a collective.
struct NcclCall {
  // Memory of the GPU that is sent from, or written.
  struct Sent {
    const void* data = nullptr;
    size_t bytes = 0;
  };
  struct Taken {
    void* data = nullptr;
    size_t bytes = 0;
  };

  std::string name;  // of the function
  std::string what;  // as NcclMeeting's
  std::vector<Sent> sent = {};
  std::vector<Taken> taken = {};
  // How far the memory that is sent from lies behind what is written where a call works in place.
  std::optional<std::ptrdiff_t> in_place = 0;
  std::function<RankResults(const std::vector<RankPart>&)> happen = {};
};

}  // namespace interp::cuda_emulation

// A name of NCCL. NOLINTNEXTLINE(readability-identifier-naming)
struct ncclComm {
  std::shared_ptr<interp::cuda_emulation::NcclGroup> group;
  int rank = 0;
  int device = 0;
  int64_t num_calls = 0;
  // The first call connects ranks: it goes on by itself after it has returned.
  std::function<ncclResult_t()> connecting = nullptr;
  // Of streams that wait.
  std::map<int64_t, std::shared_ptr<interp::SimPoint>> holds = {};
};

namespace interp::cuda_emulation {

// Functions of the calls. Thread-safety: all of them.

// Counts a call of that name: the error that was asked for.
ncclResult_t EnterNccl(const char* name);
void MakeNcclId(ncclUniqueId* id);
// A rank on the current device. Its group has an error where another one has that device.
ncclComm_t JoinNcclGroup(const ncclUniqueId& id, int size, int rank);
// How the communicator is, which goes on with what it does by itself.
ncclResult_t StateOfNccl(ncclComm_t comm);
// Enqueues a call that has entered.
ncclResult_t EnqueueNccl(ncclComm_t comm, const NcclCall& call, cudaStream_t stream);
// The end of a communicator, whatever is in flight.
void EndNccl(ncclComm_t comm);
// What the last error was about.
std::string LastNcclError();

}  // namespace interp::cuda_emulation
