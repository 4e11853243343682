// mul, matmul, matmul_v2, bmm, dot and the fused forms fc and fused_matmul:
//   Out = activation(alpha * op(X) op(Y) + bias)
#include "kernels/product/matmul.h"

#include "kernels/complex/promotion.h"
#include "kernels/nn/forced_float32.h"
#include "kernels/util/flops.h"

namespace interp::nn {
namespace {

constexpr int kX = 0;
constexpr int kY = 1;
constexpr int kBias = 2;  // fc and fused_matmul
constexpr int kOut = 0;

absl::StatusOr<ResolvedProduct> Resolve(const OpContext& ctx) {
  return ResolveMatmul(ctx.attrs<MatmulAttrs>(), ctx.input(kX).shape, ctx.input(kY).shape);
}

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const ResolvedProduct resolved, Resolve(ctx));
  ctx.SetShape(kOut, resolved.out);
  if (ctx.attrs<MatmulAttrs>().keeps_lod) ctx.output(kOut).lod = ctx.input(kX).lod;
  return absl::OkStatus();
}

absl::Status InferWithBias(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(Infer(ctx));
  if (const Tensor* bias = ctx.optional_input(kBias)) {
    INTERP_ASSIGN_OR_RETURN(const ResolvedProduct resolved, Resolve(ctx));
    if (bias->numel() != resolved.product.n) {
      return InvalidArgument("input 'Bias' is ", DescribeType(*bias), ", expected [",
                             resolved.product.n, "]");
    }
  }
  return absl::OkStatus();
}

// The product alone.
int64_t Flops(const OpContext& ctx) {
  const absl::StatusOr<ResolvedProduct> resolved = Resolve(ctx);
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

// Makes what is kept of a constant Y of float32, unless that is done.
absl::Status KeepY(KernelContext& ctx, const Product& product) {
  const Tensor& y = ctx.input(kY);
  if (!y.has_memory() || ctx.state<ProductState>().packed != nullptr) return absl::OkStatus();
  return PrepareProduct(ctx, product, y.data<float>(), y.buffer()->in_file);
}

template <typename T>
absl::Status Multiply(KernelContext& ctx, const Tensor* bias) {
  using A = typename Arithmetic<T>::type;
  INTERP_ASSIGN_OR_RETURN(const ResolvedProduct resolved, Resolve(ctx));
  const auto values = [](const Tensor& tensor) {
    return reinterpret_cast<const A*>(tensor.data<T>());
  };
  const bool constant = ctx.input_is_constant(kY);
  if constexpr (std::is_same_v<T, float>) {
    if (constant) INTERP_RETURN_IF_ERROR(KeepY(ctx, resolved.product));
  }
  return RunProduct<A>(ctx, resolved.product, values(ctx.input(kX)), values(ctx.input(kY)),
                       constant, bias == nullptr ? nullptr : values(*bias),
                       reinterpret_cast<A*>(ctx.output(kOut).mutable_data<T>()),
                       &ctx.state<ProductState>().method);
}

// What a kernel of float32 keeps.
absl::Status PrepareMatmul(KernelContext& ctx) {
  // All threads together pack what is larger, when the kernel runs.
  constexpr size_t kMostBytes = size_t{8} << 20;
  const Tensor& y = ctx.input(kY);
  if (!ctx.input_is_constant(kY) || y.size_bytes() > kMostBytes) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(const ResolvedProduct resolved, Resolve(ctx));
  return KeepY(ctx, resolved.product);
}

template <typename T>
absl::Status Matmul(KernelContext& ctx) {
  return Multiply<T>(ctx, nullptr);
}
template <typename T>
absl::Status MatmulWithBias(KernelContext& ctx) {
  return Multiply<T>(ctx, ctx.optional_input(kBias));
}

OpDef MatmulDef(absl::string_view type, absl::StatusOr<ParsedAttrs> (*parse)(AttrReader&)) {
  return OpDef{
      .type = type,
      .inputs = {{"X"}, {"Y", kMayBeUnaligned}},
      .outputs = {{"Out"}},
      .parse = parse,
      .infer = Infer,
      .kernels = {{.dtype = DType::kFloat32, .run = Matmul<float>, .prepare = PrepareMatmul},
                  {DType::kFloat64, Matmul<double>},
                  {DType::kBFloat16, Matmul<bfloat16>},
                  {DType::kFloat16, Matmul<float16>}},
      .precision = PrecisionRule::kReduced,
      .gradient = {.inputs = {"X", "Y", "Out@GRAD"}, .outputs = {"X@GRAD", "Y@GRAD"}},
      .flops = Flops,
  };
}

OpDef MatmulV2Def() {
  OpDef def = MatmulDef("matmul_v2", ParseAttrs<MatmulAttrs, ReadMatmulV2>);
  def.kernels.push_back({DType::kInt32, Matmul<int32_t>});
  def.kernels.push_back({DType::kInt64, Matmul<int64_t>});
  def.kernel_dtype = PromotedDType<kX, kY>;
  return def;
}

OpDef WithBias(OpDef def, std::vector<SlotDef> inputs) {
  def.inputs = std::move(inputs);
  def.kernel_dtype = ForcedDType<MatmulAttrs>;
  def.infer = InferWithBias;
  def.kernels = {{.dtype = DType::kFloat32, .run = MatmulWithBias<float>, .prepare = PrepareMatmul},
                 {DType::kBFloat16, MatmulWithBias<bfloat16>},
                 {DType::kFloat16, MatmulWithBias<float16>}};
  def.gradient = {};  // made by passes, which see no gradients
  return def;
}

OpDef FcDef() {
  OpDef def = WithBias(MatmulDef("fc", ParseAttrs<MatmulAttrs, ReadFc>),
                       {{"Input"}, {"W", kMayBeUnaligned}, {"Bias", kOptional}});
  def.kernels.push_back({DType::kFloat64, MatmulWithBias<double>});
  return def;
}

INTERP_REGISTER_OP(MatmulDef("mul", ParseAttrs<MatmulAttrs, ReadMul>));
INTERP_REGISTER_OP(MatmulDef("matmul", ParseAttrs<MatmulAttrs, ReadMatmul>));
INTERP_REGISTER_OP(MatmulV2Def());
INTERP_REGISTER_OP(MatmulDef("bmm", ParseAttrs<MatmulAttrs, ReadBmm>));
INTERP_REGISTER_OP(FcDef());
INTERP_REGISTER_OP(WithBias(MatmulDef("fused_matmul", ParseAttrs<MatmulAttrs, ReadFusedMatmul>),
                            {{"X"}, {"Y", kMayBeUnaligned}, {"Bias", kOptional}}));

}  // namespace
}  // namespace interp::nn
