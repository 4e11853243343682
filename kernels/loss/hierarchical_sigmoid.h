// hierarchical_sigmoid: the tree of classes and the shapes of both directions.
//
// A class is a leaf; each node on the way to it has a row of W, and says by its bit which way to
// go. Without PathTable and PathCode the tree is the binary one of the number label + num_classes:
// its bits but for the highest are those of the way, and what is above them numbers the node.
#pragma once

#include <bit>
#include <vector>

#include "core/op_def.h"

namespace interp {

struct HsigmoidAttrs {
  int64_t num_classes = 2;
};

HsigmoidAttrs ReadHsigmoidAttrs(AttrReader& reader);

// The first inputs of hierarchical_sigmoid and of its gradient.
inline constexpr int kHsigmoidX = 0;
inline constexpr int kHsigmoidW = 1;
inline constexpr int kHsigmoidLabel = 2;
inline constexpr int kHsigmoidTable = 3;
inline constexpr int kHsigmoidCode = 4;
inline constexpr int kHsigmoidBias = 5;

// Checks X [N,D], whose rows may have several dims, W [K,D], Label [N,1], PathTable and PathCode
// [N,L], Bias [K,1]; the shape of PreOut, [N, nodes of the longest way].
absl::StatusOr<Shape> ResolveHsigmoid(const OpContext& ctx);

// One node on the way to a class.
struct TreeNode {
  int64_t row;  // of W
  bool bit;
};

// The ways to the label of each row of X. Errors: a label or a row of W that there is none of.
absl::StatusOr<std::vector<std::vector<TreeNode>>> FindPaths(const KernelContext& ctx);

}  // namespace interp
