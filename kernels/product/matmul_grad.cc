// mul_grad, matmul_grad, matmul_v2_grad, bmm_grad. With G = Out@GRAD, A = op(X) and B = op(Y):
//   gradient of A = alpha * G B^T,   gradient of B = alpha * A^T G
// transposed where X or Y is, and summed over the matrices that one of X or Y has served.
#include "kernels/product/matmul_grad.h"

#include <algorithm>
#include <optional>
#include <type_traits>

#include "core/op_def.h"
#include "kernels/complex/promotion.h"
#include "kernels/util/flops.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/parallel_for.h"
#include "kernels/util/second_gradient_slots.h"
#include "kernels/util/without_lod.h"

namespace interp::nn {
namespace {

constexpr int kX = 0;
constexpr int kY = 1;
constexpr int kOutGrad = 2;
constexpr int kXGrad = 0;
constexpr int kYGrad = 1;

absl::StatusOr<ResolvedProduct> Resolve(const OpContext& ctx) {
  return ResolveMatmul(ctx.attrs<MatmulAttrs>(), ctx.input(kX).shape, ctx.input(kY).shape);
}

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const ResolvedProduct resolved, Resolve(ctx));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", resolved.out));
  ctx.ShareShape(kX, kXGrad);
  ctx.ShareShape(kY, kYGrad);
  return absl::OkStatus();
}

constexpr auto kInferWithoutLod = WithoutLod<Infer, kXGrad, kYGrad>;

// Matrices to advance per step of each batch dim where every matrix is there.
MatrixSteps DenseSteps(const Shape& batch) {
  MatrixSteps steps = {};
  int64_t step = 1;
  for (int d = batch.rank() - 1; d >= 0; step *= batch[d--]) steps[d] = step;
  return steps;
}

// A product of other matrices with the batch and the factor of `p`.
Product WithSizes(const Product& p, int64_t m, int64_t n, int64_t k) {
  Product r = ProductOf(m, n, k);
  r.batch = p.batch;
  r.alpha = p.alpha;
  return r;
}

}  // namespace

Product GradientProductOfX(const Product& p) {
  Product r = WithSizes(p, p.m, p.k, p.n);
  r.trans_y = !p.trans_y;
  r.x_steps = DenseSteps(p.batch);
  r.y_steps = p.y_steps;
  if (!p.trans_x) return r;
  std::swap(r.m, r.n);
  std::swap(r.x_steps, r.y_steps);
  r.trans_x = p.trans_y;
  r.trans_y = true;
  return r;
}

Product GradientProductOfY(const Product& p) {
  Product r = WithSizes(p, p.k, p.n, p.m);
  r.trans_x = !p.trans_x;
  r.x_steps = p.x_steps;
  r.y_steps = DenseSteps(p.batch);
  if (!p.trans_y) return r;
  std::swap(r.m, r.n);
  std::swap(r.x_steps, r.y_steps);
  r.trans_x = true;
  r.trans_y = p.trans_x;
  return r;
}

bool SharesMatrices(const Shape& batch, const MatrixSteps& steps) {
  for (int d = 0; d < batch.rank(); ++d) {
    if (batch[d] != 1 && steps[d] == 0) return true;
  }
  return false;
}

