// Attributes that rows of random ops share.
#pragma once

#include "core/dtype.h"
#include "core/status.h"
#include "kernels/util/fill_shape.h"
#include "kernels/util/scalar_bytes.h"

namespace interp::random {

struct UniformAttrs {
  DType dtype = DType::kFloat32;
  BatchSizeLike like;  // of uniform_random only the shape
  float min = -1;
  float max = 1;
  int32_t seed = 0;
  int64_t diag_num = 0;
  int64_t diag_step = 0;
  float diag_val = 1;

  // Between elements of the diagonal.
  int64_t diag_stride() const { return diag_step + 1; }
};

// Slots of uniform_random for its bounds; uniform_random_batch_size_like has none.
inline constexpr int kUniformMinTensor = 2;
inline constexpr int kUniformMaxTensor = 3;

// The attributes of uniform_random, with the bounds as tensors may give them.
inline absl::StatusOr<UniformAttrs> UniformAttrsOf(const OpContext& ctx) {
  UniformAttrs attrs = ctx.attrs<UniformAttrs>();
  INTERP_ASSIGN_OR_RETURN(attrs.min, ReadFloat(ctx, kUniformMinTensor, "min", attrs.min));
  INTERP_ASSIGN_OR_RETURN(attrs.max, ReadFloat(ctx, kUniformMaxTensor, "max", attrs.max));
  return attrs;
}

// InvalidArgument unless the diagonal lies within `n` elements.
inline absl::Status CheckDiagonal(const UniformAttrs& attrs, int64_t n) {
  if (attrs.diag_num <= 0) return absl::OkStatus();
  const int64_t stride = attrs.diag_stride();
  if ((stride < 1 && attrs.diag_num > 1) || n <= (attrs.diag_num - 1) * stride) {
    return InvalidArgument("'diag_num' ", attrs.diag_num, " and 'diag_step' ", attrs.diag_step,
                           " lead outside of ", n, " elements");
  }
  return absl::OkStatus();
}

struct GaussianAttrs {
  DType dtype = DType::kFloat32;
  BatchSizeLike like;  // of gaussian_random only the shape
  float mean = 0;
  float deviation = 1;
  int32_t seed = 0;
};

struct RandintAttrs {
  DType dtype = DType::kInt64;
  IntList shape;
  int64_t low = 0;
  int64_t high = 0;
  int32_t seed = 0;
};

}  // namespace interp::random
