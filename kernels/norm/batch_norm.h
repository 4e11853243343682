// The attributes of batch_norm and sync_batch_norm, which their gradients share.
#pragma once

#include "core/attr_reader.h"
#include "kernels/conv/image.h"

namespace interp::nn {

struct BatchNormAttrs {
  float epsilon = 1e-5F;
  float momentum = 0.9F;
  bool running_statistics = false;  // normalise with Mean and Variance
  bool running_gradient = false;    // the gradient does, with trainable_statistics in tests, too
  bool channels_last_dims = false;
  bool relu = false;
};

inline BatchNormAttrs ReadBatchNorm(AttrReader& reader) {
  BatchNormAttrs attrs;
  attrs.epsilon = reader.Float("epsilon", 1e-5F);
  attrs.momentum = reader.Float("momentum", 0.9F);
  const bool test = reader.Bool("is_test", false) && !reader.Bool("trainable_statistics", false);
  attrs.running_statistics = test || reader.Bool("use_global_stats", false);
  attrs.running_gradient = attrs.running_statistics || reader.Bool("is_test", false);
  attrs.channels_last_dims = HasChannelsLastDims(reader.String("data_layout", "NCHW"));
  attrs.relu = reader.Bool("fuse_with_relu", false);
  return attrs;
}

// Scale or Bias by channel.
template <typename T>
struct ChannelParameter {
  const T* values = nullptr;  // null: the op has no such input, and all channels have `fallback`
  T fallback = 0;

  T operator[](size_t c) const { return values == nullptr ? fallback : values[c]; }
};

}  // namespace interp::nn
