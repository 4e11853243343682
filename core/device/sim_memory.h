// SimMemory: the memory of a simulated device.
//
// The addresses it hands out are reserved without any right of access; the bytes lie in a second
// range of the same size, at a constant distance, which only the work of streams is told. Code that
// computes with the addresses themselves gets at the bytes there while a NativeAccess lives.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>

#include "core/place.h"
#include "core/status.h"

namespace interp {

// First fit by address over a list of free ranges, neighbours joined: slow and predictable, as
// pools stand before it.
// Thread-safety: all methods from any thread.
class SimMemory {
 public:
  // ResourceExhausted when the system has not that much room for addresses. Only `native` memory
  // can be opened by NativeAccess.
  static absl::StatusOr<std::unique_ptr<SimMemory>> Map(Place place, size_t capacity_bytes,
                                                        bool native = false);
  ~SimMemory();
  SimMemory(const SimMemory&) = delete;
  SimMemory& operator=(const SimMemory&) = delete;

  // Aligned to kBufferAlignment. ResourceExhausted when no free range is long enough.
  absl::StatusOr<void*> Allocate(size_t bytes);
  // REQUIRES: what Allocate(bytes) returned.
  void Free(void* address, size_t bytes);
  size_t capacity_bytes() const { return capacity_bytes_; }

  // While one lives, all code of the process may use the addresses. REQUIRES: the memory is native.
  class NativeAccess {
   public:
    explicit NativeAccess(SimMemory& memory) : memory_(memory) { memory_.Open(1); }
    ~NativeAccess() { memory_.Open(-1); }
    NativeAccess(const NativeAccess&) = delete;
    NativeAccess& operator=(const NativeAccess&) = delete;

   private:
    SimMemory& memory_;
  };

  // Where the bytes at [address, address + bytes) lie; null unless all are of this memory.
  char* Bytes(const void* address, size_t bytes) const;
  // The same for whichever memory of the process is that of `place` there: devices of one place may
  // live side by side. REQUIRES: it lives on until the bytes have been used.
  static char* BytesOf(Place place, const void* address, size_t bytes);

 private:
  SimMemory(Place place, size_t capacity_bytes, char* base, size_t distance_bytes);
  absl::Status NoRoom(size_t bytes) const;
  // Adds `change` to how many use the addresses.
  void Open(int change);

  const Place place_;
  const size_t capacity_bytes_;
  char* const base_;
  const size_t distance_bytes_;    // from an address to its bytes: the capacity in whole pages
  std::mutex mutex_;               // guards what follows
  std::map<size_t, size_t> free_;  // offset -> length
  size_t used_bytes_ = 0;
  int num_native_ = 0;
};

}  // namespace interp
