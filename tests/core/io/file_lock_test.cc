#include "core/io/file_lock.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

#include "tests/testing/matchers.h"
#include "tests/testing/temp_folder.h"

namespace interp {
namespace {

using testing::FailsWith;
using testing::IsOk;
using testing::TempFolder;

TEST(FileLock, OneAtATime) {
  const TempFolder folder;
  std::optional<absl::StatusOr<FileLock>> first(FileLock::Take(folder / "lock"));
  ASSERT_THAT(*first, IsOk());
  EXPECT_THAT(FileLock::Take(folder / "lock"),
              FailsWith(absl::StatusCode::kFailedPrecondition, "is locked"));
  first.reset();
  EXPECT_THAT(FileLock::Take(folder / "lock"), IsOk());
}

TEST(FileLock, GoesWithItsProcess) {
  const TempFolder folder;
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto lock = FileLock::Take(folder / "lock");
    (void)!write(ready[1], lock.ok() ? "y" : "n", 1);
    pause();
    _exit(0);
  }
  char taken = 0;
  ASSERT_EQ(read(ready[0], &taken, 1), 1);
  EXPECT_EQ(taken, 'y');
  EXPECT_THAT(FileLock::Take(folder / "lock"),
              FailsWith(absl::StatusCode::kFailedPrecondition, "is locked"));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_THAT(FileLock::Take(folder / "lock"), IsOk());
  close(ready[0]);
  close(ready[1]);
}

TEST(FileLock, SaysWhichFileCannotBeMade) {
  const TempFolder folder;
  EXPECT_THAT(FileLock::Take(folder / "none/lock"),
              FailsWith(absl::StatusCode::kNotFound, "none/lock"));
}

}  // namespace
}  // namespace interp
