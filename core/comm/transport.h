// Transport: messages of bytes between the ranks of one program. All collectives are made of these
// (collectives.h), so that they have the same bits whatever carries them: MPI
// (core/comm/mpi_transport.h), or threads of one process in tests (core/comm/thread_ranks.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/status.h"

namespace interp {

struct Message {
  bool send = false;  // else received
  int peer = 0;       // rank
  int tag = 0;        // at least 0, at most Transport::max_tag
  void* data = nullptr;
  size_t bytes = 0;  // the same on both sides, more than 0, at most Transport::max_bytes
};

// Messages of one sender, receiver and tag arrive in the order in which they were started.
// Thread-safety: one thread, the one that made it, but for rank() and size().
class Transport {
 public:
  using Id = uint64_t;

  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int max_tag() const = 0;
  virtual size_t max_bytes() const = 0;

  // Starts a message and returns at once; `data` stays as it is until Finished says so.
  virtual absl::StatusOr<Id> Start(const Message& message) = 0;
  // Whether a message has gone out or come in; after true the id is gone. Unavailable where the
  // peer is known to have died.
  virtual absl::StatusOr<bool> Finished(Id id) = 0;
  // Unavailable where one of these ranks is known to have died or given up, whether or not a
  // message of it is awaited. Who cannot know says OK.
  virtual absl::Status CheckPeers(const std::vector<int>& ranks);
  // Waits until something may have happened, at most as long as that.
  virtual void Idle(std::chrono::microseconds longest);
  // Says goodbye to the others, which do so, too. Not called after an error.
  virtual absl::Status Leave() { return absl::OkStatus(); }
  // Tells the others, where that is possible, that nothing comes from this rank any more, and why.
  virtual void GiveUp(const absl::Status& error) { static_cast<void>(error); }
  // Ends the processes of all ranks with this exit code, where ranks are processes.
  virtual void Abort(int exit_code) { static_cast<void>(exit_code); }
};

// Called on the thread that then owns the transport.
using MakeTransport = std::function<absl::StatusOr<std::unique_ptr<Transport>>()>;

}  // namespace interp
