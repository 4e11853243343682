#include "kernels/optimizer/gradient.h"

namespace interp::optimizer {
namespace {

template <typename M>
absl::Status MergeInto(const KernelContext& ctx, const MergePlan& plan, const Tensor& values,
                       int64_t width, M* out) {
  const auto merge = [&](auto type) {
    MergeValues(ctx.num_threads(), plan, width, values.data<decltype(type)>(), out);
    return absl::OkStatus();
  };
  switch (values.dtype) {
    case DType::kFloat32:
      return merge(float());
    case DType::kFloat64:
      return merge(double());
    case DType::kFloat16:
      return merge(float16());
    case DType::kBFloat16:
      return merge(bfloat16());
    default:
      return InvalidArgument("'Grad' holds rows of ", Name(values.dtype), ", expected floats");
  }
}

// The rows of [0, height) that `rows`, which ascend, do not list.
std::vector<int64_t> OtherRows(const std::vector<int64_t>& rows, int64_t height) {
  std::vector<int64_t> others;
  auto next = rows.begin();
  for (int64_t row = 0; row < height; ++row) {
    if (next != rows.end() && *next == row) {
      ++next;
    } else {
      others.push_back(row);
    }
  }
  return others;
}

}  // namespace

template <typename M>
absl::StatusOr<Gradient<M>> Gradient<M>::OfRows(const KernelContext& ctx, const Variable& rows,
                                                const Shape& parameter, MissingRows missing) {
  INTERP_RETURN_IF_ERROR(CheckRows(rows, "Grad"));
  Gradient gradient;
  gradient.numel_ = parameter.numel();
  gradient.missing_ = missing;
  const bool none = rows.selected_rows->rows.empty();
  if (!none && TallShape(rows) != parameter) {
    return InvalidArgument("'Grad' holds rows of ", ToString(TallShape(rows)),
                           ", expected the shape of 'Param', ", ToString(parameter));
  }
  gradient.width_ = none ? 1 : RowWidth(rows.tensor);
  auto plan = std::make_shared<MergePlan>(PlanMerge(rows.selected_rows->rows));
  if (missing == MissingRows::kAlone) {
    plan->rows = OtherRows(plan->rows, none ? gradient.numel_ : parameter[0]);
    INTERP_ASSIGN_OR_RETURN(Workspace zeros,
                            ctx.workspace(static_cast<size_t>(gradient.width_) * sizeof(M)));
    std::fill_n(zeros.template data<M>(), gradient.width_, M{0});
    gradient.plan_ = std::move(plan);
    gradient.values_ = std::make_shared<const Workspace>(std::move(zeros));
    return gradient;
  }
  INTERP_ASSIGN_OR_RETURN(
      Workspace values,
      ctx.workspace(static_cast<size_t>(plan->size() * gradient.width_) * sizeof(M)));
  if (!none) {
    INTERP_RETURN_IF_ERROR(
        MergeInto(ctx, *plan, rows.tensor, gradient.width_, values.template data<M>()));
  }
  gradient.plan_ = std::move(plan);
  gradient.values_ = std::make_shared<const Workspace>(std::move(values));
  return gradient;
}

template <typename M>
GradientChunk<M> Gradient<M>::ListedChunk(int64_t c) const {
  const int64_t per_row = NumChunks(width_);
  const int64_t row = c / per_row;
  const int64_t column = c % per_row * kChunk;
  return {
      .at = plan_->rows[row] * width_ + column,
      .size = std::min(kChunk, width_ - column),
      .values = values_->data<M>() + (missing_ == MissingRows::kAlone ? 0 : row * width_) + column};
}

template <typename M>
void Gradient<M>::Scatter(int64_t at, int64_t n, M* out) const {
  std::fill(out, out + n, M{0});
  const std::vector<int64_t>& rows = plan_->rows;
  auto row = std::lower_bound(rows.begin(), rows.end(), at / width_);
  for (; row != rows.end() && *row * width_ < at + n; ++row) {
    const int64_t begin = std::max(at, *row * width_);
    const int64_t end = std::min(at + n, (*row + 1) * width_);
    const M* from = values_->data<M>() + (row - rows.begin()) * width_ + (begin - *row * width_);
    std::copy(from, from + (end - begin), out + (begin - at));
  }
}

template class Gradient<float>;
template class Gradient<double>;

}  // namespace interp::optimizer
