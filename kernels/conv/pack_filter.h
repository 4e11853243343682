// Filters of convolutions, written into the formats that oneDNN's kernels read.
#pragma once

#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "kernels/nn/onednn.h"

namespace interp::nn {

// A blocked format of float32 whose innermost block is of output channels: nearly all that oneDNN's
// convolutions ask for. A reorder of oneDNN writes the same, but compiles a loop for each shape,
// takes several times as long and leaves no room for factors.
class FilterFormat {
 public:
  // Nothing for other formats. `desc` has the dims O,I,kernel, with G before them when `grouped`.
  static std::optional<FilterFormat> Of(const MemDesc& desc, bool grouped);

  // Writes `filter`, dense in the order of the dims, each output channel times its factor (none:
  // as it is), to `packed`, which has the size of the format, and zeros where channels are padded.
  void Pack(const float* filter, absl::Span<const double> factors, int num_threads,
            float* packed) const;

 private:
  FilterFormat() = default;

  void PackBlock(int64_t index, const float* filter, absl::Span<const double> factors,
                 float* packed) const;

  int64_t outer_ = 1;  // groups beside the channels
  int64_t outer_stride_ = 0;
  int64_t channels_ = 0;  // of each of them
  int64_t block_ = 0;     // channels that lie together
  int64_t blocks_ = 0;
  int64_t block_stride_ = 0;
  std::vector<int64_t> columns_;  // where the elements of one channel lie in a block
  bool in_order_ = true;          // they lie one block after the other
};

}  // namespace interp::nn
