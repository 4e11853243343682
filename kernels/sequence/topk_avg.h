// The matrices in X of sequence_topk_avg_pooling; the same for its gradient.
#pragma once

#include <cstdint>
#include <vector>

#include "core/op_def.h"
#include "kernels/sequence/lod.h"
#include "kernels/util/parallel_for.h"

namespace interp::topk_avg {

// Positions of input slots.
inline constexpr int kX = 0;
inline constexpr int kRow = 1;
inline constexpr int kColumn = 2;

struct TopkAvgAttrs {
  std::vector<int64_t> topks;
  int64_t channels = 1;

  int64_t largest() const { return topks.back(); }
};

TopkAvgAttrs ReadTopkAvgAttrs(AttrReader& reader);

// The rows of ROW. InvalidArgument unless X, ROW and COLUMN fit each other and the attributes.
absl::StatusOr<int64_t> CheckMatrices(const OpContext& ctx);

// The matrices of one sequence of X.
struct Matrices {
  int64_t channels = 0;
  int64_t height = 0;
  int64_t width = 0;
  int64_t first = 0;      // element of X
  int64_t first_row = 0;  // of ROW

  // Calls body(from, to) for each line: its first element in X and its number in Out. Matrices lie
  // one after the other in X, the lines of a row side by side in Out.
  template <typename Body>
  void ForEachLine(const Body& body) const {
    for (int64_t line = 0; line < channels * height; ++line) {
      body(first + line * width, (first_row + line % height) * channels + line / height);
    }
  }
};

// Calls body(matrices) for each sequence, on several threads where X is large.
template <typename Body>
void ForEachMatrix(const KernelContext& ctx, const Body& body) {
  const int64_t channels = ctx.attrs<TopkAvgAttrs>().channels;
  const Offsets offsets = ctx.input(kX).lod.back();
  const Offsets rows = ctx.input(kRow).lod.back();
  const Offsets columns = ctx.input(kColumn).lod.back();
  const int64_t grain = GrainForShare(8 * offsets.back(), SequenceCount(offsets));
  ParallelFor(ctx.num_threads(), SequenceCount(offsets), grain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      body(Matrices{channels, rows[i + 1] - rows[i], columns[i + 1] - columns[i], offsets[i],
                    rows[i]});
    }
  });
}

}  // namespace interp::topk_avg
