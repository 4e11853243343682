#include "tools/picture_list.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace interp {
namespace {

namespace fs = std::filesystem;

absl::StatusOr<ListedPicture> ParseLine(absl::string_view line) {
  const std::vector<absl::string_view> cells = absl::StrSplit(line, '\t');
  constexpr size_t kLeastCells = 3;
  if (cells.size() < kLeastCells) {
    return InvalidArgument("has ", cells.size(),
                           " cells separated by tabs, expected a number, labels and a path");
  }
  ListedPicture picture{.path = std::string(cells.back())};
  // im2rec's own lists may say 7.0.
  double id = 0;
  if (!absl::SimpleAtod(cells[0], &id) || id < 0 || id != std::floor(id) || id >= 0x1p53) {
    return InvalidArgument("'", cells[0], "' is no number from 0 on");
  }
  picture.id = static_cast<uint64_t>(id);
  for (size_t i = 1; i + 1 < cells.size(); ++i) {
    float label = 0;
    if (!absl::SimpleAtof(cells[i], &label)) {
      return InvalidArgument("label '", cells[i], "' is no number");
    }
    picture.labels.push_back(label);
  }
  if (picture.path.empty()) return InvalidArgument("the path is empty");
  return picture;
}

bool IsPicture(const fs::path& path) {
  const std::string ending = absl::AsciiStrToLower(path.extension().string());
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

}  // namespace

absl::StatusOr<PictureList> ParsePictureList(absl::string_view text) {
  PictureList list;
  size_t number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripSuffix(line, "\r");
    if (absl::StripAsciiWhitespace(line).empty()) continue;
    absl::StatusOr<ListedPicture> picture = ParseLine(line);
    if (!picture.ok()) return Annotate(picture.status(), absl::StrCat("line ", number));
    list.pictures.push_back(*std::move(picture));
  }
  return list;
}

std::string FormatPictureList(const PictureList& list) {
  std::string text;
  for (const ListedPicture& picture : list.pictures) {
    absl::StrAppend(&text, picture.id);
    for (const float label : picture.labels) absl::StrAppendFormat(&text, "\t%.9g", label);
    absl::StrAppend(&text, "\t", picture.path, "\n");
  }
  return text;
}

absl::StatusOr<PictureList> ListFolder(const std::string& folder) {
  std::error_code error;
  std::vector<fs::path> paths;
  fs::recursive_directory_iterator it(folder, error);
  while (!error && it != fs::recursive_directory_iterator()) {
    std::error_code ignored;
    if (IsPicture(it->path()) && it->is_regular_file(ignored)) {
      paths.push_back(it->path().lexically_relative(folder));
    }
    it.increment(error);
  }
  if (error) {
    return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot list '", folder, "'"));
  }
  std::ranges::sort(paths);
  PictureList list;
  for (const fs::path& path : paths) list.label_names.push_back(path.parent_path().string());
  std::ranges::sort(list.label_names);
  list.label_names.erase(std::unique(list.label_names.begin(), list.label_names.end()),
                         list.label_names.end());
  for (const fs::path& path : paths) {
    const auto label = std::ranges::lower_bound(list.label_names, path.parent_path().string()) -
                       list.label_names.begin();
    list.pictures.push_back(
        {.id = list.pictures.size(), .labels = {static_cast<float>(label)}, .path = path.string()});
  }
  return list;
}

}  // namespace interp
