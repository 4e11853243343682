// inverse: Output = the inverse of each square matrix in the last two dimensions of Input, by an LU
// decomposition with row exchanges. A matrix without inverse is an error.
#include <algorithm>
#include <cmath>

#include "core/op_def.h"

namespace interp {
namespace {

constexpr int kInput = 0;
constexpr int kOutput = 0;

absl::Status InferInverse(InferContext& ctx) {
  const Shape& shape = ctx.input(kInput).shape;
  if (shape.rank() < 2 || shape.back(1) != shape.back(2)) {
    return InvalidArgument("input 'Input' has shape ", ToString(shape),
                           ", expected square matrices");
  }
  ctx.ShareShape(kInput, kOutput);
  return absl::OkStatus();
}

// Decomposes the n x n matrix `lu` in place and applies its row exchanges to `rows`, an identity.
// False when a column has no pivot but 0 or NaN.
template <typename T>
bool Decompose(T* lu, int64_t n, T* rows) {
  for (int64_t k = 0; k < n; ++k) {
    int64_t pivot = k;
    for (int64_t i = k + 1; i < n; ++i) {
      if (std::abs(lu[i * n + k]) > std::abs(lu[pivot * n + k])) pivot = i;
    }
    if (!(std::abs(lu[pivot * n + k]) > T{0})) return false;
    if (pivot != k) {
      std::swap_ranges(lu + k * n, lu + (k + 1) * n, lu + pivot * n);
      std::swap_ranges(rows + k * n, rows + (k + 1) * n, rows + pivot * n);
    }
    for (int64_t i = k + 1; i < n; ++i) {
      const T factor = lu[i * n + k] /= lu[k * n + k];
      for (int64_t j = k + 1; j < n; ++j) lu[i * n + j] -= factor * lu[k * n + j];
    }
  }
  return true;
}

// x = lu^-1 x for a whole n x n matrix x.
template <typename T>
void Solve(const T* lu, int64_t n, T* x) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < i; ++k) {
      const T factor = lu[i * n + k];
      for (int64_t j = 0; j < n; ++j) x[i * n + j] -= factor * x[k * n + j];
    }
  }
  for (int64_t i = n - 1; i >= 0; --i) {
    for (int64_t k = i + 1; k < n; ++k) {
      const T factor = lu[i * n + k];
      for (int64_t j = 0; j < n; ++j) x[i * n + j] -= factor * x[k * n + j];
    }
    for (int64_t j = 0; j < n; ++j) x[i * n + j] /= lu[i * n + i];
  }
}

template <typename T>
absl::Status Inverse(KernelContext& ctx) {
  const Tensor& input = ctx.input(kInput);
  const int64_t n = input.shape.back();
  const int64_t size = n * n;
  if (input.numel() == 0) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(const Workspace work,
                          ctx.workspace(static_cast<size_t>(size) * sizeof(T)));
  T* const lu = work.data<T>();
  const T* const in = input.data<T>();
  T* const out = ctx.output(kOutput).mutable_data<T>();
  for (int64_t at = 0; at < input.numel(); at += size) {
    std::copy(in + at, in + at + size, lu);
    std::fill(out + at, out + at + size, T{0});
    for (int64_t i = 0; i < n; ++i) out[at + i * n + i] = T{1};
    if (!Decompose(lu, n, out + at)) {
      return InvalidArgument("matrix ", at / size, " of input 'Input' has no inverse");
    }
    Solve(lu, n, out + at);
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "inverse",
    .inputs = {{"Input"}},
    .outputs = {{"Output"}},
    .infer = InferInverse,
    .kernels = {{DType::kFloat32, Inverse<float>}, {DType::kFloat64, Inverse<double>}},
    .gradient = {.inputs = {"Output", "Output@GRAD"}, .outputs = {"Input@GRAD"}},
});

}  // namespace
}  // namespace interp
