// Sums of products as products of matrices. What operands and result have in common is the batch;
// of the rest, labels of one operand are rows, those of the other columns. Matrices stay where they
// are where each of these groups is one dim in memory, and are copied elsewhere.
#include <algorithm>
#include <optional>
#include <vector>

#include "kernels/product/einsum.h"
#include "kernels/product/product.h"
#include "kernels/product/strided_product.h"
#include "kernels/util/shape_args.h"

namespace interp::einsum {
namespace {

// Below so many rows, or for one column, products read Y as it lies.
constexpr int64_t kFewRows = 4;

using Lengths = absl::Span<const int64_t>;

bool Has(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

// Elements from one index of a label to the next; 0 where the operand repeats.
int64_t StrideOf(const Operand& operand, Label label) {
  const Strides strides = StridesOf(operand.shape, Layout::kPlain);
  int64_t stride = 0;
  for (int d = 0; d < operand.shape.rank(); ++d) {
    if (operand.labels[d] == label && operand.shape[d] != 1) stride += strides[d];
  }
  return stride;
}

int64_t Size(Lengths lengths, const Labels& labels) {
  int64_t size = 1;
  for (const Label label : labels) size *= lengths[label];
  return size;
}

Labels Joined(std::initializer_list<const Labels*> groups) {
  Labels labels;
  for (const Labels* group : groups) labels.insert(labels.end(), group->begin(), group->end());
  return labels;
}

// Which labels are the batch, the rows, the columns and the sum of a product of matrices.
struct Groups {
  Labels batch;
  Labels rows;
  Labels columns;
  Labels summed;
};

// Summed labels in the order of `y`, then of x.
Groups GroupLabels(const Operand& x, const Operand& y, const Labels& out) {
  Groups groups;
  for (const Label label : out) {
    const bool in_x = Has(x.labels, label);
    const bool in_y = Has(y.labels, label);
    (in_x && in_y ? groups.batch : in_y ? groups.columns : groups.rows).push_back(label);
  }
  for (const Operand* operand : {&y, &x}) {
    for (const Label label : operand->labels) {
      if (!Has(out, label) && !Has(groups.summed, label)) groups.summed.push_back(label);
    }
  }
  return groups;
}

// The stride of all labels as one dim, if they are one: each spans those after it.
std::optional<int64_t> JoinedStride(Lengths lengths, const Operand& operand, const Labels& labels) {
  std::optional<int64_t> stride;
  int64_t next = 0;  // the stride that continues what there is
  for (auto label = labels.rbegin(); label != labels.rend(); ++label) {
    if (lengths[*label] == 1) continue;
    const int64_t own = StrideOf(operand, *label);
    if (stride.has_value() && own != next) return std::nullopt;
    if (!stride.has_value()) stride = own;
    next = own * lengths[*label];
  }
  return stride.value_or(1);
}

// Leaves in `labels` those at its end that are one dim in both operands, and has the others, which
// stand between other dims somewhere, repeat the product: they go to the end of `batch`.
void PeelLabels(Lengths lengths, const Operand& a, const Operand& b, Labels& labels,
                Labels& batch) {
  constexpr int64_t kEnough = 32;  // rows or columns that are worth a product of their own
  for (size_t first = 0; first < labels.size(); ++first) {
    const Labels kept(labels.begin() + static_cast<std::ptrdiff_t>(first), labels.end());
    if (!JoinedStride(lengths, a, kept).has_value() ||
        !JoinedStride(lengths, b, kept).has_value()) {
      continue;
    }
    if (first == 0 || Size(lengths, kept) < kEnough) return;
    batch.insert(batch.end(), labels.begin(),
                 labels.end() - static_cast<std::ptrdiff_t>(kept.size()));
    labels = kept;
    return;
  }
}

// An operand as matrices: strides of its rows and columns.
struct Placed {
  int64_t row = 1;
  int64_t column = 1;
};

std::optional<Placed> PlaceOf(Lengths lengths, const Operand& operand, const Labels& rows,
                              const Labels& columns) {
  const std::optional<int64_t> row = JoinedStride(lengths, operand, rows);
  const std::optional<int64_t> column = JoinedStride(lengths, operand, columns);
  if (!row.has_value() || !column.has_value()) return std::nullopt;
  return Placed{*row, *column};
}

// Copies an operand so that its dimensions are those of `labels`, in their order.
template <typename T>
absl::Status Arrange(KernelContext& ctx, Lengths lengths, const Operand& operand,
                     const Labels& labels, T* out) {
  if (labels.size() > kMaxCopyRank) {
    return InvalidArgument("attribute 'equation' names ", labels.size(),
                           " dimensions, expected at most ", kMaxCopyRank);
  }
  CopyDims dims;
  int64_t step = Size(lengths, labels);
  if (step == 0) return absl::OkStatus();
  for (const Label label : labels) {
    step /= lengths[label];
    dims.push_back({lengths[label], StrideOf(operand, label), step});
  }
  CopyStrided(ctx.num_threads(), sizeof(T), dims, operand.data, out);
  return absl::OkStatus();
}

using BatchSteps = std::vector<int64_t>;

BatchSteps StepsOf(const Operand& operand, const Labels& batch) {
  BatchSteps steps;
  for (const Label label : batch) steps.push_back(StrideOf(operand, label));
  return steps;
}

// Of matrices of `size` elements that follow one another.
BatchSteps DenseSteps(Lengths lengths, const Labels& batch, int64_t size) {
  BatchSteps steps(batch.size());
  for (size_t i = batch.size(); i-- > 0; size *= lengths[batch[i]]) steps[i] = size;
  return steps;
}

// The matrices of one operand, where they lie or in memory of their own.
template <typename T>
struct Matrices {
  const T* data = nullptr;
  Placed at;
  BatchSteps steps = {};  // by label of the batch
  std::optional<Workspace> copy = std::nullopt;
};

// With `dense`, they follow one another, row by row.
template <typename T>
absl::StatusOr<Matrices<T>> MatricesOf(KernelContext& ctx, Lengths lengths, const Operand& operand,
                                       const Labels& batch, const Labels& rows,
                                       const Labels& columns, bool dense) {
  const Labels order = Joined({&batch, &rows, &columns});
  const T* const data = static_cast<const T*>(operand.data);
  const Placed plain = {Size(lengths, columns), 1};
  if (dense) {
    if (JoinedStride(lengths, operand, order) == 1) return Matrices<T>{data, plain};
  } else {
    const std::optional<Placed> at = PlaceOf(lengths, operand, rows, columns);
    if (at.has_value() && (at->row == 1 || at->column == 1)) {
      return Matrices<T>{data, *at, StepsOf(operand, batch)};
    }
  }
  INTERP_ASSIGN_OR_RETURN(const int64_t size, CheckedProduct(Size(lengths, rows), plain.row));
  INTERP_ASSIGN_OR_RETURN(int64_t bytes, CheckedProduct(Size(lengths, batch), size));
  INTERP_ASSIGN_OR_RETURN(bytes, CheckedProduct(bytes, sizeof(T)));
  INTERP_ASSIGN_OR_RETURN(Workspace copy, ctx.workspace(static_cast<size_t>(bytes)));
  INTERP_RETURN_IF_ERROR(Arrange(ctx, lengths, operand, order, copy.data<T>()));
  const T* const copied = copy.data<T>();
  return Matrices<T>{copied, plain, DenseSteps(lengths, batch, size), std::move(copy)};
}

// Where the result goes: to its place, or to memory that is arranged afterwards.
template <typename T>
struct Result {
  T* data = nullptr;
  int64_t row = 1;
  BatchSteps steps = {};
  std::optional<Workspace> copy = std::nullopt;
};

template <typename T>
absl::StatusOr<Result<T>> ResultOf(KernelContext& ctx, Lengths lengths, const Groups& groups,
                                   const Operand& out, bool dense, T* data) {
  const Labels order = Joined({&groups.batch, &groups.rows, &groups.columns});
  const std::optional<Placed> at = PlaceOf(lengths, out, groups.rows, groups.columns);
  const int64_t columns = Size(lengths, groups.columns);
  const bool in_place = dense ? order == out.labels : at.has_value() && at->column == 1;
  if (in_place) {
    return Result<T>{data, dense ? columns : at->row, StepsOf(out, groups.batch)};
  }
  const int64_t size = Size(lengths, groups.rows) * columns;
  INTERP_ASSIGN_OR_RETURN(
      Workspace copy,
      ctx.workspace(static_cast<size_t>(size * Size(lengths, groups.batch)) * sizeof(T)));
  T* const copied = copy.data<T>();
  return Result<T>{copied, columns, DenseSteps(lengths, groups.batch, size), std::move(copy)};
}

// Products of few rows or of one column, of matrices that follow one another.
template <typename T>
absl::Status RunDense(KernelContext& ctx, int64_t count, nn::Product product, const Matrices<T>& x,
                      const Matrices<T>& y, T* out) {
  const int64_t batch[] = {count};
  INTERP_RETURN_IF_ERROR(nn::BroadcastBatch(batch, batch, product));
  return nn::RunProduct<T>(ctx, product, x.data, y.data, /*y_constant=*/false, /*bias=*/nullptr,
                           out);
}

// One product of whole operands is one of RunProduct, which keeps a constant Y packed. False: they
// are not whole.
template <typename T>
absl::StatusOr<bool> RunWhole(KernelContext& ctx, nn::Product product, const Matrices<T>& x,
                              const Matrices<T>& y, bool y_constant, const Result<T>& out) {
  product.trans_x = x.at.column != 1;
  product.trans_y = y.at.column != 1;
  const bool whole = (product.trans_x ? x.at.column == product.m : x.at.row == product.k) &&
                     (product.trans_y ? y.at.column == product.k : y.at.row == product.n) &&
                     out.row == product.n;
  if (!whole) return false;
  INTERP_RETURN_IF_ERROR(nn::RunProduct<T>(
      ctx, product, x.data, y.data, y_constant && !y.copy.has_value(), /*bias=*/nullptr, out.data));
  return true;
}

template <typename T>
absl::Status RunStrided(KernelContext& ctx, Lengths lengths, const Labels& batch,
                        const nn::Product& product, const Matrices<T>& x, const Matrices<T>& y,
                        const Result<T>& out) {
  nn::StridedProduct strided = {.m = product.m,
                                .n = product.n,
                                .k = product.k,
                                .x_row = x.at.row,
                                .x_column = x.at.column,
                                .y_row = y.at.row,
                                .y_column = y.at.column,
                                .out_row = out.row};
  for (size_t i = 0; i < batch.size(); ++i) {
    strided.batch.push_back({lengths[batch[i]], x.steps[i], y.steps[i], out.steps[i]});
  }
  return nn::RunStridedProduct<T>(ctx, strided, x.data, y.data, out.data);
}

template <typename T>
absl::Status Multiply(KernelContext& ctx, Lengths lengths, const Operand& x, const Operand& y,
                      bool y_constant, const Operand& out_place, T* out) {
  Groups groups = GroupLabels(x, y, out_place.labels);
  PeelLabels(lengths, y, out_place, groups.columns, groups.batch);
  PeelLabels(lengths, x, out_place, groups.rows, groups.batch);
  const nn::Product product = nn::ProductOf(
      Size(lengths, groups.rows), Size(lengths, groups.columns), Size(lengths, groups.summed));
  const int64_t count = Size(lengths, groups.batch);
  const bool dense = product.m < kFewRows || product.n == 1 || product.k == 0;
  INTERP_ASSIGN_OR_RETURN(const Matrices<T> left, MatricesOf<T>(ctx, lengths, x, groups.batch,
                                                                groups.rows, groups.summed, dense));
  INTERP_ASSIGN_OR_RETURN(
      const Matrices<T> right,
      MatricesOf<T>(ctx, lengths, y, groups.batch, groups.summed, groups.columns, dense));
  INTERP_ASSIGN_OR_RETURN(const Result<T> result,
                          ResultOf<T>(ctx, lengths, groups, out_place, dense, out));
  if (dense) {
    INTERP_RETURN_IF_ERROR(RunDense(ctx, count, product, left, right, result.data));
  } else {
    bool whole = false;
    if (count == 1) {
      INTERP_ASSIGN_OR_RETURN(whole, RunWhole(ctx, product, left, right, y_constant, result));
    }
    if (!whole) {
      INTERP_RETURN_IF_ERROR(RunStrided(ctx, lengths, groups.batch, product, left, right, result));
    }
  }
  if (!result.copy.has_value()) return absl::OkStatus();
  const Labels order = Joined({&groups.batch, &groups.rows, &groups.columns});
  Operand arranged = {result.data, {}, order};
  for (const Label label : order) arranged.shape.push_back(lengths[label]);
  return Arrange(ctx, lengths, arranged, out_place.labels, out);
}

}  // namespace

template <typename T>
absl::Status Contract(KernelContext& ctx, absl::Span<const int64_t> lengths, const Operand& x,
                      const Operand* y, const Labels& out_labels, T* out) {
  if (Size(lengths, out_labels) == 0) return absl::OkStatus();
  Operand out_place = {out, {}, out_labels};
  for (const Label label : out_labels) out_place.shape.push_back(lengths[label]);
  if (y == nullptr) {
    const bool sums = std::any_of(x.labels.begin(), x.labels.end(), [&](Label label) {
      return lengths[label] != 1 && !Has(out_labels, label);
    });
    if (!sums) return Arrange(ctx, lengths, x, out_labels, out);
    const T one = 1;
    return Multiply(ctx, lengths, x, {&one, {}, {}}, /*y_constant=*/false, out_place, out);
  }
  // The innermost dim of the result is one of columns.
  const bool swaps = !out_labels.empty() && !Has(y->labels, out_labels.back());
  const Operand& left = swaps ? *y : x;
  const Operand& right = swaps ? x : *y;
  return Multiply(ctx, lengths, left, right, right.constant, out_place, out);
}

template absl::Status Contract<float>(KernelContext&, absl::Span<const int64_t>, const Operand&,
                                      const Operand*, const Labels&, float*);
template absl::Status Contract<double>(KernelContext&, absl::Span<const int64_t>, const Operand&,
                                       const Operand*, const Labels&, double*);

}  // namespace interp::einsum
