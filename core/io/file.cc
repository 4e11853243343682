#include "core/io/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/base/errno_status.h"

namespace interp {
namespace {

absl::Status SystemError(absl::string_view action, absl::string_view path) {
  const int code = errno;
  return ErrnoStatus(code, absl::StrCat("cannot ", action, " '", path, "'"));
}

// Closes on scope exit.
class OpenFile {
 public:
  explicit OpenFile(int fd) : fd_(fd) {}
  ~OpenFile() {
    if (fd_ >= 0) close(fd_);
  }
  OpenFile(OpenFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OpenFile& operator=(OpenFile&&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

// `flags`: beside those of all that is read.
absl::StatusOr<OpenFile> OpenForReading(const std::string& path, int flags, struct stat* info) {
  if (path.find('\0') != std::string::npos) return InvalidArgument("a path holds a zero byte");
  OpenFile file(open(path.c_str(), O_RDONLY | O_CLOEXEC | flags));
  if (file.get() < 0 || fstat(file.get(), info) != 0) return SystemError("open", path);
  if (S_ISDIR(info->st_mode)) return InvalidArgument("'", path, "' is a directory");
  return file;
}

// Where a file is to be renamed to: links are followed, so that a link stays one, also one to what
// is not there yet.
absl::StatusOr<std::string> ResolveLinks(const std::string& path) {
  constexpr int kMostLinks = 40;  // as Linux follows
  std::filesystem::path target = path;
  for (int i = 0; i <= kMostLinks; ++i) {
    std::error_code error;
    const std::filesystem::path link = std::filesystem::read_symlink(target, error);
    if (error) return target.string();
    target = target.parent_path() / link;
  }
  errno = ELOOP;
  return SystemError("create", path);
}

// Makes a new file beside `target` and puts its name into `temporary`. Names may be taken: in a
// container all processes have the same number, and those that were killed have left files. -1 and
// errno where none can be made.
int CreateBeside(const std::string& target, std::string& temporary) {
  static std::atomic<int> counter{0};  // two writers of one path in one process
  int fd = -1;
  do {
    temporary = absl::StrCat(target, ".", getpid(), "-", counter.fetch_add(1), ".partial");
    fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (fd < 0 && errno == EEXIST);
  return fd;
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path, size_t max_bytes) {
  constexpr size_t kChunkBytes = size_t{1} << 16;
  struct stat info;
  INTERP_ASSIGN_OR_RETURN(const OpenFile file, OpenForReading(path, /*flags=*/0, &info));
  const auto too_long = [&] {
    return ResourceExhausted("'", path, "' has more than ", max_bytes, " bytes");
  };
  // One byte more than the file has, so that its end is seen without growing again.
  const size_t expected = S_ISREG(info.st_mode) ? static_cast<size_t>(info.st_size) + 1 : 0;
  if (expected > max_bytes + 1) return too_long();
  std::string bytes;
  size_t used = 0;
  while (true) {
    if (bytes.size() == used)
      bytes.resize(used == 0 && expected > 0 ? expected : used + kChunkBytes);
    const ssize_t got = read(file.get(), &bytes[used], bytes.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError("read", path);
    if (got == 0) break;
    used += static_cast<size_t>(got);
    if (used > max_bytes) return too_long();
  }
  bytes.resize(used);
  return bytes;
}

absl::StatusOr<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::string& path) {
  struct stat info;
  // A pipe, which cannot be mapped, is not waited for.
  INTERP_ASSIGN_OR_RETURN(const OpenFile file, OpenForReading(path, O_NONBLOCK, &info));
  if (!S_ISREG(info.st_mode)) return InvalidArgument("'", path, "' is not a regular file");
  const auto size_bytes = static_cast<size_t>(info.st_size);
  if (size_bytes == 0) return std::shared_ptr<const MappedFile>(new MappedFile(nullptr, 0));
  // Few pages are ever written, so no memory is set aside for the others.
  void* data =
      mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file.get(), 0);
  if (data == MAP_FAILED) return SystemError("map", path);
  return std::shared_ptr<const MappedFile>(new MappedFile(static_cast<char*>(data), size_bytes));
}

MappedFile::~MappedFile() {
  if (size_bytes_ > 0) munmap(data_, size_bytes_);
}

namespace {

// What others may not read is to stay so. File systems without rights refuse.
void KeepRights(int fd, const struct stat& replaced) {
  const bool same_group = fchown(fd, static_cast<uid_t>(-1), replaced.st_gid) == 0;
  const mode_t rights = same_group ? 0777 : 0707;
  fchmod(fd, replaced.st_mode & rights);
}

}  // namespace

absl::StatusOr<FileWriter> FileWriter::Create(const std::string& path) {
  if (path.find('\0') != std::string::npos) return InvalidArgument("a path holds a zero byte");
  struct stat info;
  const bool exists = stat(path.c_str(), &info) == 0;
  if (exists && !S_ISREG(info.st_mode)) {
    const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) return SystemError("open", path);
    return FileWriter(fd, path, "");
  }
  INTERP_ASSIGN_OR_RETURN(const std::string target, ResolveLinks(path));
  std::string temporary;
  const int fd = CreateBeside(target, temporary);
  if (fd < 0) return SystemError("create", path);
  if (exists) KeepRights(fd, info);
  return FileWriter(fd, target, std::move(temporary));
}

FileWriter::FileWriter(FileWriter&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      pending_(std::move(other.pending_)),
      size_bytes_(other.size_bytes_) {}

FileWriter::~FileWriter() {
  if (fd_ < 0) return;
  close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

absl::Status FileWriter::Append(absl::string_view bytes) {
  constexpr size_t kMaxPendingBytes = size_t{1} << 16;
  size_bytes_ += bytes.size();
  if (pending_.size() + bytes.size() > kMaxPendingBytes) {
    INTERP_RETURN_IF_ERROR(Write(pending_));
    pending_.clear();
  }
  if (bytes.size() > kMaxPendingBytes) return Write(bytes);
  pending_.append(bytes.data(), bytes.size());
  return absl::OkStatus();
}

absl::Status FileWriter::Write(absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = write(fd_, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return SystemError("write", path_);
    bytes.remove_prefix(static_cast<size_t>(put));
  }
  return absl::OkStatus();
}

absl::Status FileWriter::Flush() {
  INTERP_RETURN_IF_ERROR(Write(pending_));
  pending_.clear();
  if (!temporary_.empty() && fsync(fd_) != 0) return SystemError("write", path_);
  return absl::OkStatus();
}

absl::Status FileWriter::Commit() {
  INTERP_RETURN_IF_ERROR(Flush());
  if (temporary_.empty()) {
    return close(std::exchange(fd_, -1)) == 0 ? absl::OkStatus() : SystemError("write", path_);
  }
  if (rename(temporary_.c_str(), path_.c_str()) != 0) return SystemError("replace", path_);
  close(std::exchange(fd_, -1));
  return absl::OkStatus();
}

}  // namespace interp
