// SequenceRows: whether shares of a batch, weighted by their samples, give the batch's means.
//
// A sample of a feed with a LoD is a sequence. The mean of values that are one for each sequence
// (sequence_pool) is that of the shares, weighted by sequences. The mean of values that are one for
// each row of the sequences is not, where shares have other parts of the rows than of the
// sequences:
//
//   ids [[1 2 3] [9]] ──lookup──► 4 rows ──mean──► by rows 3/4 and 1/4; by sequences 1/2 and 1/2
//
// Ops whose outputs have a row for each sequence are known by name; all others may keep the rows.
// Rows that ops make or drop by the values of samples (sequence_erase, sequence_unpad) are not
// looked at. Thread-safety: const methods.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/program.h"
#include "core/status.h"
#include "core/tensor.h"
#include "interpreter/plan/plan.h"

namespace interp {

class SequenceRows {
 public:
  // Of no feeds: all batches are fine.
  SequenceRows() = default;
  // Looks for ways from each of `feeds` to the losses of block 0 (op_role 256 or 257; where no op
  // is marked, any value of the forward part may be one) and to `fetches` of which a mean is taken.
  // Takes feeds times ops.
  SequenceRows(const Program& main, const std::vector<std::string>& feeds,
               const std::vector<std::string>& fetches);

  // Unimplemented where `count` shares (SplitBatch) of a batch would be weighted wrongly; else the
  // errors of SplitBatch, where a feed that rows are used of has a LoD. `feeds`: those of the
  // constructor.
  absl::Status Check(absl::Span<const Tensor> batch, absl::Span<const FeedSpec> feeds,
                     int count) const;

 private:
  static constexpr int kUnused = std::numeric_limits<int>::max();
  // What a mean takes of a feed.
  struct Use {
    int pools = kUnused;  // the fewest ops on the way that leave a row for each sequence
    std::string mean;     // at the end of that way
  };

  std::vector<Use> uses_;  // by feed
};

}  // namespace interp
