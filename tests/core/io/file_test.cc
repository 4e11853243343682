#include "core/io/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "tests/testing/temp_folder.h"

namespace interp {
namespace {

using ::testing::IsEmpty;
using testing::TempFolder;

void Write(const std::string& path, absl::string_view bytes) {
  absl::StatusOr<FileWriter> file = FileWriter::Create(path);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE(file->Append(bytes).ok());
  ASSERT_TRUE(file->Commit().ok());
}

std::vector<std::string> FilesIn(const TempFolder& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

TEST(FileTest, WhatIsWrittenIsReadAndMapped) {
  const TempFolder folder;
  std::string bytes("a\0b", 3);
  bytes.append(200'000, 'x');
  Write(folder / "f", bytes);
  EXPECT_EQ(*ReadFile(folder / "f"), bytes);
  EXPECT_EQ((*MappedFile::Open(folder / "f"))->bytes(), bytes);
  Write(folder / "empty", "");
  EXPECT_EQ(*ReadFile(folder / "empty"), "");
  EXPECT_EQ((*MappedFile::Open(folder / "empty"))->bytes(), "");
}

TEST(FileTest, ErrorsQuoteThePath) {
  const TempFolder folder;
  const std::string none = folder / "none";
  EXPECT_EQ(ReadFile(none).status(),
            absl::NotFoundError("cannot open '" + none + "': No such file or directory"));
  EXPECT_EQ(MappedFile::Open(none).status(), ReadFile(none).status());
  EXPECT_EQ(ReadFile(folder.path()).status(),
            absl::InvalidArgumentError("'" + folder.path() + "' is a directory"));
  EXPECT_EQ(ReadFile(std::string("a\0b", 3)).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FileWriter::Create(none + "/f").status().code(), absl::StatusCode::kNotFound);
}

TEST(FileTest, ReadingIsBounded) {
  const TempFolder folder;
  Write(folder / "f", "12345");
  EXPECT_EQ(*ReadFile(folder / "f", /*max_bytes=*/5), "12345");
  EXPECT_EQ(ReadFile(folder / "f", /*max_bytes=*/4).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReadFile("/dev/zero", /*max_bytes=*/1 << 20).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(MappedFile::Open("/dev/zero").status().message(), "'/dev/zero' is not a regular file");
}

TEST(FileTest, APipeIsNotWaitedForToBeMapped) {
  const TempFolder folder;
  ASSERT_EQ(mkfifo((folder / "f").c_str(), 0600), 0);
  EXPECT_EQ(MappedFile::Open(folder / "f").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(FileTest, NothingRemainsWithoutCommit) {
  const TempFolder folder;
  {
    absl::StatusOr<FileWriter> file = FileWriter::Create(folder / "f");
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->Append("half").ok());
    EXPECT_EQ(file->size_bytes(), 4);
  }
  EXPECT_THAT(FilesIn(folder), IsEmpty());
}

// In a container every process may be number 1, and one that was killed leaves such files.
TEST(FileTest, PartialFilesOfOthersAreNoHindrance) {
  const TempFolder folder;
  std::string last;  // as f.<process>-<number>.partial
  {
    const absl::StatusOr<FileWriter> file = FileWriter::Create(folder / "f");
    ASSERT_TRUE(file.ok());
    last = FilesIn(folder).at(0);
  }
  const size_t dash = last.rfind('-');
  const int number = std::stoi(last.substr(dash + 1));
  for (int next = number + 1; next <= number + 3; ++next) {
    std::ofstream(folder / (last.substr(0, dash + 1) + std::to_string(next) + ".partial")) << "old";
  }
  Write(folder / "f", "new");
  EXPECT_EQ(*ReadFile(folder / "f"), "new");
  EXPECT_EQ(FilesIn(folder).size(), 4U);  // what is not ours stays
}

TEST(FileTest, TheOldFileStaysUntilCommit) {
  const TempFolder folder;
  Write(folder / "f", "old");
  absl::StatusOr<FileWriter> file = FileWriter::Create(folder / "f");
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->Append("new").ok());
  EXPECT_EQ(*ReadFile(folder / "f"), "old");
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_EQ(*ReadFile(folder / "f"), "new");
  EXPECT_EQ(FilesIn(folder), std::vector<std::string>{"f"});
}

// A mapping keeps the file it was made of.
TEST(FileTest, ReplacingAFileLeavesMappingsAlone) {
  const TempFolder folder;
  Write(folder / "f", "old");
  const auto mapped = *MappedFile::Open(folder / "f");
  Write(folder / "f", "");
  EXPECT_EQ(mapped->bytes(), "old");
}

TEST(FileTest, WhoMayReadAFileStaysWhenItIsReplaced) {
  const TempFolder folder;
  namespace fs = std::filesystem;
  Write(folder / "f", "old");
  const fs::perms usual = fs::status(folder / "f").permissions();
  for (const fs::perms rights :
       {fs::perms::owner_read | fs::perms::owner_write, fs::perms::owner_all, usual}) {
    fs::permissions(folder / "f", rights);
    Write(folder / "f", "new");
    EXPECT_EQ(fs::status(folder / "f").permissions(), rights);
  }
}

TEST(FileTest, LinksAreFollowed) {
  const TempFolder folder;
  Write(folder / "f", "old");
  std::filesystem::create_symlink(folder / "f", folder / "link");
  Write(folder / "link", "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(*ReadFile(folder / "f"), "new");
  std::filesystem::create_symlink("made", folder / "early");  // its file is not there yet
  Write(folder / "early", "first");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "early"));
  EXPECT_EQ(*ReadFile(folder / "made"), "first");
  for (int i = 2; i <= 40; ++i) {  // as many as Linux follows
    std::filesystem::create_symlink(i == 2 ? "link" : absl::StrCat("l", i - 1),
                                    folder / absl::StrCat("l", i));
  }
  Write(folder / "l40", "far");
  EXPECT_EQ(*ReadFile(folder / "f"), "far");
  std::filesystem::create_symlink("self", folder / "self");
  EXPECT_FALSE(FileWriter::Create(folder / "self").ok());
}

TEST(FileTest, DevicesAreWrittenNotReplaced) {
  Write("/dev/null", "anything");
  struct stat info;
  ASSERT_EQ(stat("/dev/null", &info), 0);
  EXPECT_TRUE(S_ISCHR(info.st_mode));
}

}  // namespace
}  // namespace interp
