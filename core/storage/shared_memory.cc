#include "core/storage/shared_memory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <limits>
#include <mutex>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace interp {
namespace {

constexpr absl::string_view kPrefix = "interp.";
constexpr const char* kFolder = "/dev/shm";  // where Linux shows segments as files
constexpr char kSegmentMagic[8] = {'i', 'n', 't', 'e', 'r', 'p', 'S', '1'};
constexpr int kNameTries = 10;

// The first page of a segment; the rest is data. The magic is written last.
struct Header {
  char magic[8] = {};
  uint64_t header_bytes = 0;
  uint64_t size_bytes = 0;
};

size_t PageBytes() {
  static const auto kBytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return kBytes;
}

std::string PathOf(absl::string_view name) { return absl::StrCat("/", kPrefix, name); }

absl::Status CheckName(absl::string_view name) {
  bool ok = !name.empty() && name.size() <= 200;
  for (const char c : name) {
    ok = ok &&
         (absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.');
  }
  if (ok) return absl::OkStatus();
  return InvalidArgument("'", name, "' is no name for shared memory, expected 1 to 200 letters, ",
                         "digits, '-', '_' and '.'");
}

// Waits for those who only look whether anybody else holds the segment, which takes them no time.
bool LockShared(int file) {
  for (int i = 0; i < 100; ++i) {
    if (flock(file, LOCK_SH | LOCK_NB) == 0) return true;
    absl::SleepFor(absl::Milliseconds(1));
  }
  return false;
}

bool StillNamed(int file) {
  struct stat info = {};
  return fstat(file, &info) == 0 && info.st_nlink > 0;
}

// Removes the segment at `path` when nobody has it mapped. Returns its bytes, 0 otherwise. The
// exclusive lock is what makes it safe: who opens the segment meanwhile sees that it has no name
// any more.
uint64_t RemoveIfUnused(const std::string& path) {
  const int file = shm_open(path.c_str(), O_RDONLY | O_CLOEXEC, 0);
  if (file < 0) return 0;
  struct stat info = {};
  uint64_t removed = 0;
  if (flock(file, LOCK_EX | LOCK_NB) == 0 && fstat(file, &info) == 0 && info.st_nlink > 0 &&
      shm_unlink(path.c_str()) == 0) {
    removed = std::max<uint64_t>(1, static_cast<uint64_t>(info.st_size));
  }
  close(file);
  return removed;
}

absl::Status SystemError(absl::string_view doing, absl::string_view name, int error) {
  const auto code = error == ENOENT   ? absl::StatusCode::kNotFound
                    : error == EEXIST ? absl::StatusCode::kAlreadyExists
                    : error == EACCES ? absl::StatusCode::kPermissionDenied
                                      : absl::StatusCode::kResourceExhausted;
  return absl::Status(
      code, absl::StrCat("cannot ", doing, " shared memory '", name, "': ", std::strerror(error)));
}

// A file of that name, locked; nobody else has used it. The file descriptor.
absl::StatusOr<int> MakeFile(absl::string_view name) {
  const std::string path = PathOf(name);
  for (int i = 0; i < kNameTries; ++i) {
    const int file = shm_open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) return SystemError("create", name, errno);
    if (LockShared(file) && StillNamed(file)) return file;
    close(file);  // taken for an orphan before it was locked
  }
  return SystemError("create", name, EBUSY);
}

// Makes all of its memory be there: without, a write finds out that there is no more (SIGBUS).
absl::Status GrowFile(int file, absl::string_view name, size_t bytes) {
  int error = posix_fallocate(file, 0, static_cast<off_t>(bytes));
  while (error == EINTR) error = posix_fallocate(file, 0, static_cast<off_t>(bytes));
  if (error == 0) return absl::OkStatus();
  return SystemError(absl::StrCat("get ", bytes, " bytes of"), name, error);
}

absl::Status WriteHeader(int file, absl::string_view name, size_t size_bytes) {
  Header header{.header_bytes = PageBytes(), .size_bytes = size_bytes};
  bool ok = pwrite(file, &header, sizeof(header), 0) == sizeof(header);
  ok = ok && pwrite(file, kSegmentMagic, sizeof(kSegmentMagic), 0) == sizeof(kSegmentMagic);
  return ok ? absl::OkStatus() : SystemError("write to", name, errno);
}

// The size of the data, if the file is what it says.
absl::StatusOr<size_t> ReadHeader(int file, absl::string_view name) {
  Header header;
  struct stat info = {};
  if (pread(file, &header, sizeof(header), 0) != sizeof(header) || fstat(file, &info) != 0 ||
      std::memcmp(header.magic, kSegmentMagic, sizeof(kSegmentMagic)) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("shared memory '", name, "' is not, or not yet, a complete segment"));
  }
  const auto file_bytes = static_cast<uint64_t>(info.st_size);
  if (header.header_bytes != PageBytes() || file_bytes < header.header_bytes ||
      header.size_bytes > file_bytes - header.header_bytes) {
    return DataLoss("shared memory '", name, "' is damaged: its header of ", header.header_bytes,
                    " bytes tells of ", header.size_bytes, " bytes, but the segment has ",
                    file_bytes);
  }
  return static_cast<size_t>(header.size_bytes);
}

}  // namespace

