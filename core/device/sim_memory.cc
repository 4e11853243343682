#include "core/device/sim_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "core/base/check.h"
#include "core/buffer.h"

namespace interp {
namespace {

// Also an empty allocation has an address of its own.
size_t Rounded(size_t bytes) {
  return std::max<size_t>(1, (bytes + kBufferAlignment - 1) / kBufferAlignment) * kBufferAlignment;
}

// Maps the same bytes at `base`, without right of access, and after that at base + half.
bool MapTwice(void* base, size_t half) {
  const int file = memfd_create("interp-sim-memory", MFD_CLOEXEC);
  if (file < 0) return false;
  constexpr int kFlags = MAP_SHARED | MAP_FIXED | MAP_NORESERVE;
  const bool mapped =
      ftruncate(file, static_cast<off_t>(half)) == 0 &&
      mmap(base, half, PROT_NONE, kFlags, file, /*offset=*/0) != MAP_FAILED &&
      mmap(static_cast<char*>(base) + half, half, PROT_READ | PROT_WRITE, kFlags, file,
           /*offset=*/0) != MAP_FAILED;
  close(file);
  return mapped;
}

// The live memories of the process, which copies between devices look for by address.
struct Memories {
  std::mutex mutex;
  std::vector<const SimMemory*> all;  // guarded by mutex

  static Memories& Global() {
    static auto* const kMemories = new Memories;
    return *kMemories;
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<SimMemory>> SimMemory::Map(Place place, size_t capacity_bytes,
                                                          bool native) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t half = (capacity_bytes + page - 1) / page * page;
  // Pages get memory when they are written first, so a large capacity costs nothing. The page at
  // the end stays without access: a kernel that runs out of the memory is stopped there.
  void* base =
      mmap(nullptr, 2 * half + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
           /*fd=*/-1, /*offset=*/0);
  if (base == MAP_FAILED) {
    return ResourceExhausted("cannot map ", capacity_bytes, " bytes as memory of ", Name(place));
  }
  const bool usable =
      native ? MapTwice(base, half)
             : mprotect(static_cast<char*>(base) + half, half, PROT_READ | PROT_WRITE) == 0;
  if (!usable) {
    munmap(base, 2 * half + page);
    return ResourceExhausted("cannot map ", capacity_bytes, " bytes as memory of ", Name(place));
  }
  return std::unique_ptr<SimMemory>(
      new SimMemory(place, capacity_bytes, static_cast<char*>(base), half));
}

SimMemory::SimMemory(Place place, size_t capacity_bytes, char* base, size_t distance_bytes)
    : place_(place), capacity_bytes_(capacity_bytes), base_(base), distance_bytes_(distance_bytes) {
  free_[0] = capacity_bytes / kBufferAlignment * kBufferAlignment;
  std::lock_guard<std::mutex> guard(Memories::Global().mutex);
  Memories::Global().all.push_back(this);
}

SimMemory::~SimMemory() {
  {
    std::lock_guard<std::mutex> guard(Memories::Global().mutex);
    std::erase(Memories::Global().all, this);
  }
  munmap(base_, 2 * distance_bytes_ + static_cast<size_t>(sysconf(_SC_PAGESIZE)));
}

absl::StatusOr<void*> SimMemory::Allocate(size_t bytes) {
  std::lock_guard<std::mutex> guard(mutex_);
  if (bytes > capacity_bytes_) return NoRoom(bytes);
  const size_t rounded = Rounded(bytes);
  const auto it = std::find_if(free_.begin(), free_.end(),
                               [rounded](const auto& range) { return range.second >= rounded; });
  if (it == free_.end()) return NoRoom(bytes);
  const auto [offset, length] = *it;
  free_.erase(it);
  if (length > rounded) free_[offset + rounded] = length - rounded;
  used_bytes_ += rounded;
  return base_ + offset;
}

absl::Status SimMemory::NoRoom(size_t bytes) const {
  size_t longest = 0;
  for (const auto& [offset, length] : free_) longest = std::max(longest, length);
  return ResourceExhausted("cannot allocate ", bytes, " bytes on ", Name(place_), ": ", used_bytes_,
                           " of its ", capacity_bytes_,
                           " bytes are in use and the longest free range has ", longest, " bytes");
}

void SimMemory::Free(void* address, size_t bytes) {
  std::lock_guard<std::mutex> guard(mutex_);
  size_t offset = static_cast<char*>(address) - base_;
  size_t length = Rounded(bytes);
  INTERP_CHECK(offset < capacity_bytes_ && "freed memory is not of this device");
  used_bytes_ -= length;
  auto next = free_.lower_bound(offset);
  INTERP_CHECK((next == free_.end() || offset + length <= next->first) && "memory is freed twice");
  if (next != free_.end() && next->first == offset + length) {
    length += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto previous = std::prev(next);
    INTERP_CHECK(previous->first + previous->second <= offset && "memory is freed twice");
    if (previous->first + previous->second == offset) {
      previous->second += length;
      return;
    }
  }
  free_[offset] = length;
}

void SimMemory::Open(int change) {
  std::lock_guard<std::mutex> guard(mutex_);
  const bool was_open = num_native_ > 0;
  num_native_ += change;
  if (was_open == (num_native_ > 0)) return;
  const int rights = num_native_ > 0 ? PROT_READ | PROT_WRITE : PROT_NONE;
  [[maybe_unused]] const int result = mprotect(base_, distance_bytes_, rights);
  INTERP_CHECK(result == 0 && "the memory of the device cannot be opened");
}

char* SimMemory::Bytes(const void* address, size_t bytes) const {
  const auto at = reinterpret_cast<uintptr_t>(address);
  const auto begin = reinterpret_cast<uintptr_t>(base_);
  if (at < begin || at - begin > capacity_bytes_ || bytes > capacity_bytes_ - (at - begin)) {
    return nullptr;
  }
  return base_ + distance_bytes_ + (at - begin);
}

char* SimMemory::BytesOf(Place place, const void* address, size_t bytes) {
  std::lock_guard<std::mutex> guard(Memories::Global().mutex);
  for (const SimMemory* memory : Memories::Global().all) {
    if (memory->place_ != place) continue;
    if (char* const at = memory->Bytes(address, bytes); at != nullptr) return at;
  }
  return nullptr;
}

}  // namespace interp
