// Pictures into record files.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/io/file.h"
#include "core/status.h"
#include "tools/picture_list.h"

namespace interp {

enum class Encoding { kKeep, kJpeg, kPng };

struct PackOptions {
  std::string root;                     // before the paths of the list
  int shorter_side = 0;                 // pictures with a longer one are resized; 0: none
  bool centre_crop = false;             // the middle square
  Encoding encoding = Encoding::kKeep;  // what is resized or cropped without it becomes JPEG
  int quality = 95;                     // of JPEG
  bool pass_through = false;            // files are not even looked into
  bool skip_damaged = false;
  int threads = 1;
  int parts = 1;                       // "train_0.rec", "train_1.rec", ... of "train.rec"
  size_t max_bytes = size_t{1} << 30;  // of a file, and of its pixels together
};

struct PackReport {
  std::vector<std::string> files;
  uint64_t num_records = 0;
  uint64_t size_bytes = 0;
  std::vector<size_t> packed = {};        // positions in the list
  std::vector<std::string> skipped = {};  // what was wrong with each picture that was left out
};

// The names of the files: `path` itself for one part.
std::vector<std::string> PartPaths(const std::string& path, int parts);

// Files that are written, but not yet committed, of what was packed.
using FilesOfReport = std::function<absl::StatusOr<std::vector<FileWriter>>(const PackReport&)>;

// Packs the pictures in their order; a record's key is the picture's id. `progress` is called with
// the number of pictures that are done; `stop` ends the packing with kCancelled. The files appear
// together, at the end, when all of them and those of `beside` are on the disk. Errors: those of
// ReadPicture and of RecordWriter; InvalidArgument for what is no regular file and for records that
// are too large.
absl::StatusOr<PackReport> PackPictures(const PictureList& list, const std::string& path,
                                        const PackOptions& options,
                                        const std::function<void(size_t done)>& progress,
                                        const std::atomic<bool>& stop,
                                        const FilesOfReport& beside = nullptr);

}  // namespace interp
