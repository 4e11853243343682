// DeviceCommunicator: a ring whose ranks have a device each, between whose memories it moves data
// without the host: NCCL for GPUs. A library of its own brings it along, as it does the device.
#pragma once

#include <memory>

#include "core/comm/rings.h"
#include "core/device/device.h"
#include "core/place.h"
#include "core/status.h"

namespace interp {

// One rank's part in such a ring. All ranks enqueue the same calls in the same order.
//
// A rank that is gone, one that takes longer than CommOptions::timeout, and errors of the library
// end the whole: what is enqueued is given up, so that streams go on, `Work::errors` gets the error
// with the work's tag, and the other ranks are told where that is possible (Rings::Fail). Whatever
// comes later fails with the same error.
//
// Thread-safety: all methods; the order of calls is the caller's.
class DeviceCommunicator {
 public:
  virtual ~DeviceCommunicator() = default;

  // Enqueues a collective, whose `in` and `out` are memory of the stream's device, and returns.
  // Sums are taken in an order of the library's own. Not of kBarrier, kSend and kReceive. Errors:
  // Unimplemented for what the library does not compute, and those above.
  virtual absl::Status Enqueue(const CommCall& call, Stream& stream, const Work& work) = 0;
};

// Functions of such a library. Thread-safety: all of them.
struct DeviceCommunicatorMaker {
  // OK where communicators can be made; else why not.
  absl::Status (*usable)() = nullptr;
  // This rank's part in `ring`, one of `rings`, on the device of `stream`, which is the thread's
  // current one. All ranks of the ring make theirs, and speak over the ring meanwhile. Errors: as
  // above; FailedPrecondition where two ranks have the same device.
  absl::StatusOr<std::unique_ptr<DeviceCommunicator>> (*make)(std::shared_ptr<Rings> rings,
                                                              Communicator& ring,
                                                              Stream& stream) = nullptr;
};

// Called when the library is loaded, before programs are read.
void RegisterDeviceCommunicatorMaker(PlaceKind kind, const DeviceCommunicatorMaker& maker);
// The maker of that kind, or null.
const DeviceCommunicatorMaker* FindDeviceCommunicatorMaker(PlaceKind kind);
// OK where devices of that kind speak with each other; else why not.
absl::Status DeviceCommunication(PlaceKind kind);

}  // namespace interp
