// BlockRunner: the sub-block of an op, as its kernel sees it.
#pragma once

#include <vector>

#include "core/status.h"
#include "core/variable.h"

namespace interp {

// Runs the block of an op's `sub_block` attribute. The interpreter implements it on a frame that is
// kept: a warm activation allocates nothing and looks nothing up.
//
// The block reads and writes variables of enclosing blocks by itself (while's counter, say); the
// kernel touches only what OpDef::sub_block declares: it sets entries before an activation and
// reads results after it.
// Thread-safety: one kernel at a time, the one it was given to.
class BlockRunner {
 public:
  virtual ~BlockRunner() = default;

  // One activation: runs every op of the block once. Work on devices has been done when it returns
  // as far as the host can see its results. Errors: those of the block's ops, and Cancelled or
  // DeadlineExceeded when the run is to stop.
  virtual absl::Status Run() = 0;
  // Whether a gradient reads what activations leave.
  virtual bool saves() const = 0;
  // Run, and moves what the block's gradient reads into `record`, which replaces what the record
  // held.
  virtual absl::Status RunAndSave(StepRecord& record) = 0;
  // Of a gradient's block: takes the values of `record`, which is empty afterwards, and runs.
  virtual absl::Status RunOn(StepRecord& record) = 0;

  // Variables of the block, by position in SubBlock::entries and SubBlock::results.
  Variable& entry(size_t i) const { return *entries_[i]; }
  Variable& result(size_t i) const { return *results_[i]; }
  size_t num_entries() const { return entries_.size(); }
  size_t num_results() const { return results_.size(); }

 protected:
  std::vector<Variable*> entries_;
  std::vector<Variable*> results_;
};

}  // namespace interp
