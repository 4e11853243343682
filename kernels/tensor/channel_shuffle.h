// pixel_shuffle and shuffle_channel: attributes and the copies they are, for both directions.
#pragma once

#include <utility>
#include <vector>

#include "core/op_def.h"
#include "kernels/util/data_mover.h"

namespace interp {

struct PixelShuffleAttrs {
  int64_t factor = 1;
  // Logical positions of the dimensions.
  int channel = 1;
  int height = 2;
};

inline PixelShuffleAttrs ReadPixelShuffleAttrs(AttrReader& reader) {
  PixelShuffleAttrs attrs;
  attrs.factor = reader.Int("upscale_factor", 1);
  if (attrs.factor <= 0) reader.Fail("attribute 'upscale_factor' is not positive");
  if (reader.String("data_format", "NCHW") == "NHWC") {
    attrs.channel = 3;
    attrs.height = 1;
  }
  return attrs;
}

struct ShuffleChannelAttrs {
  int64_t group = 1;
  // Channels, height and width of the images that two reshapes stood for
  // (passes/fuse/fuse_shuffle.h), which make something else of other images; empty: any.
  std::vector<int64_t> image;
};

inline ShuffleChannelAttrs ReadShuffleChannelAttrs(AttrReader& reader) {
  const ShuffleChannelAttrs attrs = {reader.Int("group", 1), reader.Ints("fuse_image")};
  if (attrs.group <= 0) reader.Fail("attribute 'group' is not positive");
  return attrs;
}

// The copy from x to out. REQUIRES: shapes that fit.
inline CopyDims PixelShuffleDims(const PixelShuffleAttrs& attrs, const Tensor& x,
                                 const Tensor& out) {
  const auto [r, c, h] = attrs;
  const Strides from = StridesOf(x);
  const Strides to = StridesOf(out);
  const int w = h + 1;
  return {
      {x.shape[0], from[0], to[0]},     {out.shape[c], r * r * from[c], to[c]},
      {x.shape[h], from[h], r * to[h]}, {r, r * from[c], to[h]},
      {x.shape[w], from[w], r * to[w]}, {r, from[c], to[w]},
  };
}

inline CopyDims ShuffleChannelDims(const ShuffleChannelAttrs& attrs, const Tensor& x,
                                   const Tensor& out) {
  const int64_t groups = attrs.group;
  const int64_t members = x.shape[1] / groups;
  const Strides from = StridesOf(x);
  const Strides to = StridesOf(out);
  return {
      {x.shape[0], from[0], to[0]},       {members, from[1], groups * to[1]},
      {groups, members * from[1], to[1]}, {x.shape[2], from[2], to[2]},
      {x.shape[3], from[3], to[3]},
  };
}

// The same copy back.
inline CopyDims Reversed(CopyDims dims) {
  for (CopyDim& dim : dims) std::swap(dim.src_stride, dim.dst_stride);
  return dims;
}

}  // namespace interp
