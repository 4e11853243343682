#include "passes/fuse/matrix_product.h"

#include "core/attr_reader.h"
#include "core/fused_forms.h"
#include "passes/fuse/fusion.h"

namespace interp {

std::optional<MatrixProduct> ReadProduct(const Op& op) {
  const bool old = op.type == "matmul";
  if (!old && op.type != "matmul_v2" && op.type != "bmm") return std::nullopt;
  const std::optional<VarId> x = Fuser::Argument(op.inputs, "X");
  const std::optional<VarId> y = Fuser::Argument(op.inputs, "Y");
  if (!x.has_value() || !y.has_value() || !CheckNothingFused(op).ok()) return std::nullopt;
  MatrixProduct product = {*x, *y};
  if (op.type == "bmm") return product;
  AttrReader attrs(op);
  product.trans_x = attrs.Bool(old ? "transpose_X" : "trans_x", false);
  product.trans_y = attrs.Bool(old ? "transpose_Y" : "trans_y", false);
  if (old) product.alpha = attrs.Float("alpha", 1);
  if (attrs.Int("head_number", 1) != 1) return std::nullopt;
  return attrs.status().ok() ? std::optional(product) : std::nullopt;
}

}  // namespace interp
