// Products of matrices with batch dims, as matmul, matmul_v2 and bmm compute them.
#pragma once

#include <optional>

#include "core/program.h"

namespace interp {

// alpha * op(x) op(y), where op transposes the last two dims or not.
struct MatrixProduct {
  VarId x = 0;
  VarId y = 0;
  bool trans_x = false;
  bool trans_y = false;
  float alpha = 1;
};

// The product that `op` computes; nullopt for ops of other types and for what has more fused into
// it.
std::optional<MatrixProduct> ReadProduct(const Op& op);

}  // namespace interp
