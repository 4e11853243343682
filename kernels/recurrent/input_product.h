// The product of the rows of all steps with the weight of the input, for the recurrent ops that
// have it inside.
#pragma once

#include <optional>

#include "kernels/product/product.h"

namespace interp::recurrent {

// Input `x` [T, M] times input `weight` [M, N], in `memory` until the end of the kernel. REQUIRES:
// the state of the op, if it has one, is an nn::ProductState and has been asked for.
template <typename T>
absl::StatusOr<const T*> InputProduct(KernelContext& ctx, int x, int weight,
                                      std::optional<Workspace>& memory) {
  const Shape& w = ctx.input(weight).shape;
  nn::Product product = nn::ProductOf(ctx.input(x).shape[0], w[1], w[0]);
  INTERP_ASSIGN_OR_RETURN(memory,
                          ctx.workspace(static_cast<size_t>(product.m * product.n) * sizeof(T)));
  INTERP_RETURN_IF_ERROR(
      nn::RunProduct<T>(ctx, product, ctx.input(x).data<T>(), ctx.input(weight).data<T>(),
                        ctx.input_is_constant(weight), nullptr, memory->template data<T>()));
  return memory->template data<T>();
}

}  // namespace interp::recurrent
