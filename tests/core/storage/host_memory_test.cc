// Pinned and shared memory, between processes where that is what matters.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "core/storage/pool.h"
#include "core/storage/shared_memory.h"
#include "tests/testing/matchers.h"

namespace interp {
namespace {

using testing::FailsWith;
using testing::IsOk;

// A child process, which ends with 0 when `body` returns true.
class Child {
 public:
  explicit Child(const std::function<bool()>& body) : pid_(fork()) {
    if (pid_ == 0) _exit(body() ? 0 : 1);
  }
  // Whether it ended well.
  bool Wait() {
    int status = 0;
    return waitpid(pid_, &status, 0) == pid_ && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  void Kill() {
    kill(pid_, SIGKILL);
    int status = 0;
    waitpid(pid_, &status, 0);
  }

 private:
  const pid_t pid_;
};

// One byte through a pipe: "I am as far as this".
class Signal {
 public:
  Signal() { EXPECT_EQ(pipe(ends_), 0); }
  ~Signal() {
    close(ends_[0]);
    close(ends_[1]);
  }
  void Send() {
    const char byte = 1;
    [[maybe_unused]] const ssize_t sent = write(ends_[1], &byte, 1);
  }
  void Await() {
    char byte = 0;
    [[maybe_unused]] const ssize_t received = read(ends_[0], &byte, 1);
  }

 private:
  int ends_[2] = {};
};

std::string UniqueName(const char* name) { return absl::StrCat("test-", getpid(), "-", name); }
std::string FileOf(const std::string& name) { return "/interp." + name; }

bool Exists(const std::string& name) {
  const int file = shm_open(FileOf(name).c_str(), O_RDONLY, 0);
  if (file >= 0) close(file);
  return file >= 0;
}

// Bytes under a segment's name that SharedMemory did not write. Gone with the object.
class ForeignFile {
 public:
  ForeignFile(const std::string& name, const std::vector<uint64_t>& words, size_t bytes)
      : path_(FileOf(name)), file_(shm_open(path_.c_str(), O_RDWR | O_CREAT, 0600)) {
    EXPECT_EQ(ftruncate(file_, static_cast<off_t>(bytes)), 0);
    const size_t size = words.size() * sizeof(uint64_t);
    EXPECT_EQ(pwrite(file_, words.data(), size, 0), static_cast<ssize_t>(size));
  }
  ~ForeignFile() {
    close(file_);
    shm_unlink(path_.c_str());
  }

