// What affine_channel and its gradient share.
#pragma once

#include "core/op_def.h"

namespace interp::nn {

struct AffineAttrs {
  bool channels_last_dims = false;
};

// All but NCHW is channels last, also AnyLayout, which is the default.
// (Paddle: AffineChannelKernel in fluid/operators/affine_channel_op.cc.)
inline AffineAttrs ReadAffine(AttrReader& reader) {
  return {reader.String("data_layout", "AnyLayout") != "NCHW"};
}

// The channels of input `slot`, which is to have at least 2 dims.
inline absl::StatusOr<int64_t> AffineChannels(const InferContext& ctx, int slot) {
  const Shape& x = ctx.input(slot).shape;
  if (x.rank() < 2) {
    return InvalidArgument("input 'X' has shape ", ToString(x), ", expected at least 2 dims");
  }
  return ctx.attrs<AffineAttrs>().channels_last_dims ? x.back() : x[1];
}

// One number for each channel.
inline absl::Status CheckOfChannels(const InferContext& ctx, int slot, absl::string_view name,
                                    int64_t channels) {
  if (ctx.input(slot).numel() == channels) return absl::OkStatus();
  return InvalidArgument("input '", name, "' is ", DescribeType(ctx.input(slot)), ", expected [",
                         channels, "]");
}

}  // namespace interp::nn
