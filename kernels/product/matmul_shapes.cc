#include <algorithm>

#include "kernels/product/matmul.h"
#include "kernels/util/fused_forms.h"

namespace interp::nn {
namespace {

absl::Status CheckInner(int64_t x, int64_t y, const Shape& x_shape, const Shape& y_shape) {
  if (x == y) return absl::OkStatus();
  return InvalidArgument("inputs 'X' ", ToString(x_shape), " and 'Y' ", ToString(y_shape),
                         " do not multiply: ", x, " columns against ", y, " rows");
}

absl::StatusOr<ResolvedProduct> ResolveFlatten(const MatmulAttrs& attrs, const Shape& x,
                                               const Shape& y) {
  const bool vector = attrs.rows_but_last && x.rank() == 1;
  const int64_t rows_dims = attrs.rows_but_last ? x.rank() - 1 : attrs.x_rows_dims;
  if ((rows_dims < 1 && !vector) || rows_dims >= x.rank() || attrs.y_rows_dims < 1 ||
      attrs.y_rows_dims >= y.rank()) {
    return InvalidArgument("inputs 'X' ", ToString(x), " and 'Y' ", ToString(y),
                           " cannot be cut into matrices after ", rows_dims, " and ",
                           attrs.y_rows_dims, " dims");
  }
  const int x_rows = static_cast<int>(rows_dims);
  const int y_rows = static_cast<int>(attrs.y_rows_dims);
  ResolvedProduct r;
  r.product.m = x.numel(0, x_rows);
  r.product.k = x.numel(x_rows, x.rank());
  r.product.n = y.numel(y_rows, y.rank());
  INTERP_RETURN_IF_ERROR(CheckInner(r.product.k, y.numel(0, y_rows), x, y));
  if (x_rows + y.rank() - y_rows > kMaxRank) {
    return InvalidArgument("the result of 'X' ", ToString(x), " and 'Y' ", ToString(y),
                           " would have more than ", kMaxRank, " dims");
  }
  for (int i = 0; i < x_rows; ++i) r.out.push_back(x[i]);
  for (int i = y_rows; i < y.rank(); ++i) r.out.push_back(y[i]);
  return r;
}

// The dims before the last two.
absl::Span<const int64_t> BatchDims(const Shape& shape) {
  return shape.dims().subspan(0, std::max(shape.rank() - 2, 0));
}

absl::Status ResolveBatch(const MatmulAttrs& attrs, const Shape& x, const Shape& y,
                          ResolvedProduct& resolved) {
  const absl::Span<const int64_t> bx = BatchDims(x);
  const absl::Span<const int64_t> by = BatchDims(y);
  if (attrs.form == Form::kMatmul && !bx.empty() && !by.empty()) {
    // Only the numbers of matrices count; the result takes the dims of X.
    const int64_t count = x.numel(0, x.rank() - 2);
    if (count != y.numel(0, y.rank() - 2)) {
      return InvalidArgument("inputs 'X' ", ToString(x), " and 'Y' ", ToString(y),
                             " hold different numbers of matrices");
    }
    INTERP_RETURN_IF_ERROR(BroadcastBatch({count}, {count}, resolved.product));
    for (const int64_t dim : bx) resolved.out.push_back(dim);
    return absl::OkStatus();
  }
  INTERP_RETURN_IF_ERROR(BroadcastBatch(bx, by, resolved.product));
  for (const int64_t dim : resolved.product.batch) resolved.out.push_back(dim);
  return absl::OkStatus();
}

absl::StatusOr<ResolvedProduct> ResolveMatrices(const MatmulAttrs& attrs, const Shape& x,
                                                const Shape& y) {
  if (x.rank() < 1 || y.rank() < 1) {
    return InvalidArgument("inputs 'X' ", ToString(x), " and 'Y' ", ToString(y),
                           " must have at least one dim");
  }
  if (attrs.form == Form::kBmm && (x.rank() != 3 || y.rank() != 3 || x[0] != y[0])) {
    return InvalidArgument("inputs 'X' ", ToString(x), " and 'Y' ", ToString(y),
                           " are no batches of the same number of matrices");
  }
  const bool x_vector = x.rank() == 1;
  const bool y_vector = y.rank() == 1;
  ResolvedProduct r;
  Product& p = r.product;
  // matmul_v2 ignores transposition of vectors.
  const bool flip = attrs.form == Form::kMatmul;
  p.trans_x = attrs.trans_x && (!x_vector || flip);
  p.trans_y = attrs.trans_y && (!y_vector || flip);
  p.alpha = attrs.alpha;
  // As stored: X is rows x columns, a vector is one row of X or one column of Y.
  const int64_t x_rows = x_vector ? 1 : x.back(2);
  const int64_t x_columns = x.back();
  const int64_t y_rows = y_vector ? y[0] : y.back(2);
  const int64_t y_columns = y_vector ? 1 : y.back();
  p.m = p.trans_x ? x_columns : x_rows;
  p.k = p.trans_x ? x_rows : x_columns;
  p.n = p.trans_y ? y_rows : y_columns;
  INTERP_RETURN_IF_ERROR(CheckInner(p.k, p.trans_y ? y_columns : y_rows, x, y));
  INTERP_RETURN_IF_ERROR(ResolveBatch(attrs, x, y, r));
  // The dim a vector was given goes again, unless transposition made it a real one.
  if (!(x_vector && p.m == 1)) r.out.push_back(p.m);
  if (!(y_vector && p.n == 1)) r.out.push_back(p.n);
  return r;
}

MatmulAttrs ReadTransposition(AttrReader& reader) {
  MatmulAttrs attrs;
  attrs.keeps_lod = false;
  attrs.trans_x = reader.Bool("trans_x", false);
  attrs.trans_y = reader.Bool("trans_y", false);
  return attrs;
}

// Paddle's passes say it in the first, those for oneDNN in the second.
constexpr absl::string_view kFcActivations[] = {"activation_type", "fuse_activation"};

FusedActivation ReadFcActivation(AttrReader& reader) {
  const FusedActivation activation = ReadActivation(reader, kFcActivations[0]);
  const FusedActivation more = ReadActivation(reader, kFcActivations[1]);
  if (more.kind == ActivationKind::kNone) return activation;
  if (activation.kind == ActivationKind::kNone) return more;
  reader.Fail("attributes 'activation_type' and 'fuse_activation' are both set, expected one");
  return activation;
}

}  // namespace

MatmulAttrs ReadMatmul(AttrReader& reader) {
  MatmulAttrs attrs;
  attrs.form = Form::kMatmul;
  attrs.trans_x = reader.Bool("transpose_X", false);
  attrs.trans_y = reader.Bool("transpose_Y", false);
  attrs.alpha = reader.Float("alpha", 1.0F);
  if (reader.Int("head_number", 1) != 1) {
    reader.Fail("attribute 'head_number' is not 1, which only Paddle's MKL build supports");
  }
  RefuseFusedForms(reader);
  return attrs;
}

MatmulAttrs ReadMatmulV2(AttrReader& reader) {
  RefuseFusedForms(reader);
  return ReadTransposition(reader);
}

MatmulAttrs ReadFusedMatmul(AttrReader& reader) {
  MatmulAttrs attrs = ReadTransposition(reader);
  constexpr absl::string_view kRead[] = {"fuse_activation"};
  RefuseFusedForms(reader, kRead);
  attrs.alpha = reader.Float("matmul_alpha", 1.0F);
  attrs.gives_float32 = reader.Bool("force_fp32_output", false);
  attrs.activation = ReadActivation(reader, "fuse_activation");
  return attrs;
}

MatmulAttrs ReadBmm(AttrReader&) {
  MatmulAttrs attrs;
  attrs.form = Form::kBmm;
  return attrs;
}

MatmulAttrs ReadMul(AttrReader& reader) {
  MatmulAttrs attrs;
  attrs.form = Form::kFlatten;
  attrs.x_rows_dims = reader.Int("x_num_col_dims", 1);
  attrs.y_rows_dims = reader.Int("y_num_col_dims", 1);
  return attrs;
}

MatmulAttrs ReadFc(AttrReader& reader) {
  MatmulAttrs attrs;
  attrs.form = Form::kFlatten;
  attrs.x_rows_dims = reader.Int("in_num_col_dims", 1);
  attrs.rows_but_last = attrs.x_rows_dims == -1;  // as in Paddle-Lite; Paddle has no such fc
  attrs.keeps_lod = reader.Bool("keeps_lod", true);
  attrs.gives_float32 = reader.Bool("force_fp32_output", false);
  attrs.activation = ReadFcActivation(reader);
  RefuseFusedForms(reader, kFcActivations);
  // Before the passes such weights are cropped (passes/import/padded_weights.h).
  if (reader.Bool("padding_weights", false)) {
    reader.Fail("attribute 'padding_weights' is true: expected weights without padding");
  }
  return attrs;
}

absl::StatusOr<ResolvedProduct> ResolveMatmul(const MatmulAttrs& attrs, const Shape& x,
                                              const Shape& y) {
  absl::StatusOr<ResolvedProduct> resolved =
      attrs.form == Form::kFlatten ? ResolveFlatten(attrs, x, y) : ResolveMatrices(attrs, x, y);
  if (resolved.ok()) resolved->product.activation = attrs.activation;
  return resolved;
}

}  // namespace interp::nn
