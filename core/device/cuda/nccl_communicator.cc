#include "core/device/cuda/nccl_communicator.h"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "core/base/catching.h"
#include "core/device/cuda/cuda_device.h"
#include "core/device/cuda/cuda_error.h"
#include "core/device/cuda/current_device.h"
#include "core/device/cuda/nccl_calls.h"

namespace interp::cuda {
namespace {

constexpr std::chrono::milliseconds kLookEvery(1);
constexpr std::chrono::milliseconds kLookAtRanksEvery(20);
// What ranks that end wait for each other.
constexpr std::chrono::seconds kLongestGoodbye(5);

absl::StatusCode CodeOf(ncclResult_t result) {
  switch (result) {
    case ncclSystemError:
    case ncclRemoteError:
      return absl::StatusCode::kUnavailable;
    case ncclInvalidUsage:  // two ranks on one GPU, versions that differ
      return absl::StatusCode::kFailedPrecondition;
    default:
      return absl::StatusCode::kInternal;
  }
}

// Ends a communicator on a thread of its own. NCCL may wait there for ranks of the same machine,
// which may never come; whoever calls has others to tell.
void End(const NcclLibrary& nccl, int device, ncclComm_t comm, decltype(nccl.comm_abort) end) {
  auto ended = std::make_shared<absl::Notification>();
  const auto run = [device, comm, end, ended] {
    const CurrentDevice current(device);
    end(comm);
    ended->Notify();
  };
  std::thread thread;
  const absl::Status started = Catching([&]() -> absl::Status {
    thread = std::thread(run);
    return absl::OkStatus();
  });
  if (!started.ok()) return run();
  const bool in_time = ended->WaitForNotificationWithTimeout(absl::FromChrono(kLongestGoodbye));
  in_time ? thread.join() : thread.detach();
}

const bool kRegistered = [] {
  RegisterDeviceCommunicatorMaker(PlaceKind::kCuda, {.usable = [] { return FindNccl().status(); },
                                                     .make = NcclCommunicator::Make});
  return true;
}();

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceCommunicator>> NcclCommunicator::Make(
    std::shared_ptr<Rings> rings, Communicator& ring, Stream& stream) {
  INTERP_ASSIGN_OR_RETURN(const NcclLibrary* const nccl, FindNccl());
  std::unique_ptr<NcclCommunicator> made(
      new NcclCommunicator(*nccl, std::move(rings), ring, stream.place().index));
  absl::Status joined = made->Join();
  if (joined.ok()) {
    joined = Catching([&]() -> absl::Status {
      made->watcher_ = std::thread([raw = made.get()] { raw->Watch(); });
      return absl::OkStatus();
    });
  }
  if (joined.ok()) return made;
  const std::string what = absl::StrCat("NCCL on ", RingName(ring.number()), ", rank ", ring.rank(),
                                        " on ", Name(stream.place()));
  return made->GiveUp(Annotate(joined, what), /*reports=*/false);
}

NcclCommunicator::NcclCommunicator(const NcclLibrary& nccl, std::shared_ptr<Rings> rings,
                                   Communicator& ring, int device)
    : nccl_(nccl),
      rings_(std::move(rings)),
      ring_(ring),
      device_(device),
      events_(cudaEventDisableTiming) {}

NcclCommunicator::~NcclCommunicator() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (watcher_.joinable()) watcher_.join();
  const CurrentDevice current(device_);
  Leave();
  for (const InFlight& call : in_flight_) {
    events_.Give(call.begin);
    events_.Give(call.end);
  }
}

// Ranks end when their last collective is done, so there is little to wait for.
void NcclCommunicator::Leave() {
  if (comm_ == nullptr) return;
  const absl::Status left =
      Do(kLongestGoodbye, [this](ncclComm_t comm) { return nccl_.comm_finalize(comm); });
  const ncclComm_t comm = std::exchange(comm_, nullptr);
  if (comm == nullptr) return;
  End(nccl_, device_, comm, left.ok() ? nccl_.comm_destroy : nccl_.comm_abort);
}

absl::Status NcclCommunicator::StatusOf(ncclResult_t result) const {
  if (result == ncclSuccess) return absl::OkStatus();
  std::string text = absl::StrCat("NCCL: ", nccl_.get_error_string(result));
  const char* const more = nccl_.get_last_error(nullptr);
  if (more != nullptr && more[0] != 0) {
    absl::StrAppend(&text, ": ", absl::StripSuffix(more, "\n"));
  }
  return {CodeOf(result), text};
}

absl::Status NcclCommunicator::Join() {
  // Messages under way may touch it after an error.
  INTERP_ASSIGN_OR_RETURN(BufferRef memory, SystemAllocator().Allocate(sizeof(ncclUniqueId)));
  auto* const id = new (memory->data) ncclUniqueId{};
  if (ring_.rank() == 0) INTERP_RETURN_IF_ERROR(StatusOf(nccl_.get_unique_id(id)));
  INTERP_ASSIGN_OR_RETURN(const auto told, ring_.Start({.kind = CommKind::kBroadcast,
                                                        .count = sizeof(*id),
                                                        .in = id,
                                                        .out = id,
                                                        .name = "NCCL's id"},
                                                       {memory}));
  INTERP_RETURN_IF_ERROR(told->Wait());
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return Do(rings_->timeout(), [&](ncclComm_t) {
    return nccl_.comm_init_rank_config(&comm_, ring_.size(), *id, ring_.rank(), &config);
  });
}

template <typename Call>
absl::Status NcclCommunicator::Do(Clock::duration longest, Call call) {
  const Clock::time_point deadline = Clock::now() + longest;
  std::unique_lock lock(mutex_);
  INTERP_RETURN_IF_ERROR(status_);
  ncclResult_t result = call(comm_);
  std::chrono::microseconds pause(20);
  while (result == ncclInProgress) {
    lock.unlock();
    INTERP_RETURN_IF_ERROR(ring_.CheckPeers());
    if (Clock::now() > deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("rank ", ring_.rank(), " of the ring has waited ",
                       std::chrono::duration_cast<std::chrono::milliseconds>(longest).count(),
                       " ms for the others"));
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(1000));
    lock.lock();
    INTERP_RETURN_IF_ERROR(status_);
    const ncclResult_t asked = nccl_.comm_get_async_error(comm_, &result);
    if (asked != ncclSuccess) result = asked;
  }
  return StatusOf(result);
}

