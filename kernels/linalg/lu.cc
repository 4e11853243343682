// lu: X = P L U by Gaussian elimination with row exchanges. Out holds U and below it L without its
// diagonal of ones; Pivots[i], from 1, is the row that step i has exchanged with row i; Infos is
// the first step, from 1, whose pivot is 0, else 0.
// lu_unpack: Pmat, L and U of what lu gives.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/linalg/matrices.h"
#include "kernels/linalg/pivots.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/fill_zero.h"

namespace interp::linalg {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;
constexpr int kPivots = 1;
constexpr int kInfos = 2;

struct LuAttrs {
  bool pivots = true;
};

LuAttrs ReadLuAttrs(AttrReader& reader) {
  const LuAttrs attrs = {reader.Bool("pivots", true)};
  if (!attrs.pivots) reader.Fail("attribute 'pivots' is false, which is not supported");
  return attrs;
}

absl::Status InferLu(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckMatrices(ctx, kX, "X"));
  const Shape& x = ctx.input(kX).shape;
  Shape infos = BatchOf(x);
  if (infos.rank() == 0) infos.push_back(1);
  ctx.ShareShape(kX, kOut);
  ctx.SetShape(kPivots, PivotsShape(x));
  ctx.SetShape(kInfos, infos);
  return absl::OkStatus();
}

// In place; returns the info.
template <typename T>
int32_t Decompose(MatrixMap<T> lu, int32_t* pivots) {
  int32_t info = 0;
  for (Eigen::Index k = 0; k < std::min(lu.rows(), lu.cols()); ++k) {
    Eigen::Index pivot = 0;
    lu.col(k).tail(lu.rows() - k).cwiseAbs().maxCoeff(&pivot);
    pivot += k;
    pivots[k] = static_cast<int32_t>(pivot + 1);
    if (pivot != k) lu.row(k).swap(lu.row(pivot));
    if (lu(k, k) == T{0}) {
      if (info == 0) info = static_cast<int32_t>(k + 1);
      continue;
    }
    const Eigen::Index rows = lu.rows() - k - 1;
    const Eigen::Index cols = lu.cols() - k - 1;
    lu.col(k).tail(rows) /= lu(k, k);
    lu.bottomRightCorner(rows, cols).noalias() -= lu.col(k).tail(rows) * lu.row(k).tail(cols);
  }
  return info;
}

template <typename T>
absl::Status Lu(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  Tensor& out = ctx.output(kOut);
  const Matrices in = MatricesOf(x.shape);
  const int64_t steps = std::min(in.rows, in.cols);
  int32_t* const infos = ctx.output(kInfos).mutable_data<int32_t>();
  std::fill_n(infos, ctx.output(kInfos).numel(), 0);
  for (int64_t i = 0; i < in.count && in.size() > 0; ++i) {
    MatrixMap<T> lu = MatrixAt<T>(out, in, i);
    lu = MatrixAt<T>(x, in, i);
    infos[i] = Decompose<T>(lu, ctx.output(kPivots).mutable_data<int32_t>() + i * steps);
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "lu",
    .inputs = {{"X"}},
    .outputs = {{"Out"}, {"Pivots"}, {"Infos"}},
    .parse = ParseAttrs<LuAttrs, ReadLuAttrs>,
    .infer_dtype =
        [](DTypeContext& ctx) {
          ctx.Set(kPivots, DType::kInt32);
          ctx.Set(kInfos, DType::kInt32);
        },
    .infer = InferLu,
    .kernels = {WideRow<float, Lu<double>>(), Row<double, Lu<double>>()},
    .gradient = {.inputs = {"X", "Out", "Pivots", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

// Of lu_unpack.
constexpr int kUnpackPivots = 1;
constexpr int kPmat = 0;
constexpr int kL = 1;
constexpr int kU = 2;

struct UnpackAttrs {
  bool matrices = true;
  bool pivots = true;
};

UnpackAttrs ReadUnpackAttrs(AttrReader& reader) {
  return {reader.Bool("unpack_ludata", true), reader.Bool("unpack_pivots", true)};
}

absl::Status InferUnpack(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckMatrices(ctx, kX, "X"));
  const Shape& x = ctx.input(kX).shape;
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kUnpackPivots, "Pivots", PivotsShape(x)));
  if (ctx.input(kUnpackPivots).dtype != DType::kInt32) {
    return InvalidArgument("input 'Pivots' is ", DescribeType(ctx.input(kUnpackPivots)),
                           ", expected int32");
  }
  const Matrices in = MatricesOf(x);
  const int64_t steps = std::min(in.rows, in.cols);
  const UnpackAttrs& attrs = ctx.attrs<UnpackAttrs>();
  const Shape none = {0};
  const Shape batch = BatchOf(x);
  ctx.SetShape(kPmat, attrs.pivots ? WithMatrix(batch, in.rows, in.rows) : none);
  ctx.SetShape(kL, attrs.matrices ? WithMatrix(batch, in.rows, steps) : none);
  ctx.SetShape(kU, attrs.matrices ? WithMatrix(batch, steps, in.cols) : none);
  return absl::OkStatus();
}

template <typename T>
absl::Status Unpack(KernelContext& ctx) {
  const UnpackAttrs& attrs = ctx.attrs<UnpackAttrs>();
  const Tensor& x = ctx.input(kX);
  const Matrices in = MatricesOf(x.shape);
  const int64_t steps = std::min(in.rows, in.cols);
  Tensor* const pmat = ctx.optional_output(kPmat);
  Tensor* const l = ctx.optional_output(kL);
  Tensor* const u = ctx.optional_output(kU);
  if (pmat != nullptr && attrs.pivots) FillZero(ctx.num_threads(), *pmat);
  const int32_t* pivots = ctx.input(kUnpackPivots).data<int32_t>();
  for (int64_t i = 0; i < in.count && in.rows > 0; ++i, pivots += steps) {
    const Matrix<T> lu = MatrixAt<T>(x, in, i);
    if (l != nullptr && attrs.matrices) {
      MatrixMap<T> lower = MatrixAt<T>(*l, {in.count, in.rows, steps}, i);
      lower = lu.leftCols(steps).template triangularView<Eigen::UnitLower>();
    }
    if (u != nullptr && attrs.matrices) {
      MatrixMap<T> upper = MatrixAt<T>(*u, {in.count, steps, in.cols}, i);
      upper = lu.topRows(steps).template triangularView<Eigen::Upper>();
    }
    if (pmat == nullptr || !attrs.pivots) continue;
    INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> rows, RowsOf(pivots, steps, in.rows));
    MatrixMap<T> permutation = MatrixAt<T>(*pmat, {in.count, in.rows, in.rows}, i);
    for (int64_t k = 0; k < in.rows; ++k) permutation(rows[k], k) = T{1};
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "lu_unpack",
    .inputs = {{"X"}, {"Pivots", kAnyDType}},
    .outputs = {{"Pmat", kOptional}, {"L", kOptional}, {"U", kOptional}},
    .parse = ParseAttrs<UnpackAttrs, ReadUnpackAttrs>,
    .infer = InferUnpack,
    .kernels = {WideRow<float, Unpack<double>>(), Row<double, Unpack<double>>()},
    .gradient = {.inputs = {"X", "Pivots", "L", "U", "Pmat", "L@GRAD", "U@GRAD"},
                 .outputs = {"X@GRAD"}},
});

}  // namespace
}  // namespace interp::linalg
