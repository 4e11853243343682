// NcclCommunicator: a ring of GPUs, by NCCL (core/comm/device_communicator.h).
//
// It is made over the ring of the ranks' hosts: rank 0 tells the others where they find each other.
// NCCL's calls do not block; a thread watches what is in flight, since a GPU waits for its peers
// without end: for NCCL's errors, for ranks that are gone, for the time. It aborts NCCL's
// communicator when something is wrong, which ends what waits on streams.
#pragma once

#include <cuda_runtime.h>
#include <nccl.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "core/comm/device_communicator.h"
#include "core/device/cuda/event_pool.h"
#include "core/device/cuda/nccl_library.h"

namespace interp::cuda {

class NcclCommunicator final : public DeviceCommunicator {
 public:
  // DeviceCommunicatorMaker::make.
  static absl::StatusOr<std::unique_ptr<DeviceCommunicator>> Make(std::shared_ptr<Rings> rings,
                                                                  Communicator& ring,
                                                                  Stream& stream);
  // REQUIRES: nothing is in flight, or the device is lost.
  ~NcclCommunicator() override;

  absl::Status Enqueue(const CommCall& call, Stream& stream, const Work& work) override;

 private:
  using Clock = std::chrono::steady_clock;
  // A collective on a stream.
  struct InFlight {
    std::string what;  // for messages
    int32_t tag = -1;
    WorkErrors* errors = nullptr;
    cudaEvent_t begin = nullptr;  // it is the stream's turn: its time runs
    cudaEvent_t end = nullptr;
    std::optional<Clock::time_point> since = std::nullopt;  // seen first that it has begun
  };

  NcclCommunicator(const NcclLibrary& nccl, std::shared_ptr<Rings> rings, Communicator& ring,
                   int device);
  absl::Status Join();
  absl::Status Enqueue(const CommCall& call, const std::string& what, cudaStream_t stream,
                       const Work& work);
  // Calls NCCL, which goes on by itself, and waits until it has enqueued what it was asked for.
  template <typename Call>
  absl::Status Do(Clock::duration longest, Call call);
  absl::Status StatusOf(ncclResult_t result) const;
  absl::StatusOr<cudaEvent_t> RecordedEvent(cudaStream_t stream);
  // Ends everything. Returns the first error, which runs whose work is in flight have, too, where
  // `reports` is set: they know nothing of it.
  absl::Status GiveUp(const absl::Status& error, bool reports);
  void Leave();

  void Watch();
  // REQUIRES: mutex_ is held. Both errors of the device, which its runs see by themselves, and of
  // ranks; `of_device` tells which.
  absl::Status LookAtWork(bool& of_device);
  absl::Status LookAtNccl() const;

  const NcclLibrary& nccl_;
  const std::shared_ptr<Rings> rings_;
  Communicator& ring_;
  const int device_;
  EventPool events_;

  std::mutex calls_mutex_;  // held by one Enqueue at a time; before mutex_
  int64_t num_calls_ = 0;

  std::mutex mutex_;  // guards what follows, and the calls of NCCL
  std::condition_variable changed_;
  ncclComm_t comm_ = nullptr;  // null: not yet, or aborted
  absl::Status status_;        // the first error
  std::deque<InFlight> in_flight_;
  bool stop_ = false;

  std::thread watcher_;
};

}  // namespace interp::cuda
