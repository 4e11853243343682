// unpool, unpool3d: the attributes and shapes of both directions.
#pragma once

#include <vector>

#include "core/attr_reader.h"
#include "kernels/conv/window.h"
#include "kernels/pool/max_pool_index.h"
#include "kernels/util/read_choice.h"
#include "kernels/util/shape_args.h"

namespace interp::nn {

struct UnpoolAttrs {
  int rank = 2;  // spatial
  std::vector<int64_t> kernel;
  WindowAttrs window;
  IntList output_size;  // empty: what the pooling window makes smallest
};

template <int kRank>
UnpoolAttrs ReadUnpool(AttrReader& reader) {
  UnpoolAttrs attrs;
  attrs.rank = kRank;
  attrs.kernel = reader.Ints("ksize");
  attrs.window = ReadWindow(reader, kRank, /*dilations=*/false);
  attrs.output_size = ReadIntListAttr(reader, "output_size");
  ReadChoiceIndex(reader, "unpooling_type", {"max"});
  return attrs;
}

// Slots that both directions have.
constexpr int kUnpoolX = 0;
constexpr int kUnpoolIndices = 1;

// The shape of what X becomes. `size`: the slots of output_size. Checks X and Indices.
absl::StatusOr<Shape> ResolveUnpool(const OpContext& ctx, const IntSlots& size);

}  // namespace interp::nn