 private:
  const std::string path_;
  const int file_;
};

TEST(PinnedMemoryTest, IsWritableAndGivenBack) {
  const auto source = MakeHostMemory(HostMemory::kPinned);
  const absl::StatusOr<void*> memory = source->Take(10'000);
  ASSERT_THAT(memory, IsOk());
  std::memset(*memory, 1, 10'000);
  source->Give(*memory, 10'000);
  EXPECT_THAT(source->Take(std::numeric_limits<size_t>::max()),
              FailsWith(absl::StatusCode::kResourceExhausted, ""));
}

// In a child, whose limit and rights are its own.
TEST(PinnedMemoryTest, TheLimitOfTheProcessIsToldWhenItIsReached) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers make mlock do nothing";
#endif
  Child child([] {
    const rlimit limit = {256 << 10, 256 << 10};
    if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0) return false;
    if (geteuid() == 0 && seteuid(65534) != 0) return false;  // root may lock everything
    const auto pool = *Pool::Create(MakeHostMemory(HostMemory::kPinned));
    // The usual chunk of 1 MiB is too much; a small one is not.
    const absl::StatusOr<BufferRef> fits = pool->Allocate(100 << 10);
    const absl::StatusOr<BufferRef> over = pool->Allocate(200 << 10);
    return fits.ok() && absl::IsResourceExhausted(over.status()) &&
           absl::StrContains(over.status().message(), "at most 262144 bytes (RLIMIT_MEMLOCK");
  });
  EXPECT_TRUE(child.Wait());
}

TEST(SharedMemoryTest, AnotherProcessSeesTheBytes) {
  const std::string name = UniqueName("seen");
  auto made = SharedMemory::Create(10'000, name);
  ASSERT_THAT(made, IsOk());
  EXPECT_EQ((*made)->name(), name);
  EXPECT_EQ(static_cast<char*>((*made)->data())[9'999], 0);
  std::strcpy(static_cast<char*>((*made)->data()), "from the parent");
  Child child([&] {
    auto seen = SharedMemory::Open(name, Access::kReadWrite);
    if (!seen.ok() || (*seen)->size_bytes() != 10'000) return false;
    char* const text = static_cast<char*>((*seen)->data());
    if (std::strcmp(text, "from the parent") != 0) return false;
    std::strcpy(text, "from the child");
    return true;
  });
  EXPECT_TRUE(child.Wait());
  EXPECT_STREQ(static_cast<char*>((*made)->data()), "from the child");
  made->reset();
  EXPECT_FALSE(Exists(name));
}

TEST(SharedMemoryTest, MappingsForReadingCannotBeWritten) {
  const auto made = SharedMemory::Create(100);
  ASSERT_THAT(made, IsOk());
  auto seen = SharedMemory::Open((*made)->name(), Access::kRead);
  ASSERT_THAT(seen, IsOk());
  EXPECT_FALSE((*seen)->writable());
  Child child([&] {
    signal(SIGSEGV, SIG_DFL);  // a sanitizer's handler would report it
    *static_cast<char*>((*seen)->data()) = 1;
    return true;
  });
  EXPECT_FALSE(child.Wait());
  const BufferRef buffer = ToBuffer(*std::move(seen));
  EXPECT_FALSE(buffer->writable);
  EXPECT_EQ(buffer->size_bytes, 100u);
}

TEST(SharedMemoryTest, TheLastToLetGoRemovesTheName) {
  auto made = SharedMemory::Create(100);
  ASSERT_THAT(made, IsOk());
  const std::string name = (*made)->name();
  auto seen = SharedMemory::Open(name, Access::kRead);
  ASSERT_THAT(seen, IsOk());
  BufferRef buffer = ToBuffer(*std::move(seen));
  made->reset();
  EXPECT_TRUE(Exists(name));
  BufferRef other = buffer;
  buffer.reset();
  EXPECT_TRUE(Exists(name));
  other.reset();
  EXPECT_FALSE(Exists(name));
  EXPECT_THAT(SharedMemory::Open(name, Access::kRead),
              FailsWith(absl::StatusCode::kNotFound, name));
}

// A child of fork has the mapping and, although the parent lets go, the name.
TEST(SharedMemoryTest, ForkSharesTheSegment) {
  auto made = SharedMemory::Create(100);
  ASSERT_THAT(made, IsOk());
  const std::string name = (*made)->name();
  Signal go;
  Child child([&] {
    go.Await();
    return SharedMemory::Open(name, Access::kRead).ok();
  });
  made->reset();
  EXPECT_TRUE(Exists(name));
  go.Send();
  EXPECT_TRUE(child.Wait());
  ReapOrphanedSharedMemory();
  EXPECT_FALSE(Exists(name));
}

TEST(SharedMemoryTest, NamesAndSizesAreChecked) {
  const std::string name = UniqueName("taken");
  const auto made = SharedMemory::Create(0, name);
  ASSERT_THAT(made, IsOk());
  EXPECT_EQ((*made)->size_bytes(), 0u);
  EXPECT_THAT(SharedMemory::Create(10, name), FailsWith(absl::StatusCode::kAlreadyExists, name));
  EXPECT_THAT(SharedMemory::Open(name, Access::kRead), IsOk());
  for (const std::string& bad : {std::string("a/b"), std::string(201, 'a'), std::string("a b")}) {
    EXPECT_THAT(SharedMemory::Create(10, bad),
                FailsWith(absl::StatusCode::kInvalidArgument, "no name"));
  }
  EXPECT_THAT(SharedMemory::Open("", Access::kRead),
              FailsWith(absl::StatusCode::kInvalidArgument, "no name"));
  for (const size_t size : {std::numeric_limits<size_t>::max(), size_t{1} << 62}) {
    EXPECT_THAT(SharedMemory::Create(size, UniqueName("huge")),
                FailsWith(absl::StatusCode::kResourceExhausted, ""));
    EXPECT_FALSE(Exists(UniqueName("huge")));
  }
}

TEST(SharedMemoryTest, DamagedSegmentsAreErrors) {
  uint64_t magic = 0;
  std::memcpy(&magic, "interpS1", 8);
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t max = std::numeric_limits<uint64_t>::max();
  const std::string name = UniqueName("damaged");
  struct Case {
    std::vector<uint64_t> words;
    size_t bytes;
    absl::StatusCode code;
  };
  const std::vector<Case> cases = {
      {{}, 0, absl::StatusCode::kFailedPrecondition},                    // just created
      {{}, 2 * page, absl::StatusCode::kFailedPrecondition},             // no header yet
      {{0, page, 10}, 2 * page, absl::StatusCode::kFailedPrecondition},  // no magic yet
      {{magic, page}, 16, absl::StatusCode::kFailedPrecondition},        // cut off
      {{magic, page, 10}, page - 1, absl::StatusCode::kDataLoss},        // less than a header
      {{magic, page, page + 1}, 2 * page, absl::StatusCode::kDataLoss},  // more than there is
      {{magic, page, max}, 2 * page, absl::StatusCode::kDataLoss},       // overflows
      {{magic, max, 10}, 2 * page, absl::StatusCode::kDataLoss},         // header of any size
      {{magic, 0, 10}, 2 * page, absl::StatusCode::kDataLoss},
  };
  for (const Case& c : cases) {
    const ForeignFile file(name, c.words, c.bytes);
    EXPECT_THAT(SharedMemory::Open(name, Access::kRead), FailsWith(c.code, name));
    EXPECT_TRUE(Exists(name)) << "what is not understood is left alone";
  }
}

// Reaps until the orphan is gone: another process may be looking at it at this moment (a test
// beside this one that makes its first segment), and what is looked at is left to the one that
// looks.
bool ReapedInTime(const std::string& name, ReapedSegments* reaped = nullptr) {
  for (int i = 0; i < 10'000; ++i) {
    const ReapedSegments now = ReapOrphanedSharedMemory();
    if (reaped != nullptr && now.count > 0) *reaped = now;
    if (!Exists(name)) return true;
    usleep(1000);
  }
  return false;
}

TEST(SharedMemoryTest, SegmentsOfKilledProcessesAreReaped) {
  const std::string name = UniqueName("orphan");
  Signal made;
  Child child([&] {
    auto memory = SharedMemory::Create(100'000, name);
    made.Send();
    pause();
    return memory.ok();
  });
  made.Await();
  ASSERT_THAT(SharedMemory::Open(name, Access::kRead), IsOk());
  ReapOrphanedSharedMemory();
  EXPECT_TRUE(Exists(name)) << "its process lives";
  child.Kill();
  ReapedSegments reaped;
  EXPECT_TRUE(ReapedInTime(name, &reaped));
  // None when a process beside this one was faster.
  if (reaped.count > 0) {
    EXPECT_GE(reaped.bytes, 100'000u);
  }
}

// What one process still uses is no orphan, although its creator was killed.
TEST(SharedMemoryTest, TheOthersKeepWhatAKilledProcessMade) {
  const std::string name = UniqueName("inherited");
  Signal made;
  Child child([&] {
    auto memory = SharedMemory::Create(100, name);
    if (memory.ok()) std::strcpy(static_cast<char*>((*memory)->data()), "legacy");
    made.Send();
    pause();
    return true;
  });
  made.Await();
  auto kept = SharedMemory::Open(name, Access::kReadWrite);
  ASSERT_THAT(kept, IsOk());
  child.Kill();
  ReapOrphanedSharedMemory();
  EXPECT_TRUE(Exists(name));
  EXPECT_STREQ(static_cast<char*>((*kept)->data()), "legacy");
  kept->reset();
  EXPECT_FALSE(Exists(name));
}

// A process killed at any moment of making or opening segments leaves nothing that stays.
TEST(SharedMemoryTest, KilledAtAnyMoment) {
  const std::string name = UniqueName("moment");
  for (int round = 0; round < 20; ++round) {
    Signal started;
    Child child([&] {
      started.Send();
      for (;;) {
        auto made = SharedMemory::Create(5000, name);
        auto seen = SharedMemory::Open(name, Access::kRead);
        auto automatic = SharedMemory::Create(10);
      }
      return true;
    });
    started.Await();
    usleep(static_cast<useconds_t>(round * 150));
    child.Kill();
    EXPECT_TRUE(ReapedInTime(name));
    EXPECT_THAT(SharedMemory::Create(10, name), IsOk());
  }
}

// Processes that make, open and drop one name all the time see it whole or not at all.
TEST(SharedMemoryTest, ProcessesRaceForOneName) {
  const std::string name = UniqueName("race");
  const auto race = [&] {
    for (int i = 0; i < 300; ++i) {
      const auto made = SharedMemory::Create(64, name);
      if (!made.ok() && !absl::IsAlreadyExists(made.status())) return false;
      const auto seen = SharedMemory::Open(name, Access::kRead);
      if (seen.ok() && (*seen)->size_bytes() != 64) return false;
      if (!seen.ok() && !absl::IsNotFound(seen.status()) &&
          !absl::IsFailedPrecondition(seen.status())) {
        return false;
      }
      if (i % 10 == 0) ReapOrphanedSharedMemory();
    }
    return true;
  };
  Child a(race);
  Child b(race);
  Child c(race);
  EXPECT_TRUE(a.Wait());
  EXPECT_TRUE(b.Wait());
  EXPECT_TRUE(c.Wait());
  ReapOrphanedSharedMemory();
  EXPECT_FALSE(Exists(name));
}

TEST(SharedMemorySourceTest, AnotherProcessOpensWhatAPoolHandedOut) {
  const auto source = std::make_shared<SharedMemorySource>();
  const auto pool = *Pool::Create(source, {.min_chunk_bytes = 64 << 10});
  const absl::StatusOr<BufferRef> first = pool->Allocate(1000);
  const absl::StatusOr<BufferRef> second = pool->Allocate(1000);
  ASSERT_THAT(second, IsOk());
  std::strcpy(static_cast<char*>((*second)->data), "without a copy");
  const auto at = source->Locate((*second)->data);
  ASSERT_THAT(at, IsOk());
  EXPECT_GT(at->offset_bytes, 1000u);
  Child child([&] {
    const auto seen = SharedMemory::Open(at->segment, Access::kRead);
    return seen.ok() && std::strcmp(static_cast<char*>((*seen)->data()) + at->offset_bytes,
                                    "without a copy") == 0;
  });
  EXPECT_TRUE(child.Wait());
  int elsewhere = 0;
  EXPECT_THAT(source->Locate(&elsewhere), FailsWith(absl::StatusCode::kNotFound, "not of this"));
}

TEST(SharedMemorySourceTest, ThePoolGivesSegmentsBack) {
  const auto source = std::make_shared<SharedMemorySource>();
  const auto pool = *Pool::Create(source);
  std::string segment;
  {
    const absl::StatusOr<BufferRef> buffer = pool->Allocate(1000);
    ASSERT_THAT(buffer, IsOk());
    segment = source->Locate((*buffer)->data)->segment;
  }
  EXPECT_TRUE(Exists(segment));
  EXPECT_GT(pool->Trim(), 0u);
  EXPECT_FALSE(Exists(segment));
}

}  // namespace
}  // namespace interp
