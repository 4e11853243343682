// What MXNet keeps in a record of a picture: a header with labels, then the encoded picture.
//
//   u32 flag | f32 label | u64 id | u64 id2 | flag labels, f32 each | picture
//
// flag 0: the one label is in the header; else it is the number of labels behind it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/status.h"

namespace interp {

// Any labels in a fixed order, NaN included.
struct LabelsLess {
  bool operator()(const std::vector<float>& a, const std::vector<float>& b) const;
};

struct ImageRecord {
  std::vector<float> labels;
  uint64_t id = 0;
  uint64_t id2 = 0;
  absl::string_view picture;  // a view of the payload
};

// Errors: DataLoss for a payload that is shorter than its header says.
absl::StatusOr<ImageRecord> ParseImageRecord(absl::string_view payload);

// The payload of a record. One label goes into the header.
std::string FormatImageRecord(const ImageRecord& record);

}  // namespace interp
