// mul, matmul, matmul_v2, bmm, dot and the fused forms fc and fused_matmul:
//   Out = activation(alpha * op(X) op(Y) + bias)
#include "kernels/nn/product.h"
#include "kernels/util/flops.h"

namespace interp::nn {
namespace {

constexpr int kX = 0;
constexpr int kY = 1;
constexpr int kBias = 2;  // fc and fused_matmul
constexpr int kOut = 0;

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
  bool keeps_lod = true;  // matmul_v2 gives none, in Paddle since 2.3
  FusedActivation activation;
};

MatmulAttrs ReadMatmul(AttrReader& reader) {
  MatmulAttrs attrs;
  attrs.form = Form::kMatmul;
  attrs.trans_x = reader.Bool("transpose_X", false);
  attrs.trans_y = reader.Bool("transpose_Y", false);
  attrs.alpha = reader.Float("alpha", 1.0F);
  if (reader.Int("head_number", 1) != 1) {
    reader.Fail("attribute 'head_number' is not 1, which only Paddle's MKL build supports");
  }
  for (const char* name : {"fused_reshape_X", "fused_reshape_Y", "fused_reshape_Out",
                           "fused_transpose_X", "fused_transpose_Y", "fused_transpose_Out"}) {
    if (!reader.Ints(name).empty()) reader.Fail(absl::StrCat("attribute '", name, "' is set"));
  }
  return attrs;
}

MatmulAttrs ReadMatmulV2(AttrReader& reader) {
  MatmulAttrs attrs;
  attrs.keeps_lod = false;
  attrs.trans_x = reader.Bool("trans_x", false);
  attrs.trans_y = reader.Bool("trans_y", false);
  return attrs;
}

MatmulAttrs ReadFusedMatmul(AttrReader& reader) {
  MatmulAttrs attrs = ReadMatmulV2(reader);
  attrs.alpha = reader.Float("matmul_alpha", 1.0F);
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
  attrs.keeps_lod = reader.Bool("keeps_lod", true);
  attrs.activation = ReadActivation(reader, "activation_type");
  if (reader.Bool("padding_weights", false)) {
    reader.Fail("attribute 'padding_weights' is true, which is not supported");
  }
  return attrs;
}

// A product and the shape of its result.
struct Resolved {
  Product product;
  Shape out;
};

absl::Status CheckInner(int64_t x, int64_t y, const Shape& x_shape, const Shape& y_shape) {
  if (x == y) return absl::OkStatus();
  return InvalidArgument("inputs 'X' ", ToString(x_shape), " and 'Y' ", ToString(y_shape),
                         " do not multiply: ", x, " columns against ", y, " rows");
}

absl::StatusOr<Resolved> ResolveFlatten(const MatmulAttrs& attrs, const Shape& x, const Shape& y) {
  if (attrs.x_rows_dims < 1 || attrs.x_rows_dims >= x.rank() || attrs.y_rows_dims < 1 ||
      attrs.y_rows_dims >= y.rank()) {
    return InvalidArgument("inputs 'X' ", ToString(x), " and 'Y' ", ToString(y),
                           " cannot be cut into matrices after ", attrs.x_rows_dims, " and ",
                           attrs.y_rows_dims, " dims");
  }
  const int x_rows = static_cast<int>(attrs.x_rows_dims);
  const int y_rows = static_cast<int>(attrs.y_rows_dims);
  Resolved r;
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
                          Resolved& resolved) {
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

absl::StatusOr<Resolved> ResolveMatrices(const MatmulAttrs& attrs, const Shape& x, const Shape& y) {
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
  Resolved r;
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

absl::StatusOr<Resolved> Resolve(const OpContext& ctx) {
  const auto& attrs = ctx.attrs<MatmulAttrs>();
  const Shape& x = ctx.input(kX).shape;
  const Shape& y = ctx.input(kY).shape;
  absl::StatusOr<Resolved> resolved =
      attrs.form == Form::kFlatten ? ResolveFlatten(attrs, x, y) : ResolveMatrices(attrs, x, y);
  if (resolved.ok()) resolved->product.activation = attrs.activation;
  return resolved;
}

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Resolved resolved, Resolve(ctx));
  ctx.SetShape(kOut, resolved.out);
  if (ctx.attrs<MatmulAttrs>().keeps_lod) ctx.output(kOut).lod = ctx.input(kX).lod;
  return absl::OkStatus();
}

absl::Status InferWithBias(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(Infer(ctx));
  if (const Tensor* bias = ctx.optional_input(kBias)) {
    INTERP_ASSIGN_OR_RETURN(const Resolved resolved, Resolve(ctx));
    if (bias->numel() != resolved.product.n) {
      return InvalidArgument("input 'Bias' is ", DescribeType(*bias), ", expected [",
                             resolved.product.n, "]");
    }
  }
  return absl::OkStatus();
}

// The product alone.
int64_t Flops(const OpContext& ctx) {
  const absl::StatusOr<Resolved> resolved = Resolve(ctx);
  if (!resolved.ok()) return 0;
  return ToFlops(2.0 * static_cast<double>(resolved->out.numel()) *
                 static_cast<double>(resolved->product.k));
}

// The type products of T are computed in.
template <typename T>
struct Arithmetic {
  using type = T;
};
template <>
struct Arithmetic<int32_t> {
  using type = uint32_t;
};
template <>
struct Arithmetic<int64_t> {
  using type = uint64_t;
};

template <typename T>
absl::Status Multiply(KernelContext& ctx, const Tensor* bias) {
  using A = typename Arithmetic<T>::type;
  INTERP_ASSIGN_OR_RETURN(const Resolved resolved, Resolve(ctx));
  const auto values = [](const Tensor& tensor) {
    return reinterpret_cast<const A*>(tensor.data<T>());
  };
  return RunProduct<A>(ctx, resolved.product, values(ctx.input(kX)), values(ctx.input(kY)),
                       ctx.input_is_constant(kY), bias == nullptr ? nullptr : values(*bias),
                       reinterpret_cast<A*>(ctx.output(kOut).mutable_data<T>()));
}
template <typename T>
absl::Status Matmul(KernelContext& ctx) {
  return Multiply<T>(ctx, nullptr);
}
absl::Status MatmulWithBias(KernelContext& ctx) {
  return Multiply<float>(ctx, ctx.optional_input(kBias));
}

OpDef MatmulDef(absl::string_view type, absl::StatusOr<ParsedAttrs> (*parse)(AttrReader&)) {
  return OpDef{
      .type = type,
      .inputs = {{"X"}, {"Y"}},
      .outputs = {{"Out"}},
      .parse = parse,
      .infer = Infer,
      .kernels = {{DType::kFloat32, Matmul<float>}, {DType::kFloat64, Matmul<double>}},
      .flops = Flops,
  };
}

OpDef MatmulV2Def() {
  OpDef def = MatmulDef("matmul_v2", ParseAttrs<MatmulAttrs, ReadMatmulV2>);
  def.kernels.push_back({DType::kInt32, Matmul<int32_t>});
  def.kernels.push_back({DType::kInt64, Matmul<int64_t>});
  return def;
}

OpDef WithBias(OpDef def, std::vector<SlotDef> inputs) {
  def.inputs = std::move(inputs);
  def.infer = InferWithBias;
  def.kernels = {{DType::kFloat32, MatmulWithBias}};
  return def;
}

INTERP_REGISTER_OP(MatmulDef("mul", ParseAttrs<MatmulAttrs, ReadMul>));
INTERP_REGISTER_OP(MatmulDef("matmul", ParseAttrs<MatmulAttrs, ReadMatmul>));
INTERP_REGISTER_OP(MatmulV2Def());
INTERP_REGISTER_OP(MatmulDef("bmm", ParseAttrs<MatmulAttrs, ReadBmm>));
INTERP_REGISTER_OP(WithBias(MatmulDef("fc", ParseAttrs<MatmulAttrs, ReadFc>),
                            {{"Input"}, {"W"}, {"Bias", kOptional}}));
INTERP_REGISTER_OP(WithBias(MatmulDef("fused_matmul", ParseAttrs<MatmulAttrs, ReadFusedMatmul>),
                            {{"X"}, {"Y"}, {"Bias", kOptional}}));

}  // namespace
}  // namespace interp::nn
