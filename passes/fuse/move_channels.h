#pragma once

#include "passes/pass.h"

namespace interp {

// Names the transposes that turn an image into rows of channels, or rows into an image, as networks
// of convolutions and attention do between the two.
//
//   flatten_contiguous_range(X=image) -> (Out=a) {start_axis=2, stop_axis=3}
//   transpose2(X=a) -> (Out=rows) {axis=[0,2,1]}
// becomes
//   move_channels_last(X=image) -> (Out=a)
//   flatten_contiguous_range(X=a) -> (Out=rows) {start_axis=1, stop_axis=2}
// and
//   transpose2(X=rows) -> (Out=b) {axis=[0,2,1]}
//   reshape2(X=b) -> (Out=image) {shape=[1,32,56,56]}
// becomes
//   reshape2(X=rows) -> (Out=b) {shape=[1,56,56,32]}
//   move_channels_first(X=b) -> (Out=image)
// Transposes by [0,2,3,1] and [0,3,1,2], and those of rank 5 that do the same, are named alone.
// Where the image has the layout of convolutions these ops move nothing. Declared dims tell that
// batch and channels stay; where tensors give the shape, as programs of any batch have it,
// fill_constants tell it, too. Leaves alone ranks that a run may not find (uncertain_ranks.h).
// Linear time.
absl::StatusOr<Program> MoveChannels(Program program, const PassContext& context);

}  // namespace interp
