#include "tools/training_data.h"

#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/errno_status.h"
#include "core/io/csv.h"
#include "core/io/file.h"
#include "core/io/idx.h"
#include "core/io/npy.h"
#include "core/io/npz.h"

namespace interp {
namespace {

namespace fs = std::filesystem;

// The content of a file, decompressed where gzip has compressed it.
absl::StatusOr<std::string> ReadText(const std::string& path, size_t max_bytes) {
  if (!absl::EndsWith(path, ".gz")) return ReadFile(path, max_bytes);
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (file == nullptr) return ErrnoStatus(errno, absl::StrCat("cannot open '", path, "'"));
  std::string text;
  char buffer[1 << 16];
  while (true) {
    const int count = gzread(file.get(), buffer, sizeof(buffer));
    if (count < 0) return DataLoss("'", path, "' is damaged: gzip cannot read it");
    if (count == 0) break;
    text.append(buffer, static_cast<size_t>(count));
    if (text.size() > max_bytes) {
      return ResourceExhausted("'", path, "' holds more than ", max_bytes, " bytes");
    }
  }
  // zlib takes the end of a file that was cut off for the end of the data.
  if (gzeof(file.get()) == 0) return DataLoss("'", path, "' is cut off");
  return text;
}

bool IsInteger(DType dtype) {
  return dtype == DType::kInt64 || dtype == DType::kInt32 || dtype == DType::kInt16 ||
         dtype == DType::kInt8 || dtype == DType::kUInt8;
}

// The only feed that idx data of that kind can mean.
absl::StatusOr<std::string> FeedForIdx(const Tensor& data, const std::vector<FeedSpec>& feeds) {
  const bool labels = data.shape.rank() <= 1;
  std::vector<std::string> fitting;
  for (const FeedSpec& feed : feeds) {
    if (IsInteger(feed.dtype) == labels) fitting.push_back(feed.name);
  }
  if (fitting.size() == 1) return fitting[0];
  return InvalidArgument("holds ", labels ? "labels" : "images", ", and ", fitting.size(),
                         " feeds are ", labels ? "integers" : "floats", "; say NAME=FILE");
}

absl::StatusOr<std::vector<NamedTensor>> ReadFolder(const std::string& path,
                                                    const std::vector<FeedSpec>& feeds,
                                                    size_t max_bytes) {
  std::vector<NamedTensor> arrays;
  for (const FeedSpec& feed : feeds) {
    const std::string file = absl::StrCat(path, "/", feed.name, ".npy");
    std::error_code error;  // also of names that no file can have
    if (!fs::exists(file, error)) continue;
    INTERP_ASSIGN_OR_RETURN(Tensor array, ReadNpy(file, max_bytes));
    max_bytes -= std::min(max_bytes, array.size_bytes());  // all files of the folder together
    arrays.emplace_back(feed.name, std::move(array));
  }
  if (arrays.empty()) return NotFound("the folder has no .npy file named like a feed");
  return arrays;
}

absl::StatusOr<std::vector<NamedTensor>> ReadOne(const std::string& name, const std::string& path,
                                                 const std::vector<FeedSpec>& feeds,
                                                 size_t max_bytes) {
  std::error_code error;
  if (fs::is_directory(path, error)) return ReadFolder(path, feeds, max_bytes);
  if (absl::EndsWith(path, ".npz")) return ReadNpz(path, max_bytes);
  if (absl::EndsWith(path, ".npy")) {
    INTERP_ASSIGN_OR_RETURN(Tensor array, ReadNpy(path, max_bytes));
    return std::vector<NamedTensor>{
        {name.empty() ? fs::path(path).stem().string() : name, std::move(array)}};
  }
  // Pipes may bring data, but a device has no end.
  if (fs::is_character_file(path, error)) {
    return InvalidArgument("'", path, "' is a device, expected a file");
  }
  INTERP_ASSIGN_OR_RETURN(const std::string text, ReadText(path, max_bytes));
  if (IsIdx(text)) {
    INTERP_ASSIGN_OR_RETURN(Tensor array, ParseIdx(text, max_bytes));
    std::string feed = name;
    if (feed.empty()) {
      INTERP_ASSIGN_OR_RETURN(feed, FeedForIdx(array, feeds));
    }
    return std::vector<NamedTensor>{{feed, std::move(array)}};
  }
  if (absl::EndsWith(absl::StripSuffix(path, ".gz"), ".csv")) {
    absl::flat_hash_set<std::string> integers;
    for (const FeedSpec& feed : feeds) {
      if (IsInteger(feed.dtype)) integers.insert(feed.name);
    }
    return ParseCsv(text, max_bytes, integers);
  }
  return InvalidArgument(
      "is no data: expected .npz, .npy, .csv, .rec, .slot, an idx file or a folder of .npy");
}

// NAME=FILE, or FILE alone. A path may have an equals sign, too.
std::pair<std::string, std::string> SplitArgument(const std::string& argument,
                                                  const std::vector<FeedSpec>& feeds) {
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(argument, absl::MaxSplits('=', 1));
  const bool named = absl::StrContains(argument, '=') &&
                     std::any_of(feeds.begin(), feeds.end(),
                                 [&](const FeedSpec& feed) { return feed.name == parts.first; });
  return named ? parts : std::pair(std::string(), argument);
}

// NotFound for a file that is not there and looks like NAME=FILE.
absl::Status CheckNamesFeed(const std::string& argument, const std::vector<FeedSpec>& feeds) {
  std::error_code error;
  const size_t equals = argument.find('=');
  if (equals == std::string::npos || fs::exists(argument, error)) return absl::OkStatus();
  const auto add_name = [](std::string* text, const FeedSpec& feed) { *text += feed.name; };
  return NotFound("no such file, and no feed '", argument.substr(0, equals),
                  "', there are: ", absl::StrJoin(feeds, " ", add_name));
}

absl::StatusOr<std::vector<NamedTensor>> ReadArgument(const std::string& argument,
                                                      const std::vector<FeedSpec>& feeds,
                                                      size_t max_bytes) {
  const auto [name, path] = SplitArgument(argument, feeds);
  if (name.empty()) INTERP_RETURN_IF_ERROR(CheckNamesFeed(argument, feeds));
  return ReadOne(name, path, feeds, max_bytes);
}

}  // namespace

absl::StatusOr<Dataset> ReadTrainingData(const std::vector<std::string>& arguments,
                                         const std::vector<FeedSpec>& feeds, size_t max_bytes) {
  std::vector<NamedTensor> arrays;
  absl::flat_hash_set<std::string> given;  // names of `arrays`
  for (const std::string& argument : arguments) {
    absl::StatusOr<std::vector<NamedTensor>> read = ReadArgument(argument, feeds, max_bytes);
    // Some errors start with the file, some do not know it.
    if (absl::StartsWith(read.status().message(), absl::StrCat(argument, ": "))) {
      return read.status();
    }
    if (!read.ok()) return Annotate(read.status(), argument);
    for (NamedTensor& array : *read) {
      if (!given.insert(array.first).second) {
        return InvalidArgument(argument, ": gives '", array.first, "' a second time");
      }
      arrays.push_back(std::move(array));
    }
  }
  return FitDataset(arrays, feeds);
}

}  // namespace interp