absl::StatusOr<cudaEvent_t> NcclCommunicator::RecordedEvent(cudaStream_t stream) {
  INTERP_ASSIGN_OR_RETURN(const cudaEvent_t event, events_.Take());
  const absl::Status recorded = ToStatus(cudaEventRecord(event, stream), "cannot record an event");
  if (recorded.ok()) return event;
  events_.Give(event);
  return recorded;
}

absl::Status NcclCommunicator::Enqueue(const CommCall& call, Stream& stream, const Work& work) {
  const std::scoped_lock calls(calls_mutex_);
  const std::string what = ring_.Describe(call, ++num_calls_);
  const absl::Status enqueued = Enqueue(call, what, HandleOf(stream), work);
  if (enqueued.ok()) return enqueued;
  {
    const std::scoped_lock lock(mutex_);
    if (!status_.ok()) return status_;
  }
  return GiveUp(Annotate(enqueued, what), /*reports=*/false);
}

absl::Status NcclCommunicator::Enqueue(const CommCall& call, const std::string& what,
                                       cudaStream_t stream, const Work& work) {
  INTERP_RETURN_IF_ERROR(CheckCall(call, ring_.rank(), ring_.size()));
  INTERP_RETURN_IF_ERROR(CheckNcclCall(call));
  if (call.count == 0) return absl::OkStatus();
  {
    // What is over gives its events back, so that a warm run makes none.
    const std::scoped_lock lock(mutex_);
    INTERP_RETURN_IF_ERROR(status_);
    bool of_device = false;  // this run sees it by itself, too
    INTERP_RETURN_IF_ERROR(LookAtWork(of_device));
  }
  InFlight in_flight{.what = what, .tag = work.tag, .errors = work.errors};
  INTERP_ASSIGN_OR_RETURN(in_flight.begin, RecordedEvent(stream));
  absl::Status started = Do(rings_->timeout(), [&](ncclComm_t comm) {
    return StartNcclCall(nccl_, call, {.comm = comm, .size = ring_.size(), .stream = stream});
  });
  if (started.ok()) {
    absl::StatusOr<cudaEvent_t> end = RecordedEvent(stream);
    started = end.status();
    if (end.ok()) in_flight.end = *end;
  }
  if (!started.ok()) {
    events_.Give(in_flight.begin);
    return started;
  }
  const std::scoped_lock lock(mutex_);
  in_flight_.push_back(std::move(in_flight));
  changed_.notify_all();
  return status_;
}

