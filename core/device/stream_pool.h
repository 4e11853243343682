// StreamPool: device memory handed on in stream order, so that freeing needs no waiting.
//
// A buffer belongs to the stream it was allocated for. When its last reference goes (on the host,
// while kernels that use it may still be queued), it returns to the pool at once. The next
// allocation for the same stream may take it at once: its work comes after all earlier work of that
// stream. Uses on other streams must be announced with RecordUse (PyTorch's record_stream); freeing
// such a buffer records an event on each of those streams, and whoever gets the memory next waits
// for them on the device. Streams of other devices that copy from the pool's memory are among them,
// by way of a stream that waits for each such copy. Memory that nothing uses, of the pool or else
// of the device, is preferred to such waiting, as copies for the next work are to overlap this
// one's; memory of another stream is taken last. The device is asked for whole chunks, of which the
// streams take what they need.
//
// Freed memory is poisoned in stream order where the option says so: whoever uses it too late reads
// kPoison bytes.
#pragma once

#include <functional>
#include <memory>

#include "core/buffer.h"
#include "core/device/device.h"
#include "core/storage/pool_ledger.h"

namespace interp {

inline constexpr uint8_t kPoison = 0xFB;  // finite and huge in every floating type

struct StreamPoolOptions {
  size_t limit_bytes = 0;  // most bytes handed out at once; 0: the device's capacity
  // What the device is asked for at least, while it has that much: asking a real one stops it. No
  // more than a sixteenth of what may be in use.
  size_t chunk_bytes = size_t{2} << 20;
  bool poison_freed = false;
  // Allocate gives free memory back to the device, where it has no other: that waits, and nobody
  // may know of the memory any more. Trim does in any case.
  bool trims_when_short = true;
  // Tests: called before each allocation; true makes it fail as if memory were short.
  std::function<bool(size_t bytes)> fail = nullptr;
};

// Thread-safety: all methods from any thread. The pool stays alive until its last buffer is gone;
// device and streams must outlive it. Buffers are never written by the host.
class StreamPool {
 public:
  static std::shared_ptr<StreamPool> Create(Device& device, const StreamPoolOptions& options = {});
  virtual ~StreamPool() = default;

  // Allocates for work of `stream`, one of the pool's device. Lives as long as the pool.
  // Errors of Allocate: ResourceExhausted that says how much is in use, after Trim has not helped
  // where the options allow it.
  virtual Allocator& ForStream(Stream& stream) = 0;
  // `buffer` is used by work enqueued on `stream` so far. On a stream of the pool's device, work
  // enqueued before the buffer is freed counts, too. One of another device of its kind has its copy
  // already (Stream::CopyFromPeer), and from here on Device::Synchronize of the pool's device waits
  // for it, too, whoever owns the buffer. Cheap on the stream it was allocated for, a record and a
  // wait for one of a peer; a buffer of somebody else is left alone otherwise.
  virtual void RecordUse(const Buffer& buffer, Stream& stream) = 0;

  // Of all streams together.
  virtual MemoryStats stats() const = 0;
  virtual PoolStats pool_stats() const = 0;
  virtual void ResetPeak() = 0;
  // Gives free memory back to the device, after waiting for what still uses it; returns how much.
  virtual size_t Trim() = 0;
};

}  // namespace interp
