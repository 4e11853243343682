#pragma once

#include "passes/pass.h"

namespace interp {

// Joins convolutions of the parts of an image, whose results are put together again, into one
// convolution of groups, which reads and writes the whole.
//
//   split(X=x) -> (Out=[a, b]) {axis=1, num=2}
//   conv2d(Input=a, Filter=v) -> (Output=c)
//   conv2d(Input=b, Filter=w) -> (Output=d)
//   concat(X=[c, d]) -> (Out=y) {axis=1}
// becomes
//   concat(X=[v, w]) -> (Out=v.groups) {axis=0}
//   conv2d(Input=x, Filter=v.groups) -> (Output=y) {groups=2}
//
// Also where the convolutions have groups, and of depthwise_conv2d. Conditions: all parts are
// equally long and go into one convolution each, of the same attributes but for those that say
// where an op was made, with filters of the same dims, which are parameters that no op changes; the
// results keep their order; nobody else sees anything in between. The convolution stands where the
// concat stood. The filters are joined once (fold_constants). Linear time.
absl::StatusOr<Program> FuseGroups(Program program, const PassContext& context);

}  // namespace interp
