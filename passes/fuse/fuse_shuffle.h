#pragma once

#include "passes/pass.h"

namespace interp {

// Joins two reshapes and the transpose between them that shuffle the channels of an image, as
// ShuffleNet's and PicoDet's programs do.
//
//   reshape2(X=x) -> (Out=a) {shape=[-1,2,58,28,28]}
//   transpose2(X=a) -> (Out=b) {axis=[0,2,1,3,4]}
//   reshape2(X=b) -> (Out=y) {shape=[-1,116,28,28]}
// becomes
//   shuffle_channel(X=x) -> (Out=y) {group=2, fuse_image=[116,28,28]}
//
// That op takes images in the layout of convolutions, so none is copied to another one for it.
// x is declared with the channels, height and width of the shapes. An image of another size, of
// which the reshapes might make something else, is an error of the run. Linear time.
absl::StatusOr<Program> FuseShuffle(Program program, const PassContext& context);

}  // namespace interp
