#include "tools/picture_list.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/errno_status.h"

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
  if (absl::StrContains(line, '\0')) return InvalidArgument("holds a zero byte");
  ListedPicture picture{.path = std::string(absl::StripAsciiWhitespace(cells.back()))};
  // im2rec's own lists may say 7.0.
  double id = 0;
  if (!absl::SimpleAtod(cells[0], &id) || id < 0 || id != std::floor(id) || id >= 0x1p53) {
    return InvalidArgument("'", absl::Utf8SafeCEscape(cells[0]), "' is no number from 0 on");
  }
  picture.id = static_cast<uint64_t>(id);
  for (size_t i = 1; i + 1 < cells.size(); ++i) {
    float label = 0;
    if (!absl::SimpleAtof(cells[i], &label) || std::isinf(label)) {
      return InvalidArgument("label '", absl::Utf8SafeCEscape(cells[i]), "' is no number",
                             std::isinf(label) ? " of 32 bits" : "");
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

// The pictures in `folder` and those below it, links to folders included, with paths that begin
// with `below`. `chain`: the folders that it lies in, without links.
absl::Status CollectPictures(const fs::path& folder, const fs::path& below,
                             std::vector<fs::path>& chain, std::vector<fs::path>& pictures) {
  std::error_code error;
  const fs::path real = fs::canonical(folder, error);
  if (!error && std::ranges::find(chain, real) != chain.end()) {
    return InvalidArgument("'", folder.string(), "' is a link to a folder that it lies in");
  }
  chain.push_back(real);
  fs::directory_iterator it;
  if (!error) it = fs::directory_iterator(folder, error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    std::error_code ignored;
    const fs::path path = below / it->path().filename();
    if (it->is_directory(ignored)) {
      INTERP_RETURN_IF_ERROR(CollectPictures(it->path(), path, chain, pictures));
    } else if (IsPicture(path)) {
      pictures.push_back(path);
    }
  }
  chain.pop_back();
  if (!error) return absl::OkStatus();
  return ErrnoStatus(error.value(), absl::StrCat("cannot list '", folder.string(), "'"));
}

}  // namespace

absl::StatusOr<PictureList> ParsePictureList(absl::string_view text) {
  PictureList list;
  absl::flat_hash_set<uint64_t> ids;
  absl::ConsumePrefix(&text, "\xef\xbb\xbf");  // of editors that mark UTF-8
  size_t number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripSuffix(line, "\r");
    if (absl::StripAsciiWhitespace(line).empty()) continue;
    absl::StatusOr<ListedPicture> picture = ParseLine(line);
    if (!picture.ok()) return Annotate(picture.status(), absl::StrCat("line ", number));
    if (!ids.insert(picture->id).second) {
      return InvalidArgument("line ", number, ": number ", picture->id,
                             " is there a second time; a record's number is its key in the index");
    }
    list.pictures.push_back(*std::move(picture));
  }
  return list;
}

absl::Status CheckListable(const PictureList& list) {
  for (const ListedPicture& picture : list.pictures) {
    const bool breaks = picture.path.find_first_of("\t\n\r") != std::string::npos;
    if (!breaks && absl::StripAsciiWhitespace(picture.path) == picture.path) continue;
    return InvalidArgument("'", absl::Utf8SafeCEscape(picture.path),
                           "' cannot stand in a list: it has a tab, a line break, or a space at an "
                           "end");
  }
  for (const std::string& name : list.label_names) {
    if (name.find_first_of("\n\r") == std::string::npos) continue;
    return InvalidArgument("'", absl::Utf8SafeCEscape(name), "' cannot stand in a line");
  }
  return absl::OkStatus();
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
  std::vector<fs::path> chain;
  std::vector<fs::path> paths;
  INTERP_RETURN_IF_ERROR(CollectPictures(folder, "", chain, paths));
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
