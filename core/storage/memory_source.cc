#include "core/storage/memory_source.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "core/storage/aligned_memory.h"
#include "core/storage/shared_memory.h"

namespace interp {
namespace {

constexpr absl::string_view kMemoryNames[] = {"ordinary", "pinned", "shared"};
constexpr size_t kMostPageBytes = std::numeric_limits<size_t>::max() / 4;  // safe to round up

absl::Status NoMore(size_t bytes) {
  return ResourceExhausted("cannot allocate ", bytes, " bytes: the system has no more");
}

class SystemHeap final : public MemorySource {
 public:
  std::string name() const override { return "host"; }
  absl::StatusOr<void*> Take(size_t bytes) override {
    if (bytes > kMostPageBytes) return NoMore(bytes);
    void* memory = AllocateAligned(bytes);
    if (memory == nullptr) return NoMore(bytes);
    return memory;
  }
  void Give(void* address, size_t) override { std::free(address); }
};

// Pages that are locked in memory. A build for CUDA will register them with the driver instead.
class PinnedMemory final : public MemorySource {
 public:
  std::string name() const override { return "pinned"; }
  size_t granularity() const override { return page_bytes_; }

  absl::StatusOr<void*> Take(size_t bytes) override {
    if (bytes > kMostPageBytes) return NoMore(bytes);
    const size_t rounded = RoundUp(bytes, page_bytes_);
    void* memory = mmap(nullptr, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                        /*fd=*/-1, /*offset=*/0);
    if (memory == MAP_FAILED) return NoMore(bytes);
    if (mlock(memory, rounded) == 0) return memory;
    const int error = errno;
    munmap(memory, rounded);
    return CannotLock(bytes, error);
  }
  void Give(void* address, size_t bytes) override { munmap(address, RoundUp(bytes, page_bytes_)); }

 private:
  static absl::Status CannotLock(size_t bytes, int error) {
    rlimit limit = {};
    getrlimit(RLIMIT_MEMLOCK, &limit);
    const std::string most = limit.rlim_cur == RLIM_INFINITY
                                 ? "without limit"
                                 : absl::StrCat("at most ", limit.rlim_cur, " bytes");
    return ResourceExhausted("cannot lock ", bytes, " bytes in memory: ", std::strerror(error),
                             "; this process may lock ", most, " (RLIMIT_MEMLOCK, `ulimit -l`)");
  }

  const size_t page_bytes_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
};

}  // namespace

absl::string_view Name(HostMemory memory) { return kMemoryNames[static_cast<int>(memory)]; }

absl::StatusOr<HostMemory> HostMemoryFromName(absl::string_view name) {
  for (int i = 0; i < 3; ++i) {
    if (kMemoryNames[i] == name) return static_cast<HostMemory>(i);
  }
  return InvalidArgument("no kind of memory is named '", name,
                         "'; there are ordinary, pinned and shared");
}

std::shared_ptr<MemorySource> MakeHostMemory(HostMemory memory) {
  static const auto& heap = *new std::shared_ptr<MemorySource>(std::make_shared<SystemHeap>());
  switch (memory) {
    case HostMemory::kOrdinary:
      return heap;
    case HostMemory::kPinned:
      return std::make_shared<PinnedMemory>();
    case HostMemory::kShared:
      return std::make_shared<SharedMemorySource>();
  }
  return heap;
}

}  // namespace interp