namespace {

// Adds the matrices of all batch entries to the ones they belong to, in their order.
template <typename T>
void SumMatrices(const Shape& batch, const MatrixSteps& steps, int64_t size, const T* all, T* out,
                 int num_threads) {
  const int64_t count = batch.numel();
  const int64_t grain = GrainFor(count);
  ParallelFor(num_threads, size, grain, [&](int64_t begin, int64_t end) {
    for (int64_t b = 0; b < count; ++b) {
      int64_t to = 0;
      for (int64_t rest = b, d = batch.rank() - 1; d >= 0; rest /= batch[static_cast<int>(d--)]) {
        to += rest % batch[static_cast<int>(d)] * steps[d];
      }
      const T* from = all + b * size;
      T* sum = out + to * size;
      for (int64_t i = begin; i < end; ++i) sum[i] += from[i];
    }
  });
}

// The same sums of products of 16 bits: taken in float, rounded at the end.
template <typename T>
absl::Status SumWideProducts(KernelContext& ctx, const Product& product, const MatrixSteps& steps,
                             const T* left, const T* right, Tensor& out) {
  const int64_t size = product.m * product.n;
  const int64_t all = product.count() * size;
  INTERP_ASSIGN_OR_RETURN(const Workspace work,
                          ctx.workspace(static_cast<size_t>(all + out.numel()) * sizeof(float)));
  float* const products = work.data<float>();
  float* const sums = products + all;
  INTERP_RETURN_IF_ERROR(RunWideProduct(ctx, product, left, right, products));
  std::fill_n(sums, out.numel(), 0.0F);
  SumMatrices(product.batch, steps, size, products, sums, ctx.num_threads());
  std::copy_n(sums, out.numel(), out.mutable_data<T>());
  return absl::OkStatus();
}

// Computes `product` of left and right into `out`, whose matrices are `steps` apart.
template <typename T>
absl::Status MultiplyInto(KernelContext& ctx, const Product& product, const MatrixSteps& steps,
                          const T* left, const T* right, Tensor& out) {
  if (out.numel() == 0) return absl::OkStatus();
  T* to = out.mutable_data<T>();
  const auto run = [&](T* target) {
    return RunProduct<T>(ctx, product, left, right, /*y_constant=*/false, nullptr, target);
  };
  if (!SharesMatrices(product.batch, steps)) return run(to);
  if constexpr (sizeof(T) == sizeof(bfloat16)) {
    return SumWideProducts(ctx, product, steps, left, right, out);
  } else {
    const int64_t size = product.m * product.n;
    INTERP_ASSIGN_OR_RETURN(const Workspace work,
                            ctx.workspace(static_cast<size_t>(product.count() * size) * sizeof(T)));
    INTERP_RETURN_IF_ERROR(run(work.data<T>()));
    std::fill_n(to, out.numel(), T{0});
    SumMatrices(product.batch, steps, size, work.data<T>(), to, ctx.num_threads());
    return absl::OkStatus();
  }
}

template <typename T>
absl::Status MatmulGrad(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const ResolvedProduct resolved, Resolve(ctx));
  Product p = resolved.product;
  FoldBatch(p);  // one Y for all: its gradient is one product over all rows
  const T* x = ctx.input(kX).data<T>();
  const T* y = ctx.input(kY).data<T>();
  const T* g = ctx.input(kOutGrad).data<T>();
  if (Tensor* out = ctx.optional_output(kXGrad)) {
    INTERP_RETURN_IF_ERROR(MultiplyInto(ctx, GradientProductOfX(p), p.x_steps, p.trans_x ? y : g,
                                        p.trans_x ? g : y, *out));
  }
  if (Tensor* out = ctx.optional_output(kYGrad)) {
    INTERP_RETURN_IF_ERROR(MultiplyInto(ctx, GradientProductOfY(p), p.y_steps, p.trans_y ? g : x,
                                        p.trans_y ? x : g, *out));
  }
  return absl::OkStatus();
}

// As many as the forward product for each gradient.
int64_t Flops(const OpContext& ctx) {
  const absl::StatusOr<ResolvedProduct> resolved = Resolve(ctx);
  if (!resolved.ok()) return 0;
  const int count = (ctx.has_output(kXGrad) ? 1 : 0) + (ctx.has_output(kYGrad) ? 1 : 0);
  return ToFlops(2.0 * count * static_cast<double>(resolved->out.numel()) *
                 static_cast<double>(resolved->product.k));
}

OpDef GradDef(absl::string_view type, absl::StatusOr<ParsedAttrs> (*parse)(AttrReader&),
              absl::Status (*infer)(InferContext&)) {
  return OpDef{
      .type = type,
      .inputs = {{"X"}, {"Y"}, {"Out@GRAD"}},
      .outputs = {{"X@GRAD", kOptional}, {"Y@GRAD", kOptional}},
      .parse = parse,
      .infer = infer,
      .kernels = {{DType::kFloat32, MatmulGrad<float>},
                  {DType::kFloat64, MatmulGrad<double>},
                  {DType::kBFloat16, MatmulGrad<bfloat16>},
                  {DType::kFloat16, MatmulGrad<float16>}},
      .precision = PrecisionRule::kReduced,
      .flops = Flops,
  };
}

// Complex rows are in kernels/complex.
OpDef MatmulV2GradDef() {
  OpDef def = GradDef("matmul_v2_grad", ParseAttrs<MatmulAttrs, ReadMatmulV2>, Infer);
  def.kernel_dtype = PromotedDType<kX, kY, kOutGrad>;
  def.infer_dtype = RealGradientDTypes;
  return def;
}

constexpr SecondGradient kMulSecond = SecondOfTwo("mul_grad_grad", {.results = {"DX", "DY"}});
constexpr SecondGradient kMatmulSecond = SecondOfTwo("matmul_grad_grad", {.results = {"DX", "DY"}});
constexpr SecondGradient kMatmulV2Second =
    SecondOfTwo("matmul_v2_grad_grad", {.out_grad = "grad_out",
                                        .incoming = {"grad_x@GRAD", "grad_y@GRAD"},
                                        .result_of_grad = "grad_out@GRAD"});

INTERP_REGISTER_OP(WithSecond<kMulSecond>(GradDef("mul_grad", ParseAttrs<MatmulAttrs, ReadMul>,
                                                  Infer)));
INTERP_REGISTER_OP(WithSecond<kMatmulSecond>(
    GradDef("matmul_grad", ParseAttrs<MatmulAttrs, ReadMatmul>, kInferWithoutLod)));
INTERP_REGISTER_OP(WithSecond<kMatmulV2Second>(MatmulV2GradDef()));
INTERP_REGISTER_OP(GradDef("bmm_grad", ParseAttrs<MatmulAttrs, ReadBmm>, kInferWithoutLod));

}  // namespace
}  // namespace interp::nn
