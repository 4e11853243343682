// What a record file holds, and whether it is whole.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/io/image_record.h"
#include "core/io/recordio.h"
#include "core/status.h"

namespace interp {

// One record; of a picture's also what its header says.
struct RecordLine {
  uint64_t offset = 0;
  uint64_t size_bytes = 0;  // of the payload
  bool is_picture = false;
  uint64_t id = 0;
  std::vector<float> labels = {};
  std::string kind = {};  // "40 x 20 jpg"
};

struct RecordInfo {
  std::string path;
  uint64_t size_bytes = 0;
  std::vector<uint64_t> offsets;    // of all records
  std::vector<RecordLine> records;  // of all, where they are asked for
  int64_t num_pictures = 0;
  std::map<std::vector<float>, int64_t, LabelsLess> labels;  // how often each occurs
  Damage damage;
  std::string index;  // what is to be said of the index; empty: there is none
  bool index_is_wrong = false;

  bool is_whole() const { return damage.num_ranges == 0 && !index_is_wrong; }
};

// Reads all of the file. `list`: what is to be told of each record, too. Errors: those of
// MappedFile.
absl::StatusOr<RecordInfo> CollectRecordInfo(const std::string& path, bool list);

// `list`: with a line for each record.
std::string ToText(const RecordInfo& info, bool list);
std::string ToJson(const RecordInfo& info, bool list);

}  // namespace interp
