// Which pictures `interp pack` packs: a list as of MXNet's im2rec, or a folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/status.h"

namespace interp {

struct ListedPicture {
  uint64_t id = 0;
  std::vector<float> labels = {};
  std::string path;  // below the list's or the folder
};

struct PictureList {
  std::vector<ListedPicture> pictures;
  std::vector<std::string> label_names;  // of a folder: by label, the folders below it
};

// Lines "id<TAB>label...<TAB>path", one label or several; each id once, spaces around a cell do not
// count. Errors name the line: InvalidArgument.
absl::StatusOr<PictureList> ParsePictureList(absl::string_view text);
// The text that ParsePictureList reads.
std::string FormatPictureList(const PictureList& list);

// InvalidArgument for names that no line of a list, or of one of label names, can hold.
absl::Status CheckListable(const PictureList& list);

// All .jpg, .jpeg and .png files in a folder and those below it, links included, sorted by path and
// numbered from 0. The label is the number of the folder that holds the picture, of all such
// folders in order. Errors: those of the file system, InvalidArgument for a link to a folder that
// it lies in.
absl::StatusOr<PictureList> ListFolder(const std::string& folder);

}  // namespace interp
