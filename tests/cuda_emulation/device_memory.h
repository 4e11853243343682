// DeviceMemory: the memory of one emulated GPU, with its allocations and their shadow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "core/device/sim_memory.h"
#include "tests/cuda_emulation/shadow.h"

namespace interp::cuda_emulation {

// Allocations stand apart, and what was freed is not handed out again for a while, so that an
// access out of bounds or too late hits no other allocation.
// Thread-safety: none.
class DeviceMemory {
 public:
  static absl::StatusOr<std::unique_ptr<DeviceMemory>> Map(int device, size_t capacity_bytes);

  // Null when there is no room. Fresh memory holds poison, which counts as uninitialised.
  void* Allocate(size_t bytes);
  // Whether `address` was an allocation.
  bool Free(void* address);
  // Of the allocation that starts there; 0 when none does.
  size_t SizeOf(const void* address) const;
  size_t free_bytes() const { return capacity_bytes_ - used_bytes_; }
  size_t capacity_bytes() const { return capacity_bytes_; }

  // Whether the address lies in this memory, allocated or not.
  bool Contains(const void* address) const { return Contains(Number(address)); }
  bool Contains(uintptr_t address) const { return shadow_->Contains(address); }
  // Whether all of it lies in one allocation.
  bool Holds(const void* address, size_t bytes) const;
  // Where the host finds the bytes. REQUIRES: Holds.
  char* Bytes(const void* address, size_t bytes) const { return memory_->Bytes(address, bytes); }

  Shadow& shadow() { return *shadow_; }
  SimMemory& memory() { return *memory_; }
  // "byte 400 of an allocation of 400 bytes", "byte 3 of freed memory".
  std::string Describe(uintptr_t address) const;

 private:
  DeviceMemory(std::unique_ptr<SimMemory> memory, std::unique_ptr<Shadow> shadow)
      : memory_(std::move(memory)),
        shadow_(std::move(shadow)),
        capacity_bytes_(memory_->capacity_bytes()) {}

  static uintptr_t Number(const void* address) { return reinterpret_cast<uintptr_t>(address); }
  void GiveBackOldest();

  const std::unique_ptr<SimMemory> memory_;
  const std::unique_ptr<Shadow> shadow_;
  const size_t capacity_bytes_;
  std::map<uintptr_t, size_t> allocations_;  // address -> bytes
  size_t used_bytes_ = 0;
  std::deque<std::pair<uintptr_t, size_t>> freed_;  // not handed out yet, oldest first
  size_t freed_bytes_ = 0;
};

}  // namespace interp::cuda_emulation
