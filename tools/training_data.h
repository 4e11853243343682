// The files that `interp train --data` names.
#pragma once

#include <string>
#include <vector>

#include "core/status.h"
#include "interpreter/plan/plan.h"
#include "interpreter/train/dataset.h"

namespace interp {

// Reads all samples into memory. Each argument is FILE or NAME=FILE:
//   file.npz        one array per feed, by name
//   folder          NAME.npy for each feed
//   file.npy        the feed NAME, without NAME= the file's name
//   file.csv        see core/io/csv.h
//   idx files       of MNIST; without NAME= images go to the only feed of floats, labels to the
//                   only one of integers
// gzip-compressed idx and csv files (.gz) are taken as they are. Errors start with the argument;
// ResourceExhausted where the text of a file, or the arrays of a file or folder, take more than
// `max_bytes`.
absl::StatusOr<Dataset> ReadTrainingData(const std::vector<std::string>& arguments,
                                         const std::vector<FeedSpec>& feeds, size_t max_bytes);

}  // namespace interp