absl::StatusOr<std::unique_ptr<SharedMemory>> SharedMemory::Create(size_t size_bytes,
                                                                   absl::string_view name) {
  static std::once_flag reaped;
  std::call_once(reaped, ReapOrphanedSharedMemory);
  if (!name.empty()) INTERP_RETURN_IF_ERROR(CheckName(name));
  const size_t most = static_cast<size_t>(std::numeric_limits<off_t>::max()) / 2;
  if (size_bytes > most)
    return SystemError(absl::StrCat("get ", size_bytes, " bytes of"), name, ENOMEM);
  std::string chosen(name);
  absl::StatusOr<int> file = absl::AlreadyExistsError("");
  for (int i = 0; i < kNameTries && absl::IsAlreadyExists(file.status()); ++i) {
    static std::atomic<uint64_t> next{0};
    if (name.empty()) chosen = absl::StrCat(getpid(), "-", next.fetch_add(1));
    file = MakeFile(chosen);
    if (!name.empty()) break;
  }
  INTERP_RETURN_IF_ERROR(file.status());
  // From here on the object removes the file if anything fails.
  std::unique_ptr<SharedMemory> memory(new SharedMemory(std::move(chosen), *file));
  memory->removes_ = true;
  const size_t bytes = PageBytes() + std::max<size_t>(1, size_bytes);
  absl::Status grown = GrowFile(*file, memory->name(), bytes);
  if (!grown.ok() && ReapOrphanedSharedMemory().count > 0) {
    grown = GrowFile(*file, memory->name(), bytes);
  }
  INTERP_RETURN_IF_ERROR(grown);
  INTERP_RETURN_IF_ERROR(memory->Map(size_bytes, /*writable=*/true));
  INTERP_RETURN_IF_ERROR(WriteHeader(*file, memory->name(), size_bytes));
  return memory;
}

absl::StatusOr<std::unique_ptr<SharedMemory>> SharedMemory::Open(absl::string_view name,
                                                                 Access access) {
  INTERP_RETURN_IF_ERROR(CheckName(name));
  const bool writable = access == Access::kReadWrite;
  const int file = shm_open(PathOf(name).c_str(), (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC, 0);
  if (file < 0) return SystemError("open", name, errno);
  std::unique_ptr<SharedMemory> memory(new SharedMemory(std::string(name), file));
  if (!LockShared(file)) return SystemError("lock", name, EBUSY);
  if (!StillNamed(file)) return SystemError("open", name, ENOENT);
  INTERP_ASSIGN_OR_RETURN(const size_t size_bytes, ReadHeader(file, name));
  INTERP_RETURN_IF_ERROR(memory->Map(size_bytes, writable));
  return memory;
}

absl::Status SharedMemory::Map(size_t size_bytes, bool writable) {
  const size_t bytes = std::max<size_t>(1, size_bytes);
  void* address = mmap(nullptr, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED,
                       file_, static_cast<off_t>(PageBytes()));
  if (address == MAP_FAILED) return SystemError("map", name_, errno);
  data_ = address;
  size_bytes_ = size_bytes;
  mapped_bytes_ = bytes;
  removes_ = true;
  writable_ = writable;
  return absl::OkStatus();
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) munmap(data_, mapped_bytes_);
  // The lock is asked for anew: children of fork share the one of this descriptor.
  close(file_);
  if (removes_) RemoveIfUnused(PathOf(name_));
}

BufferRef ToBuffer(std::unique_ptr<SharedMemory> memory) {
  void* const data = memory->data();
  const size_t size_bytes = memory->size_bytes();
  const bool writable = memory->writable();
  return BorrowBuffer(
      data, size_bytes, writable,
      [kept = std::shared_ptr<SharedMemory>(std::move(memory))]() mutable { kept.reset(); });
}

ReapedSegments ReapOrphanedSharedMemory() {
  ReapedSegments reaped;
  DIR* const folder = opendir(kFolder);
  if (folder == nullptr) return reaped;
  while (const dirent* entry = readdir(folder)) {
    if (!absl::StartsWith(entry->d_name, kPrefix)) continue;
    const uint64_t bytes = RemoveIfUnused(absl::StrCat("/", entry->d_name));
    if (bytes > 0) ++reaped.count;
    reaped.bytes += bytes;
  }
  closedir(folder);
  return reaped;
}

size_t SharedMemorySource::granularity() const { return PageBytes(); }

absl::StatusOr<void*> SharedMemorySource::Take(size_t bytes) {
  INTERP_ASSIGN_OR_RETURN(std::unique_ptr<SharedMemory> made, SharedMemory::Create(bytes));
  void* const address = made->data();
  absl::MutexLock lock(&mutex_);
  segments_[address] = std::move(made);
  return address;
}

void SharedMemorySource::Give(void* address, size_t) {
  std::unique_ptr<SharedMemory> gone;  // lives longer than the lock
  absl::MutexLock lock(&mutex_);
  const auto it = segments_.find(address);
  gone = std::move(it->second);
  segments_.erase(it);
}

absl::StatusOr<SharedMemorySource::Location> SharedMemorySource::Locate(const void* address) const {
  absl::MutexLock lock(&mutex_);
  const auto at = reinterpret_cast<uintptr_t>(address);
  for (const auto& [begin, segment] : segments_) {
    const size_t offset = at - reinterpret_cast<uintptr_t>(begin);
    if (at >= reinterpret_cast<uintptr_t>(begin) && offset < segment->size_bytes()) {
      return Location{segment->name(), offset};
    }
  }
  return NotFound("the memory is not of this shared memory source");
}

}  // namespace interp
