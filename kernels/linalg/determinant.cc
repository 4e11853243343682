// determinant: Out = the determinant of each matrix. slogdeterminant: Out[0] = its sign, Out[1] =
// the logarithm of its absolute value. Their gradients: Input@GRAD = Out@GRAD det(A) A^-T, and
// Out@GRAD[1] A^-T; 0 where there is no inverse.
#include <Eigen/LU>
#include <cmath>

#include "kernels/linalg/matrices.h"
#include "kernels/util/check_shape.h"

namespace interp::linalg {
namespace {

constexpr int kInput = 0;
constexpr int kOut = 0;

absl::Status InferDeterminant(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckSquare(ctx, kInput, "Input"));
  ctx.SetShape(kOut, BatchOf(ctx.input(kInput).shape));
  return absl::OkStatus();
}

Shape SignsAndLogs(const Shape& input) {
  Shape shape = {2};
  for (const int64_t dim : BatchOf(input)) shape.push_back(dim);
  return shape;
}

absl::Status InferLogDeterminant(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckSquare(ctx, kInput, "Input"));
  ctx.SetShape(kOut, SignsAndLogs(ctx.input(kInput).shape));
  return absl::OkStatus();
}

// 1 for a matrix without elements.
template <typename T>
T DeterminantOf(const Matrix<T>& matrix) {
  return matrix.size() == 0 ? T{1} : Eigen::PartialPivLU<Matrix<T>>(matrix).determinant();
}

template <typename T>
absl::Status Determinant(KernelContext& ctx) {
  const Tensor& input = ctx.input(kInput);
  T* const out = ctx.output(kOut).mutable_data<T>();
  const Matrices in = MatricesOf(input.shape);
  for (int64_t i = 0; i < in.count; ++i) out[i] = DeterminantOf<T>(MatrixAt<T>(input, in, i));
  return absl::OkStatus();
}

// By the diagonal of U, so that the product of many elements does not overflow.
template <typename T>
absl::Status LogDeterminant(KernelContext& ctx) {
  const Tensor& input = ctx.input(kInput);
  T* const signs = ctx.output(kOut).mutable_data<T>();
  const Matrices in = MatricesOf(input.shape);
  T* const logs = signs + in.count;
  for (int64_t i = 0; i < in.count; ++i) {
    signs[i] = 1;
    logs[i] = 0;
    if (in.size() == 0) continue;
    const Eigen::PartialPivLU<Matrix<T>> lu(MatrixAt<T>(input, in, i));
    const auto diagonal = lu.matrixLU().diagonal();
    signs[i] = static_cast<T>(lu.permutationP().determinant());
    for (Eigen::Index k = 0; k < diagonal.size(); ++k) {
      const T element = diagonal[k];
      signs[i] *= static_cast<T>((element > 0) - (element < 0));
      logs[i] += std::log(std::abs(element));
    }
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "determinant",
    .inputs = {{"Input"}},
    .outputs = {{"Out"}},
    .infer = InferDeterminant,
    .kernels = {WideRow<float, Determinant<double>>(), Row<double, Determinant<double>>()},
    .gradient = {.inputs = {"Input", "Out", "Out@GRAD"}, .outputs = {"Input@GRAD"}},
});
INTERP_REGISTER_OP(OpDef{
    .type = "slogdeterminant",
    .inputs = {{"Input"}},
    .outputs = {{"Out"}},
    .infer = InferLogDeterminant,
    .kernels = {WideRow<float, LogDeterminant<double>>(), Row<double, LogDeterminant<double>>()},
    .gradient = {.inputs = {"Input", "Out", "Out@GRAD"}, .outputs = {"Input@GRAD"}},
});

constexpr int kValue = 1;
constexpr int kOutGrad = 2;
constexpr int kInputGrad = 0;

// Whether Out holds signs and logarithms.
template <bool kLog>
absl::Status InferGrad(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckSquare(ctx, kInput, "Input"));
  const Shape& input = ctx.input(kInput).shape;
  const Shape expected = kLog ? SignsAndLogs(input) : BatchOf(input);
  for (const int slot : {kValue, kOutGrad}) {
    const Shape& shape = ctx.input(slot).shape;
    const bool fits = shape == expected || (!kLog && shape.numel() == 1 && expected.numel() == 1);
    if (!fits) return CheckInputShape(ctx, slot, slot == kValue ? "Out" : "Out@GRAD", expected);
  }
  ctx.ShareShape(kInput, kInputGrad);
  return absl::OkStatus();
}

template <typename T, bool kLog>
absl::Status Grad(KernelContext& ctx) {
  const Tensor& input = ctx.input(kInput);
  const Matrices in = MatricesOf(input.shape);
  const T* const values = ctx.input(kValue).data<T>();
  const T* const grads = ctx.input(kOutGrad).data<T>();
  for (int64_t i = 0; i < in.count && in.size() > 0; ++i) {
    MatrixMap<T> grad = MatrixAt<T>(ctx.output(kInputGrad), in, i);
    const Eigen::PartialPivLU<Matrix<T>> lu(MatrixAt<T>(input, in, i));
    if (!(lu.matrixLU().diagonal().cwiseAbs().minCoeff() > T{0})) {
      grad.setZero();
      continue;
    }
    const T factor = kLog ? grads[in.count + i] : grads[i] * values[i];
    grad = factor * Matrix<T>(lu.inverse()).transpose();
  }
  return absl::OkStatus();
}

template <bool kLog>
OpDef GradDef(absl::string_view type) {
  return OpDef{
      .type = type,
      .inputs = {{"Input"}, {"Out"}, {"Out@GRAD"}},
      .outputs = {{"Input@GRAD"}},
      .infer = InferGrad<kLog>,
      .kernels = {WideRow<float, Grad<double, kLog>>(), Row<double, Grad<double, kLog>>()},
  };
}

INTERP_REGISTER_OP(GradDef<false>("determinant_grad"));
INTERP_REGISTER_OP(GradDef<true>("slogdeterminant_grad"));

}  // namespace
}  // namespace interp::linalg
