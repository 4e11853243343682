// lstsq: the Solution of smallest norm that minimises |X Solution - Y|, by singular values, of
// which those up to rcond times the largest one count as 0; negative rcond is the machine epsilon.
// Rank is their number but for the driver gels, which takes X to have full rank, SingularValues are
// those that gelsd and gelss give. Residuals are the sums of squares by column, where X has more
// rows than columns and full rank. What is left out has shape [0].
#include <algorithm>
#include <limits>

#include "kernels/linalg/product.h"
#include "kernels/linalg/singular_values.h"
#include "kernels/util/read_choice.h"

namespace interp::linalg {
namespace {

constexpr int kX = 0;
constexpr int kY = 1;
constexpr int kSolution = 0;
constexpr int kResiduals = 1;
constexpr int kRank = 2;
constexpr int kSingularValues = 3;

enum class Driver : int8_t { kGels, kGelsy, kGelsd, kGelss };

struct LstsqAttrs {
  float rcond = 0;
  Driver driver = Driver::kGels;

  bool gives_rank() const { return driver != Driver::kGels; }
  bool gives_values() const { return driver == Driver::kGelsd || driver == Driver::kGelss; }
};

LstsqAttrs ReadLstsqAttrs(AttrReader& reader) {
  const float rcond = reader.Float("rcond", 0);
  return {rcond, ReadChoice<Driver>(reader, "driver",
                                    {{"gels", Driver::kGels},
                                     {"gelsy", Driver::kGelsy},
                                     {"gelsd", Driver::kGelsd},
                                     {"gelss", Driver::kGelss}})};
}

absl::Status CheckShapes(const OpContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckMatrices(ctx, kX, "X"));
  INTERP_RETURN_IF_ERROR(CheckMatrices(ctx, kY, "Y"));
  const Shape& x = ctx.input(kX).shape;
  const Shape& y = ctx.input(kY).shape;
  if (BatchOf(x) == BatchOf(y) && x.back(2) == y.back(2) && x.back(1) > 0 && x.back(2) > 0) {
    return absl::OkStatus();
  }
  return InvalidArgument("inputs 'X' and 'Y' have shapes ", ToString(x), " and ", ToString(y),
                         ", expected [...,m,n] and [...,m,k] with m and n above 0");
}

// Gives output `slot`, if there is one, memory for `shape`.
absl::Status Give(KernelContext& ctx, int slot, const Shape& shape) {
  Tensor* const out = ctx.optional_output(slot);
  if (out == nullptr) return absl::OkStatus();
  out->shape = shape;
  out->lod.clear();
  return ctx.Allocate(*out);
}

Shape WithLast(Shape batch, int64_t last) {
  batch.push_back(last);
  return batch;
}

// `T`: of the input, whose rounding counts.
template <typename T>
int64_t RankOf(const LstsqAttrs& attrs, const Vector<double>& values) {
  if (!attrs.gives_rank()) return values.size();
  const double rcond = attrs.rcond < 0 ? std::numeric_limits<T>::epsilon() : attrs.rcond;
  return (values.array() > rcond * values(0)).count();
}

template <typename T>
Matrix<double> WideMatrixAt(const Tensor& tensor, const Matrices& matrices, int64_t index) {
  return MatrixAt<T>(tensor, matrices, index).template cast<double>();
}

// The sums of squares of X Solution - Y.
template <typename T>
absl::Status GiveResiduals(KernelContext& ctx, const Matrices& x, const Matrices& y) {
  Tensor* const out = ctx.optional_output(kResiduals);
  if (out == nullptr) return absl::OkStatus();
  const Tensor& solution = ctx.output(kSolution);
  INTERP_RETURN_IF_ERROR(Give(ctx, kResiduals, WithLast(BatchOf(ctx.input(kX).shape), y.cols)));
  for (int64_t i = 0; i < x.count; ++i) {
    const Matrix<double> difference =
        Product<double>(WideMatrixAt<T>(ctx.input(kX), x, i),
                        WideMatrixAt<T>(solution, {x.count, x.cols, y.cols}, i)) -
        WideMatrixAt<T>(ctx.input(kY), y, i);
    for (int64_t column = 0; column < y.cols; ++column) {
      out->mutable_data<T>()[i * y.cols + column] =
          static_cast<T>(difference.col(column).squaredNorm());
    }
  }
  return absl::OkStatus();
}

// Solves the systems, and returns whether all X have full rank.
template <typename T>
absl::StatusOr<bool> SolveAll(KernelContext& ctx, const Matrices& x, const Matrices& y) {
  const auto& attrs = ctx.attrs<LstsqAttrs>();
  const int64_t least = std::min(x.rows, x.cols);
  Tensor* const ranks = attrs.gives_rank() ? ctx.optional_output(kRank) : nullptr;
  Tensor* const values = attrs.gives_values() ? ctx.optional_output(kSingularValues) : nullptr;
  bool full = true;
  for (int64_t i = 0; i < x.count; ++i) {
    INTERP_ASSIGN_OR_RETURN(
        const SingularValues found,
        Decompose(WideMatrixAt<T>(ctx.input(kX), x, i), i, SingularVectors::kThin));
    const int64_t rank = RankOf<T>(attrs, found.values);
    full = full && rank == least;
    const Matrix<double> projected =
        Product<double>(found.u.leftCols(rank).transpose(), WideMatrixAt<T>(ctx.input(kY), y, i));
    const Matrix<double> scaled = found.values.head(rank).cwiseInverse().asDiagonal() * projected;
    MatrixAt<T>(ctx.output(kSolution), {x.count, x.cols, y.cols}, i) =
        Product<double>(found.v.leftCols(rank), scaled).template cast<T>();
    if (ranks != nullptr) ranks->mutable_data<int32_t>()[i] = static_cast<int32_t>(rank);
    if (values != nullptr) {
      std::copy_n(found.values.data(), least, values->mutable_data<T>() + i * least);
    }
  }
  return full;
}

template <typename T>
absl::Status Lstsq(KernelContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckShapes(ctx));
  const auto& attrs = ctx.attrs<LstsqAttrs>();
  const Matrices x = MatricesOf(ctx.input(kX).shape);
  const Matrices y = MatricesOf(ctx.input(kY).shape);
  const Shape batch = BatchOf(ctx.input(kX).shape);
  const Shape none = {0};
  INTERP_RETURN_IF_ERROR(Give(ctx, kSolution, WithMatrix(batch, x.cols, y.cols)));
  INTERP_RETURN_IF_ERROR(Give(ctx, kRank, attrs.gives_rank() ? batch : none));
  INTERP_RETURN_IF_ERROR(
      Give(ctx, kSingularValues,
           attrs.gives_values() ? WithLast(batch, std::min(x.rows, x.cols)) : none));
  INTERP_ASSIGN_OR_RETURN(const bool full, SolveAll<T>(ctx, x, y));
  if (x.rows > x.cols && full) return GiveResiduals<T>(ctx, x, y);
  return Give(ctx, kResiduals, none);
}

INTERP_REGISTER_OP(OpDef{
    .type = "lstsq",
    .inputs = {{"X"}, {"Y"}},
    .outputs = {{"Solution"},
                {"Residuals", kOptional},
                {"Rank", kOptional},
                {"SingularValues", kOptional}},
    .parse = ParseAttrs<LstsqAttrs, ReadLstsqAttrs>,
    .infer_dtype = [](DTypeContext& ctx) { ctx.Set(kRank, DType::kInt32); },
    .kernels = {Row<float, Lstsq<float>>(), Row<double, Lstsq<double>>()},
    .dynamic_outputs = true,
});

}  // namespace
}  // namespace interp::linalg
