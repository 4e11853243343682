// Record files as the data of `interp train`.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/status.h"
#include "interpreter/plan/plan.h"
#include "interpreter/train/image_records.h"

namespace interp {

struct RecordFlags {
  std::string image_feed;  // empty: the only one that can be
  std::string label_feed;
  std::vector<std::string> image;  // "size=224,fit=random", see tools/image_options.h
  int decode_threads = 0;          // 0: half of the usable CPUs
  bool skip_damaged = false;
};

void AddRecordFlags(CLI::App& command, RecordFlags& flags);

// Whether the argument of --data names a record file.
bool IsRecordFile(const std::string& argument);

// How the records are used: at random for training, always the same for evaluation.
struct RecordUse {
  bool random = true;
  uint64_t seed = 0;
  size_t max_bytes = 0;  // of a picture's pixels
};

// The records of all `paths`, one after another. What was damaged in them is added to `warnings`.
// Errors start with the path or the flag: those of RecordFile::Open and ImageRecords::Create,
// InvalidArgument for feeds that are not found or not clear and for options.
absl::StatusOr<std::shared_ptr<ImageRecords>> OpenRecords(const std::vector<std::string>& paths,
                                                          const std::vector<FeedSpec>& feeds,
                                                          const RecordFlags& flags,
                                                          const RecordUse& use,
                                                          std::vector<std::string>& warnings);

}  // namespace interp
