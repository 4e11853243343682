// Checkpoints: what continues training to the same bits, in a folder.
//
//   DIR/step-12/state.txt             steps, position in the data, random numbers, names
//   DIR/step-12/persistables.pdiparams
//
// A checkpoint is written to a folder beside its place, brought to the disk and renamed: whoever
// looks sees all of it or nothing, whenever the process was killed.
#pragma once

#include <optional>
#include <string>

#include "core/status.h"
#include "interpreter/train/batch_loader.h"
#include "interpreter/train/trainer.h"

namespace interp {

// Writes DIR/step-N of the trainer, which stands before the batch `next` of data in the order of
// `shuffle_seed`; then removes all checkpoints but the last `keep`. Makes DIR when missing.
// REQUIRES: keep > 0.
absl::Status WriteCheckpoint(const std::string& dir, Trainer& trainer, DataPosition next,
                             uint64_t shuffle_seed, int keep);

// Makes DIR when missing. Errors: those of the file system, also for a folder that cannot be
// written; InvalidArgument for one with checkpoints, which a training that does not go on from them
// would mix with its own.
absl::Status PrepareCheckpoints(const std::string& dir, bool resume);

// Sets the trainer to the newest checkpoint of DIR and returns the position in its data; nullopt
// when there is none. Errors: DataLoss for a damaged one; InvalidArgument for one of other
// variables or of another shuffle seed.
absl::StatusOr<std::optional<DataPosition>> ReadCheckpoint(const std::string& dir, Trainer& trainer,
                                                           uint64_t shuffle_seed);

}  // namespace interp
