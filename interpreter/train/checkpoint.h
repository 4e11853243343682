// Checkpoints: what continues training to the same bits, in a folder.
//
//   DIR/step-12/state.txt             where training stands, see checkpoint_state.h
//   DIR/step-12/persistables.pdiparams
//   DIR/.lock                         taken while somebody trains
//
// A checkpoint is written to a folder beside its place, brought to the disk and renamed: whoever
// looks sees all of it or nothing, whenever the process was killed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/io/file_lock.h"
#include "core/status.h"
#include "core/tensor.h"
#include "interpreter/train/batch_loader.h"
#include "interpreter/train/checkpoint_state.h"
#include "interpreter/train/trainer.h"

namespace interp {

// What a training goes on from.
struct Resumed {
  DataPosition next;
  std::string folder;  // DIR/step-N
  // Newer folders that cannot be used and what is wrong with each, the newest first.
  std::vector<std::string> passed_over = {};
};

// The folder of one training's checkpoints, locked while the object lives.
class Checkpoints {
 public:
  // Makes DIR when missing. Errors: FailedPrecondition when another training uses it; those of the
  // file system, also for a folder that cannot be written.
  static absl::StatusOr<Checkpoints> Open(const std::string& dir);

  // InvalidArgument when there are checkpoints, which a training that does not go on from them
  // would mix with its own.
  absl::Status CheckNone() const;

  // Writes DIR/step-N of the trainer, which stands before the batch `next`; then removes all that
  // are older but the last `keep`. REQUIRES: keep > 0.
  absl::Status Write(Trainer& trainer, DataPosition next, const DataOrder& order, int keep);

  // Sets the trainer to the newest checkpoint; nullopt when there is none. One that is incomplete
  // or damaged, as an interrupted copy leaves it, is passed over. Errors, which leave the trainer
  // as it was: DataLoss when none of them can be used; InvalidArgument for one of other variables
  // or of another order of the data. Dims may be others than the program declares where they are
  // those of the trainer's values, or all that differs are dims of 1 (CheckTaken).
  absl::StatusOr<std::optional<Resumed>> Restore(Trainer& trainer, const DataOrder& order) const;

 private:
  Checkpoints(std::string dir, FileLock lock) : dir_(std::move(dir)), lock_(std::move(lock)) {}

  const std::string dir_;
  FileLock lock_;
};

// Whether `path` is one checkpoint, DIR/step-N.
bool IsCheckpoint(const std::string& path);

// The values in the checkpoint DIR/step-N, sorted by name. Errors: DataLoss for one that is
// incomplete or damaged.
absl::StatusOr<std::vector<NamedTensor>> ReadCheckpointValues(const std::string& folder);

}  // namespace interp
