// HostWrites: which buffers of the host GPUs of this process are about to write.
//
// A copy to a device may read its source when it is enqueued, unless that is still to be written by
// a copy from a device that comes before it in stream order.
#pragma once

#include <mutex>

#include "absl/container/flat_hash_map.h"
#include "core/buffer.h"

namespace interp::cuda {

// Thread-safety: all methods.
class HostWrites {
 public:
  // Of the process: copies may lead from one device to another.
  static HostWrites& All();

  void Begin(const Buffer* buffer);
  void End(const Buffer* buffer);
  bool Pending(const Buffer* buffer);

 private:
  std::mutex mutex_;  // guards counts_
  absl::flat_hash_map<const Buffer*, int> counts_;
};

}  // namespace interp::cuda
