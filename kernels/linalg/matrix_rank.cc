// matrix_rank: the singular values of each matrix that are above max(tol, r times the largest one).
// tol is TolTensor, broadcast against the matrices, or an attribute. With `use_default_tol` r is
// the larger side times the machine epsilon and the attribute does not count, else r is 0. Of
// `hermitian` matrices only the lower triangle is read.
#include <algorithm>
#include <limits>

#include "kernels/linalg/singular_values.h"

namespace interp::linalg {
namespace {

constexpr int kX = 0;
constexpr int kTol = 1;
constexpr int kOut = 0;

struct RankAttrs {
  float tol = 0;
  bool use_default_tol = true;
  bool hermitian = false;
};

RankAttrs ReadRankAttrs(AttrReader& reader) {
  return {reader.Float("tol", 0), reader.Bool("use_default_tol", true),
          reader.Bool("hermitian", false)};
}

absl::StatusOr<BatchPairs> Pairs(const OpContext& ctx) {
  const Tensor* const tol = ctx.optional_input(kTol);
  return PairBatches(BatchOf(ctx.input(kX).shape), tol == nullptr ? Shape() : tol->shape);
}

absl::Status InferRank(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckMatrices(ctx, kX, "X"));
  if (ctx.attrs<RankAttrs>().hermitian) INTERP_RETURN_IF_ERROR(CheckSquare(ctx, kX, "X"));
  INTERP_ASSIGN_OR_RETURN(const BatchPairs pairs, Pairs(ctx));
  ctx.SetShape(kOut, pairs.batch);
  return absl::OkStatus();
}

template <typename T>
absl::Status MatrixRank(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<RankAttrs>();
  const Tensor& x = ctx.input(kX);
  const Tensor* const tol = ctx.optional_input(kTol);
  const Matrices in = MatricesOf(x.shape);
  INTERP_ASSIGN_OR_RETURN(const BatchPairs pairs, Pairs(ctx));
  int32_t* const out = ctx.output(kOut).mutable_data<int32_t>();
  const T relative = attrs.use_default_tol ? std::numeric_limits<T>::epsilon() *
                                                 static_cast<T>(std::max(in.rows, in.cols))
                                           : T{0};
  const T attr = attrs.use_default_tol ? T{0} : static_cast<T>(attrs.tol);
  return ForEachPair(pairs, [&](int64_t i, int64_t at, int64_t of_tol) -> absl::Status {
    out[i] = 0;
    if (in.size() == 0) return absl::OkStatus();
    Matrix<double> matrix = MatrixAt<T>(x, in, at).template cast<double>();
    if (attrs.hermitian) {
      matrix = Matrix<double>(matrix.selfadjointView<Eigen::Lower>());
    }
    INTERP_ASSIGN_OR_RETURN(const SingularValues found,
                            Decompose(matrix, at, SingularVectors::kNone));
    const double absolute = tol == nullptr ? attr : tol->data<T>()[of_tol];
    const double least = std::max(absolute, relative * found.values(0));
    out[i] = static_cast<int32_t>((found.values.array() > least).count());
    return absl::OkStatus();
  });
}

INTERP_REGISTER_OP(OpDef{
    .type = "matrix_rank",
    .inputs = {{"X"}, {"TolTensor", kOptional}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<RankAttrs, ReadRankAttrs>,
    .infer_dtype = [](DTypeContext& ctx) { ctx.Set(kOut, DType::kInt32); },
    .infer = InferRank,
    .kernels = {Row<float, MatrixRank<float>>(), Row<double, MatrixRank<double>>()},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp::linalg
