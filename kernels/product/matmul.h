// The products of mul, matmul, matmul_v2, bmm and fc, and of their gradients: how each op reads X
// and Y as matrices.
#pragma once

#include "core/attr_reader.h"
#include "kernels/product/product.h"

namespace interp::nn {

// Paddle's ops differ in how they read X and Y as matrices.
enum class Form : int8_t {
  kMatmul,    // 1.x: batch sizes equal or one side without; vectors may be transposed
  kMatmulV2,  // NumPy's rules
  kBmm,       // rank 3
  kFlatten,   // mul and fc: leading dims form the rows
};

struct MatmulAttrs {
  Form form = Form::kMatmulV2;
  bool trans_x = false;
  bool trans_y = false;
  double alpha = 1;
  int64_t x_rows_dims = 1;  // kFlatten: how many dims of X form its rows
  int64_t y_rows_dims = 1;
  bool rows_but_last = false;  // of fc: all dims of X but the last, whatever x_rows_dims says
  bool keeps_lod = true;       // matmul_v2 gives none, in Paddle since 2.3
  bool gives_float32 = false;  // in bfloat16, see forced_float32.h
  FusedActivation activation;
};

MatmulAttrs ReadMatmul(AttrReader& reader);
MatmulAttrs ReadMatmulV2(AttrReader& reader);
MatmulAttrs ReadFusedMatmul(AttrReader& reader);
MatmulAttrs ReadBmm(AttrReader& reader);
MatmulAttrs ReadMul(AttrReader& reader);
MatmulAttrs ReadFc(AttrReader& reader);

// A product and the shape of its result.
struct ResolvedProduct {
  Product product;
  Shape out;
};

// Checks the shapes of X and Y against each other. Errors name the slots.
absl::StatusOr<ResolvedProduct> ResolveMatmul(const MatmulAttrs& attrs, const Shape& x,
                                              const Shape& y);

}  // namespace interp::nn
