#include "tests/cuda_emulation/device_memory.h"

#include <cstring>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace interp::cuda_emulation {
namespace {

constexpr size_t kGapBytes = 256;  // after each allocation, at least
constexpr size_t kAlignment = 256;
constexpr int kPoison = 0xFB;  // finite and huge in every floating type

// What an allocation takes, its gap included.
size_t TakenBytes(size_t bytes) {
  return (bytes + kGapBytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceMemory>> DeviceMemory::Map(int device, size_t capacity_bytes) {
  const Place place{PlaceKind::kSim, static_cast<int8_t>(device)};
  INTERP_ASSIGN_OR_RETURN(std::unique_ptr<SimMemory> memory,
                          SimMemory::Map(place, capacity_bytes, /*native=*/true));
  // First fit: the first allocation has the lowest address.
  INTERP_ASSIGN_OR_RETURN(void* base, memory->Allocate(1));
  memory->Free(base, 1);
  INTERP_ASSIGN_OR_RETURN(std::unique_ptr<Shadow> shadow,
                          Shadow::Map(Number(base), capacity_bytes));
  return std::unique_ptr<DeviceMemory>(new DeviceMemory(std::move(memory), std::move(shadow)));
}

void* DeviceMemory::Allocate(size_t bytes) {
  if (bytes > capacity_bytes_) return nullptr;
  absl::StatusOr<void*> address = memory_->Allocate(TakenBytes(bytes));
  while (!address.ok() && !freed_.empty()) {
    GiveBackOldest();
    address = memory_->Allocate(TakenBytes(bytes));
  }
  if (!address.ok()) return nullptr;
  allocations_[Number(*address)] = bytes;
  used_bytes_ += bytes;
  std::memset(memory_->Bytes(*address, bytes), kPoison, bytes);
  shadow_->SetState(Number(*address), bytes, Shadow::State::kUninitialised);
  return *address;
}

bool DeviceMemory::Free(void* address) {
  const auto it = allocations_.find(Number(address));
  if (it == allocations_.end()) return false;
  const size_t bytes = it->second;
  allocations_.erase(it);
  used_bytes_ -= bytes;
  std::memset(memory_->Bytes(address, bytes), kPoison, bytes);
  shadow_->SetState(Number(address), bytes, Shadow::State::kUnallocated);
  freed_.emplace_back(Number(address), bytes);
  freed_bytes_ += TakenBytes(bytes);
  while (freed_bytes_ > capacity_bytes_ / 4) GiveBackOldest();
  return true;
}

size_t DeviceMemory::SizeOf(const void* address) const {
  const auto it = allocations_.find(Number(address));
  return it == allocations_.end() ? 0 : it->second;
}

void DeviceMemory::GiveBackOldest() {
  const auto [address, bytes] = freed_.front();
  freed_.pop_front();
  freed_bytes_ -= TakenBytes(bytes);
  memory_->Free(reinterpret_cast<void*>(address), TakenBytes(bytes));
}

bool DeviceMemory::Holds(const void* address, size_t bytes) const {
  auto next = allocations_.upper_bound(Number(address));
  if (next == allocations_.begin()) return false;
  const auto& [begin, size] = *std::prev(next);
  const size_t offset = Number(address) - begin;
  return offset <= size && bytes <= size - offset;
}

std::string DeviceMemory::Describe(uintptr_t address) const {
  for (const auto& [begin, bytes] : freed_) {
    if (address - begin < bytes) return absl::StrCat("byte ", address - begin, " of freed memory");
  }
  const auto next = allocations_.upper_bound(address);
  if (next == allocations_.begin()) return "device memory that is not allocated";
  const auto& [begin, bytes] = *std::prev(next);
  return absl::StrCat("byte ", address - begin, " of an allocation of ", bytes, " bytes");
}

}  // namespace interp::cuda_emulation