absl::Status NcclCommunicator::GiveUp(const absl::Status& error, bool reports) {
  ncclComm_t comm = nullptr;
  absl::Status first;
  {
    const std::scoped_lock lock(mutex_);
    if (status_.ok()) status_ = error;
    first = status_;
    comm = std::exchange(comm_, nullptr);
    // Before streams go on: runs look for errors once their work is done.
    for (const InFlight& call : in_flight_) {
      if (reports && call.errors != nullptr && QueryEvent(call.end) != cudaSuccess) {
        call.errors->Report(call.tag, first);
      }
    }
  }
  ring_.Fail(first);
  if (comm != nullptr) End(nccl_, device_, comm, nccl_.comm_abort);
  return first;
}

void NcclCommunicator::Watch() {
  const CurrentDevice current(device_);
  Clock::time_point looked_at_ranks;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || (status_.ok() && !in_flight_.empty()); });
    if (stop_) return;
    changed_.wait_for(lock, kLookEvery, [this] { return stop_; });
    if (!status_.ok()) continue;
    bool of_device = false;
    absl::Status seen = LookAtWork(of_device);
    if (seen.ok() && !in_flight_.empty() && Clock::now() > looked_at_ranks + kLookAtRanksEvery) {
      looked_at_ranks = Clock::now();
      const std::string& what = in_flight_.front().what;
      seen = Annotate(LookAtNccl(), what);
      if (seen.ok()) seen = Annotate(ring_.CheckPeers(), what);
    }
    if (seen.ok()) continue;
    lock.unlock();
    GiveUp(seen, /*reports=*/!of_device).IgnoreError();
    lock.lock();
  }
}

absl::Status NcclCommunicator::LookAtWork(bool& of_device) {
  while (!in_flight_.empty()) {
    InFlight& call = in_flight_.front();
    const cudaError_t ended = QueryEvent(call.end);
    if (ended == cudaErrorNotReady) break;
    if (ended != cudaSuccess) {
      of_device = LosesDevice(ended);
      return Annotate(ToStatus(ended, "cannot ask whether it has ended"), call.what);
    }
    events_.Give(call.begin);
    events_.Give(call.end);
    in_flight_.pop_front();
  }
  if (in_flight_.empty()) return absl::OkStatus();
  InFlight& call = in_flight_.front();
  const Clock::time_point now = Clock::now();
  if (!call.since.has_value() && QueryEvent(call.begin) == cudaSuccess) call.since = now;
  if (!call.since.has_value() || now - *call.since < rings_->timeout()) return absl::OkStatus();
  return absl::DeadlineExceededError(absl::StrCat(call.what, ": rank ", ring_.rank(),
                                                  " of the ring has waited ",
                                                  rings_->timeout().count(), " ms for the others"));
}

absl::Status NcclCommunicator::LookAtNccl() const {
  ncclResult_t result = ncclSuccess;
  const ncclResult_t asked = nccl_.comm_get_async_error(comm_, &result);
  if (asked == ncclSuccess && result == ncclInProgress) return absl::OkStatus();
  return StatusOf(asked != ncclSuccess ? asked : result);
}

}  // namespace interp::cuda
