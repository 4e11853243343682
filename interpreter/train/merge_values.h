// MergeValues: one value of what was computed on several shares of a batch.
#pragma once

#include <vector>

#include "core/status.h"
#include "core/tensor.h"
#include "passes/train/split_update.h"

namespace interp {

// The values of one variable, made ready to be merged. The parts are summed in their order, element
// by element, so that the result has the same bits whoever merges which slice.
class MergedValue {
 public:
  // Checks the parts and gives the result memory: that of the first part where nobody else holds
  // it, which takes less of the caches. `weights`, one for each part, are their factors. Errors:
  // InvalidArgument for parts of different dtypes or shapes, and for integers that differ; those of
  // memory.
  absl::Status Begin(std::vector<Tensor> parts, Merge merge, const std::vector<double>& weights);
  // Slice `slice` of `count`. Thread-safety: different slices from different threads.
  void MergeSlice(int slice, int count);
  // Drops the parts. All slices are merged.
  void Finish() { parts_.clear(); }
  // After Finish, until Drop.
  const Tensor& result() const { return result_; }
  void Drop() { result_.DropMemory(); }

 private:
  absl::Status BeginMean();
  absl::Status BeginRows();

  std::vector<Tensor> parts_;
  Merge merge_ = Merge::kMean;
  std::vector<double> weights_;
  bool done_ = false;  // without slices
  Tensor result_;
};

}  // namespace interp
