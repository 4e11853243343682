// unpool, unpool3d: the attributes and shapes of both directions.
#pragma once

#include <string>
#include <vector>

#include "core/attr_reader.h"
#include "kernels/nn/max_pool_index.h"
#include "kernels/nn/window.h"

namespace interp::nn {

struct UnpoolAttrs {
  int rank = 2;  // spatial
  std::vector<int64_t> kernel;
  WindowAttrs window;
  std::vector<int64_t> output_size;  // empty: what the pooling window makes smallest
};

template <int kRank>
UnpoolAttrs ReadUnpool(AttrReader& reader) {
  UnpoolAttrs attrs;
  attrs.rank = kRank;
  attrs.kernel = reader.Ints("ksize");
  attrs.window = ReadWindow(reader, kRank, /*dilations=*/false);
  attrs.output_size = reader.Ints("output_size");
  const std::string type = reader.String("unpooling_type", "max");
  if (type != "max") {
    reader.Fail(absl::StrCat("attribute 'unpooling_type' is \"", type, "\", expected max"));
  }
  return attrs;
}

// The shape of what X becomes. Checks X and Indices.
absl::StatusOr<Shape> ResolveUnpool(const UnpoolAttrs& attrs, const Tensor& x,
                                    const Tensor& indices);

}  // namespace interp::nn
