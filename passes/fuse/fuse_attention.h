#pragma once

#include "passes/pass.h"

namespace interp {

// Joins two products and the softmax between them, as attention is written: with factors of the
// queries or scores, numbers or tensors, with what is added to the scores or taken away from them
// behind these, and with the transposes that put heads beside each other and back.
//
//   transpose2(X=x) -> (Out=t) {axis=[2,0,3,1,4]}       x is [batch,length,3,heads,width]
//   slice(Input=t) -> (Out=q) {axes=[0], starts=[0], ends=[1], decrease_axis=[0]}; so k and v
//   scale(X=q) -> (Out=a) {scale=0.125}
//   matmul_v2(X=a, Y=k) -> (Out=s) {trans_y=true}
//   elementwise_add(X=s, Y=mask) -> (Out=m)
//   softmax(X=m) -> (Out=p)
//   matmul_v2(X=p, Y=v) -> (Out=o)
//   transpose2(X=o) -> (Out=y) {axis=[0,2,1,3]}
// becomes
//   scaled_dot_product_attention(Q=x, K=x, V=x, Bias=mask) -> (Out=y)
//     {scale=0.125, q_axes=[0,3,1,4], q_slice=[2,0], ..., out_axes=[0,2,1,3]}
//
// The scores are never in memory as a whole, and nothing is moved but by the products. A mask for
// the windows of an image, for which reshapes around the sum cut the first dimension in two, is
// joined, too. Only where nobody else sees what lies between: gradients do. Linear time.
//
// The factor goes to the keys, and the sums of weighted values are divided by the sums of weights
// at last, so that numbers near the ends of the range of a float may overflow where they did not.
absl::StatusOr<Program> FuseAttention(Program program, const PassContext& context);

}  // namespace interp
